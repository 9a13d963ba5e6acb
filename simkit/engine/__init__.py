"""Compiled programs and the host loops that run them."""
