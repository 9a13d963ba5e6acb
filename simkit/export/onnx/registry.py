"""Registry of converters by the names of JAX's primitives; one decorated function adds a primitive."""

import dataclasses
from collections.abc import Callable
from typing import Any

type Converter = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """Converter of a primitive.

    Attributes:
        convert: ``(graph, equation, *tensors) -> tensor`` or a list of tensors; `Value` instead of tensors if
            ``whole``.
        each: whether ``convert`` applies to each part of complex numbers and random keys.
        whole: whether ``convert`` takes and returns values instead of tensors.
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
        each: whether the function only moves elements, so that it applies to each part of complex numbers and keys.
        whole: whether the function takes and returns `simkit.export.onnx.convert.Value`.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            REAL[name] = Entry(function, each, whole)
        return function

    return register


def complex_primitive(*names: str) -> Callable[[Converter], Converter]:
    """Register a function of values as the converter of primitives with complex numbers or random keys.

    Args:
        *names: of the primitives.
    """

    def register(function: Converter) -> Converter:
        for name in names:
            COMPLEX[name] = Entry(function, whole=True)
        return function

    return register
