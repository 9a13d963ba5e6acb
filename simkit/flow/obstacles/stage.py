"""What the equations and time steps of a flow exchange with a method that holds bodies in it."""

from collections.abc import Callable
from typing import NamedTuple

import jax


class Stage(NamedTuple):
    """A stage of a time step, as obstacles are told of it.

    Attributes:
        number: of the stage, from 0.
        part: length of time that it covers.
        time: at its end.
        project: ``(velocity, part, source=None) -> velocity, pressure``, the velocity whose divergence is ``source``,
            zero for None, and the pressure that makes it so in the time ``part``.
        source: what the obstacle's `Obstacle.source` returned for the end of the stage.
    """

    number: jax.Array
    part: jax.Array
    time: jax.Array
    project: Callable
    source: jax.Array | None


class Inertia(NamedTuple):
    """What of a flow is carried on by itself, where a body holds it.

        div(u u) - div((1 - fluid) (u - body) (u - body))

    Attributes:
        fluid: on the faces of each component, part of the velocity relative to the body that is carried.
        body: on the faces of each component, the velocity of the bodies; None where all are at rest.
    """

    fluid: tuple[jax.Array, ...]
    body: tuple[jax.Array, ...] | None
