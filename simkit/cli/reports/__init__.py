"""Reports printed and drawn when a job ends, one module per kind of job."""
