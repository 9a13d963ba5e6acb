"""Targets that have fewer operators than ONNX: which of a model's operators they lack, and what can replace these."""
