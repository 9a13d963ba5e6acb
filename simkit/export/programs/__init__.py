"""Programs of a simulation for other runtimes: a folder with the program, its description, and a reference to check."""
