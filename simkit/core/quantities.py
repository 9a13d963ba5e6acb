"""Units and meanings of quantities, declared beside the function that makes the simulation."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

from simkit.core.simulation import Quantity, Simulation


def described[**P](
    *declared: Mapping[str, Quantity], **own: tuple[str, str]
) -> Callable[[Callable[P, Simulation]], Callable[P, Simulation]]:
    """Return a decorator of a factory: its simulations know the unit and the meaning of their quantities.

    Args:
        *declared: quantities that several factories share; later ones win.
        **own: ``(unit, doc)`` by name of what this factory adds; these win.
    """
    quantities = {name: quantity for table in declared for name, quantity in table.items()}
    quantities |= {name: Quantity(unit, doc) for name, (unit, doc) in own.items()}

    def decorate(factory: Callable[P, Simulation]) -> Callable[P, Simulation]:
        @functools.wraps(factory)
        def make(*arguments: P.args, **keywords: P.kwargs) -> Simulation:
            simulation = factory(*arguments, **keywords)
            return dataclasses.replace(simulation, quantities={**simulation.quantities, **quantities})

        return make

    return decorate


def over(numerator: str, denominator: str) -> str:
    """Return the unit of a quotient in words, such as ``"U/h"`` of ``("U", "h")`` or ``"1/(H^2/kappa)"``.

    Args:
        numerator: a unit.
        denominator: another.
    """
    if denominator == "1":
        return numerator
    return f"{numerator}/({denominator})" if set("/ ") & set(denominator) else f"{numerator}/{denominator}"


def times(one: str, other: str) -> str:
    """Return the unit of a product in words, such as ``"U^2 D"`` of ``("U^2", "D")``.

    Args:
        one: a unit.
        other: another.
    """
    return " ".join(unit for unit in (one, other) if unit != "1") or "1"


def raised(unit: str, power: int) -> str:
    """Return a power of a unit in words, such as ``"U^2"`` or ``"(kappa/H)^2"``.

    Args:
        unit: a unit.
        power: at least 1.
    """
    if unit == "1" or power == 1:
        return unit
    return f"({unit})^{power}" if not unit.replace("_", "").isalnum() else f"{unit}^{power}"
