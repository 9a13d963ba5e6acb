"""What is printed and drawn when a job ends, whichever verb ended it: one module per kind."""
