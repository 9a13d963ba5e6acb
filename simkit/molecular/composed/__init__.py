"""Systems of particles described as data: species, cell, interactions and tasks, by names and expressions."""
