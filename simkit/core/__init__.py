"""The simulation record and its transformations; knows no physics and no files."""
