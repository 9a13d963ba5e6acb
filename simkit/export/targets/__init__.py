"""Targets with fewer operators than ONNX: replacement of the missing operators, and a list of the remaining ones."""
