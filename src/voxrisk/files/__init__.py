"""The files between the stages: each arrow of the data flow is a file that a person can open."""
