"""What bodies are, where they are and how they move."""
