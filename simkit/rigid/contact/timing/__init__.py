"""Event-driven contact of balls: times of events, and their impulses."""
