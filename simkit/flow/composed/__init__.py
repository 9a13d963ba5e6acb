"""Flows that are told as data: axes, sides, forces, scalars and obstacles by declared keys and formulas."""
