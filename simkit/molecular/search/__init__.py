"""The deepest minimum: basin hopping."""
