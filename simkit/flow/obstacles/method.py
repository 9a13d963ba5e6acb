"""Interface of a method that holds bodies in a flow, called by the equations and the time steps."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax

from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity

if TYPE_CHECKING:
    from simkit.flow.equations import Equations


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


class Obstacle(Protocol):
    """A body in the flow, or several."""

    @property
    def loads(self) -> int:
        """Length of the vector of forces that `hold` returns."""
        ...

    @property
    def moves(self) -> bool:
        """Whether it is elsewhere at other times."""
        ...

    def check_equations(self, equations: "Equations") -> None:
        """Refuse equations that the method does not serve."""
        ...

    def prepare(self, params: Params, parts: jax.Array, project: Callable) -> Any:
        """Return what `at` takes, made once for a run from its first parameters; ``parts``: lengths of the stages."""
        ...

    def at(self, params: Params, hold: Any) -> Any:
        """Return what `hold` needs under the parameters of a step, from what `prepare` returned."""
        ...

    def inertia(self, params: Params, time: jax.Array) -> Inertia | None:
        """Return what is carried of the velocity at a time; None for all of it."""
        ...

    def source(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the divergence of the velocity at the cell centers; None for zero."""
        ...

    def hold(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, params: Params, held: Any, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with that of the body in it, the pressure, and the momentum that this took.

        ``velocity`` is that at the end of the stage but for the pressure, ``before`` and ``pressure`` those at its
        start, ``held`` what `at` returned; momentum is force times time.
        """
        ...

    def hold_scalar(
        self, scalar: Any, before: Any, diffusivity: Any, params: Params, time: jax.Array
    ) -> tuple[Any, jax.Array]:
        """Return the scalar at the end of a stage as the body makes it, or several, and how much of each it added."""
        ...

    def kept(self, params: Params, before: tuple[jax.Array, Any], after: tuple[jax.Array, Any]) -> jax.Array:
        """Return how much of each scalar that the body added in a step the fluid inside it keeps.

        ``before`` and ``after``: time and scalar, or several by name, at the start and the end of a step.
        """
        ...

    def gained(
        self, params: Params, before: tuple[jax.Array, Velocity], after: tuple[jax.Array, Velocity]
    ) -> jax.Array | None:
        """Return how much of the momentum that `hold` took the fluid inside the body gave; None for nothing.

        ``before`` and ``after``: time and velocity at the start and the end of a step.
        """
        ...
