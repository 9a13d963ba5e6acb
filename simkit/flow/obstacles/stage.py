"""The interface between the time step of a flow and the bodies in it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.grid import Velocity

# ``(velocity, part, divergence=None) -> velocity, pressure``: the velocity projected onto a given divergence, zero for
# None, and the pressure that makes it so in that time.
type Project = Callable[..., tuple[Velocity, jax.Array]]
# A time, and the velocity and the scalar at that time.
type Moment = tuple[jax.Array, Velocity, Any]


class Stage(NamedTuple):
    """A stage of a time step.

    Attributes:
        number: index of the stage, from 0.
        part: length of time that it covers.
        time: at its end.
        project: the projection.
        source: result of `BodiesInStep.source` for the end of the stage.
    """

    number: jax.Array
    part: jax.Array
    time: jax.Array
    project: Project
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


class BodiesInStep:
    """Bodies during one time step: what they add to its stages; of this base class, nothing."""

    def begin(self, velocity: Velocity, time: jax.Array, length: jax.Array) -> tuple[Velocity, jax.Array]:
        """Return the velocity at the start of the step after what the bodies do to it, and the loads of that.

        ``time`` is that of the start, ``length`` that of the step; loads are as long as `Obstacle.loads`.
        """
        return velocity, jnp.zeros(0, time.dtype)

    def inertia(self, time: jax.Array) -> Inertia | None:
        """Return the velocity that advection carries at a time; None for all of it."""
        return None

    def source(self, time: jax.Array) -> jax.Array | None:
        """Return the divergence of the velocity at the cell centers; None for zero."""
        return None

    def project(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the bodies' conditions imposed, the pressure, and the momentum removed.

        ``velocity`` is the velocity at the end of the stage before projection, ``before`` and ``pressure`` are those at
        its start; the pressure is zero where its gradient is already in the velocity. Momentum is force times time.
        """
        return *stage.project(velocity, stage.part), jnp.zeros(0, velocity[0].dtype)

    def impose_scalar(self, scalar: Any, before: Any, carried: Any, time: jax.Array) -> tuple[Any, jax.Array]:
        """Return the scalar (or scalars) at the end of a stage with the bodies' conditions imposed, and what they gave.

        ``before`` is the scalar at the start of the stage, ``time`` that of its end.
        """
        return scalar, jnp.zeros(0, time.dtype)

    def received(self, impulse: jax.Array, before: Moment, after: Moment, carried: Any) -> jax.Array:
        """Return the impulse and the amounts of scalars without what the fluid inside the bodies needed for itself.

        ``impulse`` is the sum over the stages, ``before`` and ``after`` are the start and the end of the step.
        """
        return impulse


class Obstacle:
    """A body in the flow, or several; of this base class, none."""

    @property
    def loads(self) -> int:
        """Number of components of force and torque on all bodies, and of the amounts of scalars that they give."""
        return 0

    @property
    def averages_pressure(self) -> bool:
        """Whether the pressure of a state is the mean over a step instead of that of its last stage."""
        return False

    def check_equations(self, equations: Any) -> None:
        """Refuse equations that the method does not support."""

    def crossing_rate(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the largest number of cells per time that points of bodies cross at a time; None at rest."""
        return None

    def prepare(self, params: Params, parts: jax.Array, project: Project) -> Any:
        """Return data for the whole run, see `during`; by default none. ``parts``: lengths of time of the stages."""
        return ()

    def during(self, params: Params, data: Any, time: jax.Array) -> BodiesInStep:
        """Return the bodies during the step that begins at a time, from the result of `prepare`."""
        return BodiesInStep()
