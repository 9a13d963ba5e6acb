"""Analysis of arrangements of particles: order, contacts, stiffness."""
