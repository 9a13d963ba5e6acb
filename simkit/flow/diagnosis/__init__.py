"""What is measured of a flow: numbers, fields, statistics, and their units."""
