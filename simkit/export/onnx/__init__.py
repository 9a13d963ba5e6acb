"""Functions of JAX as ONNX models, run in onnxruntime: `onnxjit`, `convert`."""

from simkit.export.onnx.runtime import Converted, convert, onnxjit

__all__ = ["Converted", "convert", "onnxjit"]
