"""Registry of converters by the names of JAX's primitives; one decorated function adds a primitive."""

import dataclasses
import functools
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


def primitive(
    *names: str, each: bool = False, whole: bool = False, table: dict[str, Entry] = REAL
) -> Callable[[Converter], Converter]:
    """Register a function as the converter of primitives.

    Args:
        *names: of the primitives.
        each: whether the function only moves elements, so that it applies to each part of complex numbers and keys.
        whole: whether the function takes and returns `simkit.export.onnx.convert.Value`.
        table: `REAL`, or `COMPLEX` for primitives with complex numbers or random keys.
    """

    def register(function: Converter) -> Converter:
        table.update(dict.fromkeys(names, Entry(function, each, whole)))
        return function

    return register


complex_primitive = functools.partial(primitive, whole=True, table=COMPLEX)
