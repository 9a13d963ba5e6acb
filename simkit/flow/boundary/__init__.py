"""What happens at the sides of a domain: velocities given there, slopes there, points around it."""
