"""Graph for a target with fewer operators: missing operators are replaced when they are added."""

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.model import onnx_package
from simkit.export.targets.operators import Operators
from simkit.export.targets.registry import Replacement, possible

FAMILIES = ("arithmetic", "indexing", "logic", "products", "shapes")


class TargetGraph(Graph):
    """Builds a model of a target's operators; an operator without a replacement is added as it is."""

    def __init__(self, operators: Operators) -> None:
        """Begin empty.

        Args:
            operators: of the target.
        """
        super().__init__()
        _load()
        self.operators = operators
        # Operators that were replaced by equivalents for finite numbers only.
        self.finite: set[str] = set()
        self._busy: list[str] = []
        self._found: dict[tuple[str, frozenset[str]], list[Replacement]] = {}

    def node(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], **attrs: Any
    ) -> list[Tensor]:
        """Return the outputs of an operator or its replacement; arguments as for `Graph.node`."""
        if self._has(operator, inputs) or len(outputs) != 1:
            return super().node(operator, inputs, outputs, **attrs)
        if folded := self._folded(operator, inputs, outputs, attrs):
            return folded
        shape, dtype = outputs[0]
        for replacement in self._replacements(operator):
            self._busy.append(operator)
            made = replacement.make(self, list(inputs), tuple(int(n) for n in shape), np.dtype(dtype), **attrs)
            self._busy.pop()
            if made is not None:
                # The operator of the program is named as well, which may be replaced through several others.
                self.finite |= {operator, *self._busy[:1]} if replacement.finite else set()
                assert made.shape == tuple(shape) and made.dtype == dtype, (operator, made.shape, shape)
                return [made]
        return super().node(operator, inputs, outputs, **attrs)

    def _has(self, operator: str, inputs: Sequence[Tensor | None]) -> bool:
        """Return whether the target has an operator for the types of its inputs."""
        types = tuple("" if tensor is None else tensor.dtype.name for tensor in inputs)
        return operator in self.operators.names and _takes(operator, types, self.operators.opset)

    def _replacements(self, operator: str) -> list[Replacement]:
        """Return the replacements of an operator that lead to operators of the target."""
        key = operator, frozenset(self._busy)
        if key not in self._found:
            self._found[key] = possible(operator, self.operators.names, key[1])
        return self._found[key]


@functools.cache
def _takes(operator: str, types: tuple[str, ...], opset: int) -> bool:
    """Return whether a version of ONNX defines an operator for types of inputs; ``""`` is an input that is left out."""
    schema = onnx_package().defs.get_schema(operator, opset, "")
    constraints = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    names = {"float32": "float", "float64": "double"}
    for index, name in enumerate(types):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        if name and f"tensor({names.get(name, name)})" not in constraints.get(formal, (formal,)):
            return False
    return True


@functools.cache
def _load() -> None:
    for family in FAMILIES:
        importlib.import_module(f"simkit.export.targets.{family}")
