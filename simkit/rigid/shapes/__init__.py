"""Shapes of bodies, each a file with its mass properties and the keys that scenario files give it."""
