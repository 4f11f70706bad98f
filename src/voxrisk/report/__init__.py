"""Pictures and pages that a person outside the field can read."""
