"""Scenes of rigid bodies described as data."""
