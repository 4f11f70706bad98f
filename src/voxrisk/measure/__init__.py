"""Metrics: plain functions on arrays, with NumPy, SciPy and numba and nothing of files or audio.

A higher score always means "more likely the same speaker". Rates are fractions.
"""
