"""Targets with fewer operators than ONNX: replacements of missing operators, and a report of the remaining ones."""
