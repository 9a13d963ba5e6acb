"""Runs on disk and the host loops that drive them."""
