"""Time stepping, explicit and implicit, and limits of the time step."""
