"""The incompressible Navier-Stokes equations as functions of parameters, and the acceleration on all faces."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_distinct, check_integer
from simkit.core.formulation import computed_once_on_cpu
from simkit.core.settings import word
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import (
    Domain,
    PressureOnSides,
    SidePressure,
    check_same,
    no_motion,
    pressure_on_sides,
    pushed_along,
    velocity_on_sides,
)
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.boundary.side_data import BoundaryVelocity
from simkit.flow.grid import Velocity, end
from simkit.flow.obstacles.stage import Inertia, Obstacle
from simkit.flow.operators.advection import LAYERS, advection, on_all_faces
from simkit.flow.operators.differences import with_ends
from simkit.flow.operators.diffusion import divergence_of_stress, laplacian
from simkit.flow.viscosity import Uniform, Viscosity, field_at_centers, is_field, uniform

METHODS = ("runge_kutta", "adams_bashforth")
# ``(equations, velocity, scalar, params, time) -> number``.
type TimeStep = Callable[["Equations", Velocity, Any, Params, jax.Array], jax.Array]


class Scalar(Protocol):
    """One scalar that the flow carries, such as a temperature, or several by name, at the cell centers.

    ``scalar`` is one array, or any pytree of them.
    """

    def diffusivity_at(self, scalar: Any, params: Params, time: jax.Array) -> Any:
        """Return its diffusivity, a number or an array at the cell centers; of several scalars by name."""
        ...

    def spreading(
        self, scalar: Any, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> list[tuple[jax.Array, tuple[int, ...]]]:
        """Return the largest diffusivity of each scalar, and the axes along which its diffusion is explicit."""
        ...

    def rate(self, scalar: Any, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]) -> Any:
        """Return its rate of change, with diffusion along the axes ``explicit`` only."""
        ...

    def production(self, scalar: Any, velocity: Velocity, params: Params, time: jax.Array) -> Any:
        """Return its source, a number or an array; None without one; of several scalars by name."""
        ...

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., Any] | None:
        """Return the function that adds implicit diffusion along ``axes`` to an explicit change; None if there is none.

        ``solve(change, scalar, params, time, part, share)`` returns the change over the time ``part`` from ``time``,
        see `simkit.flow.stepping.implicit.implicit_solver`.
        """
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Equations:
    """Terms of the equations of motion as functions of the parameters, and the scheme that integrates them.

        du/dt + div(u u) = -grad(p) + div(2 viscosity S) + force - drag,    div(u) = 0

    with the rate of strain S; where the viscosity is one number, friction is ``viscosity laplacian(u)``.

    Attributes:
        domain: the domain.
        viscosity: a number; the name of a parameter; ``params -> number``; or a field, ``(velocity, params) -> array``
            of one positive number per cell, for turbulence models and non-Newtonian fluids, see
            `simkit.flow.operators.diffusion`; or ``(velocity, params, scalar, time) -> array`` if it depends on a
            scalar or on time.
        time_step: ``(equations, velocity, scalar, params, time) -> number``, see `simkit.flow.stepping.time_step`.
        boundary: ``(params, time) -> velocity on the sides``, see `simkit.flow.boundary.domain.Domain`; at rest by
            default.
        side_pressure: ``(params, time) -> ((lower, upper), ...)``, the pressure over density on sides of kind
            ``pressure``, numbers or arrays of one layer at the centers of their faces; 0.0 for other sides, None for a
            periodic axis. Zero by default.
        force: ``(velocity, scalar, params, time) -> components`` per unit mass, numbers or arrays on the faces where
            velocity is an unknown, see `simkit.flow.operators.advection.moving`; ``scalar`` is ``()`` without one.
        drag: ``(params, time) -> (coefficients, velocities)``, each with a number or an array for every component, as
            for ``force``: ``-coefficient (u - velocity)`` is the drag of a porous medium, or of a solid for which it
            stands, per unit mass. It is implicit: no coefficient is too large for a time step. None without drag.
        flow_rate: ``(params, time) -> number``, the mean of the first component, kept by a uniform acceleration; or
            None.
        scalar: the scalar or scalars that the flow carries; or None.
        obstacle: a body in the flow; or None.
        method: "runge_kutta" or "adams_bashforth".
        implicit: the axes along which viscosity and the diffusion of the scalar are treated implicitly
            (Crank-Nicolson).
        implicit_viscosity: if the viscosity is a field, the part treated implicitly: a number, a name or
            ``params -> number``. The difference of the field from it is explicit. If it is at least the largest value
            of the field, friction along the implicit axes does not limit the time step; errors in time grow with it.
        scheme: advection, "central" or "upwind".

    Raises:
        UserError: if a name or an axis is unknown, or parts are incompatible: an inflow has no velocity, a pressure is
            given and no side takes it, a flow rate is prescribed on a bounded axis, a viscosity that varies is
            treated implicitly, by Runge-Kutta stages or without `implicit_viscosity`, or the scalar or the obstacle is
            on another domain.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 2.0, origin=-1.0))
        >>> equations = flow.Equations(
        ...     flow.domain(axes, (None, ("wall", "wall"))),
        ...     viscosity="nu",
        ...     time_step=flow.fixed_time_step,
        ...     force=lambda velocity, scalar, params, time: (2 * params["nu"], 0.0),
        ...     implicit=(1,),
        ... )
        >>> equations.method, equations.scheme
        ('runge_kutta', 'central')
    """

    domain: Domain
    viscosity: Viscosity
    time_step: TimeStep
    boundary: Callable[[Params, jax.Array], BoundaryVelocity] | None = None
    side_pressure: SidePressure | None = None
    force: Callable[[Velocity, Any, Params, jax.Array], tuple] | None = None
    drag: Callable[[Params, jax.Array], tuple[tuple, tuple]] | None = None
    flow_rate: Callable[[Params, jax.Array], jax.Array] | None = None
    scalar: Scalar | None = None
    obstacle: Obstacle | None = None
    method: str = "runge_kutta"
    implicit: tuple[int, ...] = ()
    implicit_viscosity: Uniform | None = None
    scheme: str = "central"

    def __post_init__(self) -> None:
        """Refuse incompatible parts."""
        for name, value, known in (("method", self.method, METHODS), ("scheme", self.scheme, tuple(LAYERS))):
            word("of the flow", tuple(known)).check(value, name)
        axes = tuple(range(self.domain.grid.dimension))
        check_distinct("implicit", self.implicit)
        for axis in self.implicit:
            check_integer("implicit", axis, 0, axes[-1])
        self._check_viscosity()
        if self.boundary is None and self.domain.entrances():
            raise UserError("boundary is None, so that the inflow has no velocity; give boundary(params, time)")
        if self.side_pressure is not None and not self.domain.open_sides():
            raise UserError("side_pressure is given, and no side is of kind 'pressure'; remove it")
        if self.flow_rate is not None and self.domain.sides[0] is not None:
            raise UserError(
                "flow_rate is given, but axis x is bounded, so that the inflow determines it; remove flow_rate, "
                "or make x periodic"
            )
        for name, part in (("scalar", self.scalar), ("obstacle", self.obstacle)):
            theirs = getattr(part, "domain", None)
            if theirs is not None:
                check_same(f"the {name}", theirs, self.domain)

    def _check_viscosity(self) -> None:
        wanted = is_field(self.viscosity) and bool(self.implicit)
        if not wanted and self.implicit_viscosity is not None:
            raise UserError(
                "implicit_viscosity is given, but the viscosity is one number, or no axis is implicit; remove it"
            )
        if wanted and self.implicit_viscosity is None:
            raise UserError(
                "viscosity is a field, and implicit friction needs a number; give implicit_viscosity, at "
                "least the largest value of the field, or implicit = ()"
            )
        if wanted and self.method != "adams_bashforth":
            raise UserError(
                f"method '{self.method}' does not support implicit friction with a viscosity field: long steps, "
                "the purpose of implicit friction, are unstable; choose method adams_bashforth, or implicit = ()"
            )

    @property
    def keeps_pressure(self) -> bool:
        """Whether a stage begins with the old pressure, and finds its increment: beside implicit friction and drag."""
        return bool(self.implicit) or self.drag is not None

    @property
    def varies(self) -> bool:
        """Whether the viscosity is a field."""
        return is_field(self.viscosity)

    def implicit_part(self, params: Params) -> Any:
        """Return the viscosity of implicit friction, a number."""
        return uniform(self.viscosity if self.implicit_viscosity is None else self.implicit_viscosity, params)

    def step_length(self, velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> jax.Array:
        """Return the length of the time step that begins at a time."""
        return self.time_step(self, velocity, scalar, params, time)

    @property
    def explicit(self) -> tuple[int, ...]:
        """The axes along which viscosity is treated explicitly."""
        return tuple(i for i in range(self.domain.grid.dimension) if i not in self.implicit)

    def on_sides(self, params: Params, time: jax.Array) -> BoundaryVelocity:
        """Return the velocity on the sides.

        Raises:
            UserError: if a side is given data that its kind does not use.
        """
        return velocity_on_sides(self.boundary, self.domain, params, time)

    def pressure_on_sides(self, params: Params, time: jax.Array) -> PressureOnSides:
        """Return the pressure on the sides, zero on those of other kinds.

        Raises:
            UserError: if a side is given data that its kind does not use.
        """
        return pressure_on_sides(self.side_pressure, self.domain, params, time)


def explicit_terms(
    velocity: Velocity,
    scalar: Any,
    equations: Equations,
    params: Params,
    time: jax.Array,
    inertia: Inertia | None = None,
) -> tuple[jax.Array, ...]:
    """Return the explicit acceleration on all faces of each component, and the rate of change of the scalar, if any.

    On the sides the acceleration is zero, except for those through which the flow leaves, and for open ones. What the
    pressure given there adds is among the explicit terms only where friction is; beside implicit terms see
    `simkit.flow.stepping.implicit.implicit_solver`.

    Args:
        velocity: components on their faces.
        scalar: at the cell centers, or ``()``.
        equations: of the flow.
        params: parameters.
        time: time.
        inertia: the velocity that advection carries, see `simkit.flow.obstacles.stage.Inertia`; None for all of it.
    """
    domain, boundary = equations.domain, equations.on_sides(params, time)
    around = surround(velocity, boundary, domain, LAYERS[equations.scheme])
    acceleration = jax.tree.map(jnp.negative, _advected(velocity, around, boundary, equations, inertia))
    if equations.explicit or equations.varies:
        nearest = around if LAYERS[equations.scheme] == 1 else surround(velocity, boundary, domain)
        acceleration = _with_friction(acceleration, velocity, nearest, equations, params, (scalar, time))
    if equations.force is not None:
        acceleration = jax.tree.map(jnp.add, acceleration, equations.force(velocity, scalar, params, time))
    pushes = bool(domain.open_sides()) and not equations.keeps_pressure
    side_values = equations.pressure_on_sides(params, time) if pushes else None
    terms = tuple(
        computed_once_on_cpu(_on_all_faces(a, velocity, i, domain, side_values)) for i, a in enumerate(acceleration)
    )
    if equations.scalar is None:
        return terms
    return (*terms, equations.scalar.rate(scalar, velocity, params, time, equations.explicit))


def implicit_friction(velocity: Velocity, boundary: BoundaryVelocity, equations: Equations, params: Params) -> Velocity:
    """Return the viscous acceleration along the implicit axes, on all faces of each component; zero on the sides."""
    if not equations.implicit:
        return jax.tree.map(jnp.zeros_like, velocity)
    around = surround(velocity, boundary, equations.domain)
    terms = laplacian(around, equations.domain, equations.implicit)
    viscosity = equations.implicit_part(params)
    return tuple(on_all_faces(viscosity * f, i, equations.domain) for i, f in enumerate(terms))


def _advected(
    velocity: Velocity, around: Velocity, boundary: BoundaryVelocity, equations: Equations, inertia: Inertia | None
) -> Velocity:
    """Return the divergence of the momentum flux on the faces of each component where it is an unknown."""
    domain, scheme = equations.domain, equations.scheme
    layers = LAYERS[scheme]
    if inertia is None:
        return advection(around, domain, scheme)
    if inertia.body is None:
        moved = jax.tree.map(jnp.multiply, velocity, inertia.fluid)
        return advection(around, domain, scheme, surround(moved, boundary, domain, layers))
    # Bodies keep clear of the sides, so that the correction vanishes there.
    relative = jax.tree.map(jnp.subtract, velocity, inertia.body)
    still = jax.tree.map(lambda f, part: (1 - part) * f, relative, inertia.fluid)
    relative, still = (surround(f, no_motion(domain), domain, layers) for f in (relative, still))
    unmoved = advection(relative, domain, scheme, still)
    return jax.tree.map(jnp.subtract, advection(around, domain, scheme), unmoved)


def _with_friction(
    acceleration: Velocity,
    velocity: Velocity,
    around: Velocity,
    equations: Equations,
    params: Params,
    carried: tuple[Any, jax.Array],
) -> Velocity:
    """Return the acceleration with that of explicit friction added, on the faces where velocity is an unknown."""
    domain = equations.domain
    if not equations.varies:
        viscosity = equations.implicit_part(params)
        friction = laplacian(around, domain, equations.explicit)
        return jax.tree.map(lambda a, f: a + viscosity * f, acceleration, friction)
    viscosity = field_at_centers(equations.viscosity, velocity, params, domain.grid.cells, carried)
    acceleration = jax.tree.map(jnp.add, acceleration, divergence_of_stress(around, viscosity, domain))
    if not equations.implicit:
        return acceleration
    part = equations.implicit_part(params)
    return jax.tree.map(lambda a, f: a - part * f, acceleration, laplacian(around, domain, equations.implicit))


def _on_all_faces(
    acceleration: jax.Array, velocity: Velocity, i: int, domain: Domain, side_values: PressureOnSides | None
) -> jax.Array:
    """Return one component on all faces, with the accelerations on outflow sides and on open sides."""
    if not any(side.leaves for side in domain.sides[i] or ()):
        acceleration = on_all_faces(acceleration, i, domain)
        return acceleration if side_values is None else pushed_along(i, acceleration, side_values, domain)
    ends = []
    for side in (0, 1):
        moved = (
            domain.side(i, side).acceleration(velocity, domain.place(i, side)) if (i, side) in domain.exits() else None
        )
        ends.append(jnp.zeros_like(end(acceleration, i, side)) if moved is None else moved)
    return with_ends(ends[0], acceleration, ends[1], i)
