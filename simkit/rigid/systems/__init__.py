"""Scenes that scenarios run."""
