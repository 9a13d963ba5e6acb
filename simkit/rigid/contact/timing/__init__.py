"""Event-driven contact: events at their exact times, and their impulses."""
