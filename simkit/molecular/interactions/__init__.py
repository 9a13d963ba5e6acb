"""What acts between particles: energies, forces and stresses."""
