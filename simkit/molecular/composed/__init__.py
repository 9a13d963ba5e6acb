"""Systems of particles as data: species, cell, interactions and what is done with them, by names and expressions."""
