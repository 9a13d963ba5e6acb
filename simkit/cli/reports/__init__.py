"""What is printed and drawn when a run, a sweep or an optimization ends, whichever verb ended it."""
