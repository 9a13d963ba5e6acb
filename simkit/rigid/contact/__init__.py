"""Contact of bodies: impacts, rest, friction."""
