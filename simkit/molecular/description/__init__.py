"""Systems of particles described as data."""
