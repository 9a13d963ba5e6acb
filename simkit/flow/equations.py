"""The incompressible Navier-Stokes equations of a flow, as functions of its parameters."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax

from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.arrays import Velocity
from simkit.flow.boundary.domain import Domain, same
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.boundary.pressure_sides import PressureOnSides, SidePressure, pressure_on_sides
from simkit.flow.boundary.side_velocity import velocity_on_sides
from simkit.flow.obstacles.stage import Inertia, Stage
from simkit.flow.operators.advection import LAYERS
from simkit.flow.viscosity import Uniform, Viscosity, is_field, uniform

METHODS = ("runge_kutta", "adams_bashforth")


class Scalar(Protocol):
    """What the flow carries, such as a temperature, or several scalars by name; it lives at the cell centers.

    ``scalar`` is one array, or any pytree of them.
    """

    def rate(self, scalar: Any, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]) -> Any:
        """Return its rate of change, with the diffusion along the axes ``explicit`` alone."""
        ...

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., Any] | None:
        """Return the function that adds the diffusion along ``axes`` to an explicit change; None without any.

        ``solve(change, scalar, params, time, part, share)`` returns the change over the time ``part`` from ``time``,
        see `simkit.flow.stepping.implicit.friction_solver`.
        """
        ...


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


@dataclasses.dataclass(frozen=True, eq=False)
class Equations:
    """What moves a flow, as functions of the parameters, and the scheme that integrates it.

        du/dt + div(u u) = -grad(p) + div(2 viscosity S) + force,    div(u) = 0

    with the rate of strain S; where the viscosity is one number, friction is ``viscosity laplacian(u)``.

    Attributes:
        domain: the domain.
        viscosity: a number; the name of a parameter; ``params -> number``; or a field, ``(velocity, params) -> array``
            of one positive number for each cell, such as that of a model of turbulence or of a fluid that is not
            Newtonian, see `simkit.flow.operators.stress`; ``(velocity, params, scalar, time) -> array`` where it
            depends on what the flow carries, or on the time.
        time_step: ``(velocity, params) -> number``.
        boundary: ``(params, time) -> velocity on the sides``, see `simkit.flow.boundary.domain.Domain`; at rest by
            default.
        side_pressure: ``(params, time) -> ((lower, upper), ...)``, the pressure over density on the sides that give it,
            numbers or arrays of one layer at the centers of their faces; 0.0 for other sides, None for a periodic axis.
            By default it is zero.
        force: ``(velocity, scalar, params, time) -> components`` per unit mass, numbers or arrays that fit the faces
            that the equations move, see `simkit.flow.operators.open_sides.moving`; ``scalar`` is ``()`` where there is
            none.
        flow_rate: ``(params, time) -> number``, the mean of the first component that a uniform acceleration holds; or
            None.
        scalar: what the flow carries; or None.
        obstacle: a body in the flow; or None.
        method: "runge_kutta" or "adams_bashforth".
        implicit: the axes along which viscosity and the diffusion of the scalar are treated implicitly
            (Crank-Nicolson).
        implicit_viscosity: where the viscosity is a field, the part of it that is treated implicitly, as a number, a
            name or ``params -> number``. What the field differs from it is explicit: the time step has no limit from
            friction across the implicit axes where it is at least the largest value of the field; errors in time grow
            with it.
        scheme: advection, "central" or "upwind".

    Raises:
        UserError: if a name or an axis is unknown, or one part does not serve another: an inflow has no velocity, a
            pressure is given and no side takes it, a flow rate is held between sides, a viscosity that varies is
            treated implicitly, by Runge-Kutta stages or without `implicit_viscosity`, or the scalar or the obstacle is
            on another domain.
    """

    domain: Domain
    viscosity: Viscosity
    time_step: Callable[[Velocity, Params], jax.Array]
    boundary: Callable[[Params, jax.Array], BoundaryVelocity] | None = None
    side_pressure: SidePressure | None = None
    force: Callable[[Velocity, Any, Params, jax.Array], tuple] | None = None
    flow_rate: Callable[[Params, jax.Array], jax.Array] | None = None
    scalar: Scalar | None = None
    obstacle: Obstacle | None = None
    method: str = "runge_kutta"
    implicit: tuple[int, ...] = ()
    implicit_viscosity: Uniform | None = None
    scheme: str = "central"

    def __post_init__(self) -> None:
        """Refuse parts that do not serve one another."""
        for name, value, known in (("method", self.method, METHODS), ("scheme", self.scheme, tuple(LAYERS))):
            if value not in known:
                raise UserError(
                    f"{name} = {value!r} is unknown{nearest(str(value), list(known))}; choose one of {', '.join(known)}"
                )
        axes = tuple(range(self.domain.grid.dimension))
        if not set(self.implicit) <= set(axes) or len(set(self.implicit)) != len(self.implicit):
            raise UserError(f"implicit = {self.implicit!r}; choose among the axes {axes}, each once")
        self._check_viscosity()
        if self.boundary is None and self.domain.entrances():
            raise UserError("boundary is None, so that the inflow has no velocity; give boundary(params, time)")
        if self.side_pressure is not None and not self.domain.open_sides():
            raise UserError("side_pressure is given, and no side is of kind 'pressure'; leave it away")
        if self.flow_rate is not None and self.domain.sides[0] is not None:
            raise UserError(
                "flow_rate is given, but axis x is bounded, where what flows in is what flows; leave flow_rate away, "
                "or make x periodic"
            )
        for name, part in (("scalar", self.scalar), ("obstacle", self.obstacle)):
            theirs = getattr(part, "domain", None)
            if theirs is not None and not same(theirs, self.domain):
                raise UserError(f"the domain of the {name} is not that of the flow; build both with one domain")

    def _check_viscosity(self) -> None:
        wanted = is_field(self.viscosity) and bool(self.implicit)
        if not wanted and self.implicit_viscosity is not None:
            raise UserError(
                "implicit_viscosity is given, but the viscosity is one number, or no axis is implicit; leave it away"
            )
        if wanted and self.implicit_viscosity is None:
            raise UserError(
                "viscosity is a field, of which implicit friction serves a number alone; give implicit_viscosity, at "
                "least the largest value of the field, or implicit = ()"
            )
        if wanted and self.method != "adams_bashforth":
            raise UserError(
                f"method '{self.method}' does not serve implicit friction where the viscosity is a field: long steps, "
                "for which friction is made implicit, are not stable; choose method adams_bashforth, or implicit = ()"
            )

    @property
    def varies(self) -> bool:
        """Whether the viscosity is a field."""
        return is_field(self.viscosity)

    def implicit_part(self, params: Params) -> Any:
        """Return the viscosity of implicit friction, a number."""
        return uniform(self.viscosity if self.implicit_viscosity is None else self.implicit_viscosity, params)

    @property
    def explicit(self) -> tuple[int, ...]:
        """The axes along which viscosity is treated explicitly."""
        return tuple(i for i in range(self.domain.grid.dimension) if i not in self.implicit)

    def on_sides(self, params: Params, time: jax.Array) -> BoundaryVelocity:
        """Return the velocity on the sides.

        Raises:
            UserError: if a side does not use what it is given.
        """
        return velocity_on_sides(self.boundary, self.domain, params, time)

    def pressure_on_sides(self, params: Params, time: jax.Array) -> PressureOnSides:
        """Return the pressure on the sides, zero on those that do not give it.

        Raises:
            UserError: if a side does not use what it is given.
        """
        return pressure_on_sides(self.side_pressure, self.domain, params, time)
