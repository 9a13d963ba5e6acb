"""Who is near whom: neighbor lists, and sums over pairs."""
