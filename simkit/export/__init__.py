"""Scenarios as programs for other runtimes."""
