"""What an arrangement of particles is like: its order, its contacts, its stiffness."""
