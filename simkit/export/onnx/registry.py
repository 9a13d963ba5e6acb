"""Converters by the names of JAX's primitives: adding a primitive is one function with a decorator."""

import dataclasses
from collections.abc import Callable
from typing import Any

type Converter = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """How a primitive is converted.

    Attributes:
        convert: ``(graph, equation, *tensors) -> tensor`` or a list of them; of `Value` where ``whole``.
        each: whether it applies to each part of complex numbers and random keys.
        whole: whether it takes and returns values, not tensors.
    """

    convert: Converter
    each: bool = False
    whole: bool = False


REAL: dict[str, Entry] = {}
COMPLEX: dict[str, Entry] = {}


def primitive(*names: str, each: bool = False, whole: bool = False) -> Callable[[Converter], Converter]:
    """Register a function as the converter of primitives.

    Args:
        *names: of the primitives.
        each: it moves values only, so that it applies to each part of complex numbers and random keys.
        whole: it takes and returns `simkit.export.onnx.values.Value`.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            REAL[name] = Entry(function, each, whole)
        return function

    return register


def complex_primitive(*names: str) -> Callable[[Converter], Converter]:
    """Register a function as the converter of primitives where an argument or result is complex; it takes values.

    Args:
        *names: of the primitives.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            COMPLEX[name] = Entry(function, whole=True)
        return function

    return register
