"""The command line: one module per verb, imported on demand; the only package that prints."""
