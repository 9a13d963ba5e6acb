"""Data exchanged between the time step of a flow and a method that imposes the conditions of bodies."""

from collections.abc import Callable
from typing import NamedTuple

import jax


class Stage(NamedTuple):
    """A stage of a time step.

    Attributes:
        number: index of the stage, from 0.
        part: length of time that it covers.
        time: at its end.
        project: ``(velocity, part, source=None) -> velocity, pressure``, the velocity whose divergence is ``source``,
            zero for None, and the pressure that achieves this in the time ``part``.
        source: result of `Obstacle.source` for the end of the stage.
    """

    number: jax.Array
    part: jax.Array
    time: jax.Array
    project: Callable
    source: jax.Array | None


class Inertia(NamedTuple):
    """Reduced advection of the velocity near a body.

        div(u u) - div((1 - fluid) (u - body) (u - body))

    Attributes:
        fluid: on the faces of each component, fraction of the velocity relative to the body that is advected.
        body: on the faces of each component, the velocity of the bodies; None if all are at rest.
    """

    fluid: tuple[jax.Array, ...]
    body: tuple[jax.Array, ...] | None
