"""Ready-made rigid-body systems, one factory per file."""
