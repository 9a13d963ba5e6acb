"""Force fields of several systems, with their parameters and units."""
