"""What happens when: events at their exact times, and what each of them does."""
