"""Programs of a simulation for other runtimes: a folder with the program, its description, and reference values."""
