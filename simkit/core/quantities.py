"""Units and meanings of quantities, declared beside the function that makes the simulation."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

from simkit.core.simulation import Quantity, Simulation


def described[**P](
    *declared: Mapping[str, Quantity], **own: tuple[str, str]
) -> Callable[[Callable[P, Simulation]], Callable[P, Simulation]]:
    """Return a decorator of a factory that adds unit and meaning of quantities to its simulations.

    Args:
        *declared: tables of quantities shared by several factories; later tables take precedence.
        **own: ``(unit, doc)`` of this factory's further quantities by name, which take precedence over the tables.
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
    """Return the unit of a quotient as text, such as ``"U/h"`` of ``("U", "h")`` or ``"1/(H^2/kappa)"``.

    Args:
        numerator: unit of the numerator.
        denominator: unit of the denominator.
    """
    if denominator == "1":
        return numerator
    return f"{numerator}/({denominator})" if set("/ ") & set(denominator) else f"{numerator}/{denominator}"


def times(one: str, other: str) -> str:
    """Return the unit of a product as text, such as ``"U^2 D"`` of ``("U^2", "D")``.

    Args:
        one: unit of one factor.
        other: unit of the other factor.
    """
    return " ".join(unit for unit in (one, other) if unit != "1") or "1"


def raised(unit: str, power: int) -> str:
    """Return a power of a unit as text, such as ``"U^2"`` or ``"(kappa/H)^2"``.

    Args:
        unit: a unit.
        power: at least 1.
    """
    if unit == "1" or power == 1:
        return unit
    return f"({unit})^{power}" if not unit.replace("_", "").isalnum() else f"{unit}^{power}"
