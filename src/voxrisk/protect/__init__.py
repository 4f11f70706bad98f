"""Protected speech: anonymizers, target selection, and what cuts speech into pieces."""
