"""Replacements of ONNX operators by others, by name: adding one is one function with a decorator."""

import dataclasses
from collections.abc import Callable
from typing import Any

type Make = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Replacement:
    """An equivalent of an operator, made of others.

    Attributes:
        needs: operators that it is made of.
        make: ``(graph, inputs, shape, dtype, **attributes) -> tensor``, or ``None`` where it does not apply.
    """

    needs: tuple[str, ...]
    make: Make


REPLACEMENTS: dict[str, list[Replacement]] = {}


def replaces(operator: str, *needs: str) -> Callable[[Make], Make]:
    """Register a function as a replacement of an operator; those registered first are tried first.

    Args:
        operator: of ONNX.
        *needs: operators that it is made of; a target must have them or what replaces them.
    """

    def register(function: Make) -> Make:
        REPLACEMENTS.setdefault(operator, []).append(Replacement(needs, function))
        return function

    return register
