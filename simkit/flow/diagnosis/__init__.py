"""Diagnostics of a flow: numbers, fields, statistics, and their units."""
