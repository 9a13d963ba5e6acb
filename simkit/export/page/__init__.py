"""Pages that compute a simulation in a browser: one HTML file with its programs, their runtime and controls."""
