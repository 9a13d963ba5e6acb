"""Files of runs: written atomically, sealed by checksums, and read back as labeled data."""
