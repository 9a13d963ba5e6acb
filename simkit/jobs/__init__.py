"""What users ask for: runs, sweeps, derivatives, optimizations, validations."""
