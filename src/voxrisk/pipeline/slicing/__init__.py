"""``voxrisk slicing``: what slices protect, what they cost, and who can put them together again."""
