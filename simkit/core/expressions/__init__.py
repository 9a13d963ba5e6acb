"""Arithmetic expressions in scenario files and on the command line: checked text, evaluated with JAX."""
