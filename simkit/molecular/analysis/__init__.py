"""Analysis of configurations of particles: order, contacts, elasticity, vibrations."""
