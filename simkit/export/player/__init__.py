"""Players: one HTML file that shows a stored run in space, to be turned around and stepped through."""
