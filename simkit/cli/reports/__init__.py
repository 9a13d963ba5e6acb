"""Reports of finished jobs, printed and drawn, one module per kind of job."""
