"""Speech made harder to recognise: anonymizers, target selection, alignment and slicing."""
