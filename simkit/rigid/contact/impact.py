"""Impacts whose number and time are quantities."""

import dataclasses

import jax

from simkit.rigid.contact.timing.candidates import PAIR
from simkit.rigid.contact.timing.event import Event


@dataclasses.dataclass(frozen=True)
class Impact:
    """One of the impacts of a body: with another one, on a plane, or with any of them.

    Attributes:
        name: of the diagnostics, ``NAME.impacts``, how many there were so far, and ``NAME.time`` in s.
        first: index of the body.
        second: index of the other body; None for a plane, or for any impact.
        plane: index of the plane; None for a body, or for any impact.
        number: of the impact whose time is wanted, 1 for the first.

    Example:
        >>> rigid.Impact("bounce", first=0, plane=0, number=2).name
        'bounce'
    """

    name: str
    first: int
    second: int | None = None
    plane: int | None = None
    number: int = 1

    def happens(self, event: Event) -> jax.Array:
        """Return whether an event is such an impact, bool."""
        if self.second is not None:
            one, other = self.first, self.second
            both = (event.first[one] & event.second[other]) | (event.first[other] & event.second[one])
            return both & (event.kind == PAIR)
        if self.plane is not None:
            return event.is_impact & event.first[self.first] & (event.plane == self.plane)
        return event.is_impact & (event.first[self.first] | event.second[self.first])
