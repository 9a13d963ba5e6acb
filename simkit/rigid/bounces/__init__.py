"""Bouncing, sliding and rolling of a sphere on a plane, in closed form."""
