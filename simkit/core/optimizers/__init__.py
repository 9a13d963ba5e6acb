"""Methods of optimization, one per file, behind one contract."""
