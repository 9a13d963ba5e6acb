"""Registry of replacements of ONNX operators by others; one decorated function adds a replacement."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

type Make = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Replacement:
    """An equivalent of an operator, made of others.

    Attributes:
        needs: operators that it is made of.
        finite: whether it holds for finite numbers only, since it multiplies by masks of zeros and ones.
        make: ``(graph, inputs, shape, dtype, **attributes) -> tensor``, or ``None`` if it does not apply; shape and
            dtype are those of the output.
    """

    needs: tuple[str, ...]
    make: Make
    finite: bool = False


REPLACEMENTS: dict[str, list[Replacement]] = {}


def replaces(operator: str, *needs: str, finite: bool = False) -> Callable[[Make], Make]:
    """Register a function as a replacement of an operator; replacements are tried in the order of registration.

    Args:
        operator: of ONNX.
        *needs: operators that the replacement is made of; a target must have these, or replacements of them.
        finite: whether it holds for finite numbers only.
    """

    def register(function: Make) -> Make:
        REPLACEMENTS.setdefault(operator, []).append(Replacement(needs, function, finite))
        return function

    return register


def possible(operator: str, names: frozenset[str], busy: frozenset[str] = frozenset()) -> list[Replacement]:
    """Return the replacements of an operator that lead to operators of a target.

    Args:
        operator: of ONNX.
        names: operators of the target.
        busy: operators that are being replaced, which would be circular.
    """
    busy |= {operator}
    return [
        replacement
        for replacement in REPLACEMENTS.get(operator, ())
        if all(need in names or (need not in busy and possible(need, names, busy)) for need in replacement.needs)
    ]


def sufficient(lacking: Collection[str], names: frozenset[str]) -> dict[str, str]:
    """Return for each operator that a target lacks another one with which it may be replaced, ``""`` if none helps.

    Args:
        lacking: operators of ONNX that are neither in the target nor were replaced.
        names: operators of the target.
    """
    needs = {need for operator in lacking for one in REPLACEMENTS.get(operator, ()) for need in one.needs}
    # A replacement that is possible already did not apply to the types or attributes.
    helped = {
        other: {
            operator
            for operator in lacking
            if operator != other and len(possible(operator, names | {other})) > len(possible(operator, names))
        }
        for other in sorted({*needs, *lacking} - names)
    }
    # Of several, one that is lacking itself, since the program needs it anyway, and one that helps most.
    best = sorted(helped, key=lambda other: (other not in lacking, -len(helped[other])))
    return {operator: next((other for other in best if operator in helped[other]), "") for operator in lacking}
