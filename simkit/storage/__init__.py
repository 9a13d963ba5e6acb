"""Files of stored jobs: written atomically, sealed by checksums, and read back as labeled data sets."""
