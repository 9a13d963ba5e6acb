"""Registry of replacements of ONNX operators by others; one decorated function adds a replacement."""

import dataclasses
from collections.abc import Callable
from typing import Any

type Make = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Replacement:
    """An equivalent of an operator, made of others.

    Attributes:
        needs: operators that it is made of.
        make: ``(graph, inputs, shape, dtype, **attributes) -> tensor``, or ``None`` if it does not apply; shape and
            dtype are those of the output.
    """

    needs: tuple[str, ...]
    make: Make


REPLACEMENTS: dict[str, list[Replacement]] = {}


def replaces(operator: str, *needs: str) -> Callable[[Make], Make]:
    """Register a function as a replacement of an operator; replacements are tried in the order of registration.

    Args:
        operator: of ONNX.
        *needs: operators that the replacement is made of; a target must have these, or replacements of them.
    """

    def register(function: Make) -> Make:
        REPLACEMENTS.setdefault(operator, []).append(Replacement(needs, function))
        return function

    return register
