"""Files: whole or not there, sealed, and read back as labeled data."""
