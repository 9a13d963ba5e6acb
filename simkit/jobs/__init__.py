"""Jobs: runs, sweeps, derivatives, optimizations and validations."""
