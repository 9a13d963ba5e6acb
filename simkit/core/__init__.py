"""The simulation record and its transformations, independent of physics and files."""
