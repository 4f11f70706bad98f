"""Whole jobs: each reads files, runs the stages and writes files."""
