"""Flows described as data: axes, sides, forces, scalars and obstacles by declared keys and formulas."""
