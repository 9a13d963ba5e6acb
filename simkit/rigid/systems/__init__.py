"""Ready-made rigid-body systems, a chapter for each kind of contact."""
