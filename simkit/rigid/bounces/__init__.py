"""A sphere that bounces on a plane, slides and rolls: all of it in closed form."""
