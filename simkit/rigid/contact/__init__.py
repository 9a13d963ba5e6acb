"""Contact between bodies: what keeps them apart and rubs where they touch."""
