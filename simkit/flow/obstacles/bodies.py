"""Bodies in a flow: their positions, loads, interior fluid and clearance, for every method."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once, precise_product
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import control_volumes, integral
from simkit.flow.grid import Velocity, like
from simkit.flow.obstacles.body import Body, Kinematics, turned
from simkit.flow.obstacles.checks import CLEAR, at_time, check_apart, check_obstacle, check_scalar, distances_from
from simkit.flow.obstacles.distance import distance_and_normal, indicator, positions
from simkit.flow.obstacles.shapes import Shape
from simkit.flow.obstacles.stage import BodiesInStep, Inertia, Moment, Obstacle, Stage
from simkit.flow.operators.differences import inside, total

if TYPE_CHECKING:
    from simkit.flow.equations import Equations, Scalar


class Moments(NamedTuple):
    """Integrals over a body of 1, of the arm a from the pivot, and of a a.

    Attributes:
        volume: number.
        first: ``(dimension,)``.
        second: ``(dimension, dimension)``.
    """

    volume: jax.Array
    first: jax.Array
    second: jax.Array


def moments(body: Body, now: Kinematics, domain: Domain, params: Params, dtype) -> Moments:
    """Return the volume and the moments of a body.

    Args:
        body: the body.
        now: position and velocity of the body.
        domain: the domain.
        params: parameters.
        dtype: of the result.
    """
    grid = domain.grid
    part = indicator(body.shape_at(params, now, domain), None, grid, dtype)
    for i, axis in enumerate(grid.axes):
        part = part * like(part, grid.along(axis.widths, i))
    arm = body.arm([like(part, p) for p in positions(None, grid)], now, domain)
    first = [jnp.sum(part * a) for a in arm]
    second = [[jnp.sum(part * a * b) for b in arm] for a in arm]
    return Moments(jnp.sum(part), jnp.stack(first), jnp.stack([jnp.stack(row) for row in second]))


def gained_inside(
    body: Body,
    domain: Domain,
    params: Params,
    before: tuple[jax.Array, Velocity],
    after: tuple[jax.Array, Velocity],
) -> jax.Array:
    """Return the increase of momentum and angular momentum of the fluid inside a body, less that due to its motion.

    The momentum of an incompressible fluid in a closed container follows from the motion of the container alone: it is
    its volume times the velocity of its centroid, whatever the fluid does. The angular momentum about the pivot is that
    of a rigid interior, and where the body turns that of the flow relative to it, summed over the grid. As the pivot
    moves on, the torque about it is the rate of change of angular momentum plus ``velocity x momentum``.

    Args:
        body: a moving body.
        domain: the domain.
        params: parameters.
        before: a time, and the velocity of the flow at that time.
        after: a later time, likewise.
    """
    times = before[0], after[0]
    dtype = after[1][0].dtype
    places = [body.now(params, t) for t in times]
    last = moments(body, places[1], domain, params, dtype)
    # Moments are summed over the grid once and transformed to the other time: sums at two positions would differ by
    # discretization errors.
    held = [_transformed(last, places[1], place) for place in places]
    totals = [_rigid(m, place) for m, place in zip(held, places, strict=True)]
    dimension = domain.grid.dimension
    change = totals[1] - totals[0]
    if body.motion is not None and (body.motion.angle is not None or body.spin is not None):
        one, other = (
            _relative(body, place, domain, params, velocity)
            for place, (_, velocity) in zip(places, (before, after), strict=True)
        )
        change = change.at[dimension:].add(other - one)
    drift = [_turn(jnp.outer(_velocity(p), t[:dimension])) for p, t in zip(places, totals, strict=True)]
    return change.at[dimension:].add((drift[0] + drift[1]) / 2 * (times[1] - times[0]))


def kept_inside(
    body: Body,
    domain: Domain,
    params: Params,
    before: tuple[jax.Array, jax.Array],
    after: tuple[jax.Array, jax.Array],
) -> jax.Array:
    """Return the increase of the amount of a scalar in the fluid inside a body.

    Args:
        body: the body.
        domain: the domain.
        params: parameters.
        before: a time, and the scalar at the cell centers at that time.
        after: a later time, likewise.
    """
    parts = [
        indicator(body.shape_at(params, body.now(params, time), domain), None, domain.grid, scalar.dtype)
        for time, scalar in (before, after)
    ]
    mean = integral(parts[0] * before[1], domain.grid) / integral(parts[0], domain.grid)
    # Relative to the earlier mean, so that errors of the body's volume on the grid, which vary as it moves, drop out.
    return integral(parts[1] * (after[1] - mean), domain.grid)


def rate_inside(body: Body, domain: Domain, params: Params, time: jax.Array, rate: jax.Array | float) -> jax.Array:
    """Return the integral over a body of a rate per volume.

    Args:
        body: the body.
        domain: the domain.
        params: parameters.
        time: time.
        rate: at the cell centers at that time, a number or an array.
    """
    inside = indicator(body.shape_at(params, body.now(params, time), domain), None, domain.grid, time.dtype)
    return integral(inside * rate, domain.grid)


def _transformed(m: Moments, known: Kinematics, wanted: Kinematics) -> Moments:
    """Return the moments of a body moved from one position to another."""
    dimension = len(m.first)
    size = 1.0 if known.size is None or wanted.size is None else wanted.size / known.size
    identity = jnp.eye(dimension, dtype=m.first.dtype)
    angle = None if known.angle is None or wanted.angle is None else wanted.angle - known.angle
    matrix = size * jnp.stack([jnp.stack(turned(list(row), angle)) for row in identity], axis=1)
    volume = size**dimension
    return Moments(
        volume * m.volume,
        precise_product(volume * matrix, m.first),
        precise_product(volume * matrix, m.second, matrix.T),
    )


def _rigid(m: Moments, now: Kinematics) -> jax.Array:
    """Return the momentum and the angular momentum about the pivot of fluid that moves with the body."""
    velocity, slopes = _velocity(now), now.gradient(len(m.first)).astype(m.first.dtype)
    momentum = m.volume * velocity + precise_product(slopes, m.first)
    return jnp.concatenate([momentum, _turn(jnp.outer(m.first, velocity) + precise_product(m.second, slopes.T))])


def _relative(body: Body, now: Kinematics, domain: Domain, params: Params, velocity: Velocity) -> jax.Array:
    """Return the angular momentum about the pivot of the fluid's motion relative to the body."""
    grid = domain.grid
    shape = body.shape_at(params, now, domain)
    products = []
    for i, f in enumerate(velocity):
        inner = inside(f, i, grid)
        arm = body.arm([like(f, p) for p in positions(i, grid)], now, domain)
        moved = indicator(shape, i, grid, f.dtype) * (inner - now.component(i, arm)) * like(f, control_volumes(i, grid))
        products.append(jnp.stack([jnp.sum(a * moved) for a in arm]))
    return _turn(jnp.stack(products, axis=1))


def _velocity(now: Kinematics) -> jax.Array:
    assert now.velocity is not None, "the body moves"
    return jnp.stack(now.velocity)


def _turn(product: jax.Array) -> jax.Array:
    """Return ``a x b`` of the matrix of products ``a_i b_j``: 1 number in the plane, 3 in space."""
    planes = ((0, 1),) if len(product) == 2 else ((1, 2), (2, 0), (0, 1))
    return jnp.stack([product[i, j] - product[j, i] for i, j in planes])


@dataclasses.dataclass(frozen=True, eq=False)
class Bodies(Obstacle):
    """One body or several in a flow.

    Attributes:
        domain: the domain.
        bodies: by name, in the order of their loads.
    """

    domain: Domain
    bodies: Mapping[str, Body]

    @property
    def turns(self) -> int:
        """Number of components of force and torque on a body: 3 in the plane, 6 in space."""
        return 3 if self.domain.grid.dimension == 2 else 6

    @property
    def scalars(self) -> tuple[str | None, ...]:
        """Names of the scalars that bodies act on; None for a single one without a name."""
        return tuple(next(iter(self.bodies.values())).surfaces)

    @property
    def loads(self) -> int:
        """Number of components of force and torque on all bodies, and of the amounts of a scalar that they give."""
        return (self.turns + len(self.scalars)) * len(self.bodies)

    @property
    def moves(self) -> bool:
        """Whether any body moves."""
        return any(body.motion is not None for body in self.bodies.values())

    @property
    def swells(self) -> bool:
        """Whether a body changes its size."""
        return any(body.motion is not None and body.motion.size is not None for body in self.bodies.values())

    @property
    def reach(self) -> float:
        """Distance from the surface, in spacings, within which the method disturbs the pressure."""
        return 0.0

    def load_on(self, name: str, load: jax.Array) -> jax.Array:
        """Return force and torque on one body: ``(F_x, F_y, M)``, in space ``(F_x, F_y, F_z, M_x, M_y, M_z)``.

        Args:
            name: of the body.
            load: loads of all bodies, ``FlowState.load``.
        """
        index = list(self.bodies).index(name)
        return load[index * self.turns : (index + 1) * self.turns]

    def heat_of(self, name: str, load: jax.Array, scalar: str | None = None) -> jax.Array:
        """Return the amount of a scalar that one body gives to the surrounding fluid per time.

        What a source of the scalar produces inside the body is no part of it.

        Args:
            name: of the body.
            load: loads of all bodies, ``FlowState.load``.
            scalar: name of the scalar, if there are several.
        """
        count = len(self.bodies)
        return load[count * (self.turns + self.scalars.index(scalar)) + list(self.bodies).index(name)]

    def shapes(self, params: Params, time: jax.Array | float = 0.0) -> dict[str, Shape]:
        """Return the shapes of all bodies at their positions at a time."""
        return {name: shape(params, jnp.asarray(time)) for name, shape in self._shapes_at.items()}

    def distance(self, params: Params, time: jax.Array | float) -> jax.Array:
        """Return the signed distance of the cell centers from the nearest body, negative inside."""
        # The barrier keeps the compiler from folding constants, with a rounding that differs between programs.
        points = computed_once([jnp.asarray(p, jnp.asarray(time).dtype) for p in positions(None, self.domain.grid)])
        distances = [distance_and_normal(shape, points)[0] for shape in self.shapes(params, time).values()]
        nearest = distances[0]
        for other in distances[1:]:
            nearest = jnp.minimum(nearest, other)
        return computed_once(nearest)

    def fluid(self, component: int | None, params: Params, time: jax.Array | float) -> jax.Array:
        """Return the fraction of the volume that is fluid at a time, from 0 in bodies to 1 outside them.

        Args:
            component: of the velocity, for the volumes around its inner faces; None for the cells.
            params: parameters.
            time: the time, scalar.
        """
        dtype, shapes = jnp.asarray(time).dtype, self.shapes(params, time).values()
        bodies = total(indicator(shape, component, self.domain.grid, dtype) for shape in shapes)
        # The indicator leaves the range from 0 to 1 beside the surface, where a mean needs weights that are positive.
        return 1 - jnp.clip(bodies, 0, 1)

    def check(self, params: Params, times: Sequence[float] = (0.0,)) -> None:
        """Refuse bodies that do not fit into their domain, or come too close to each other.

        Args:
            params: the values to run with.
            times: times of the check, by default the start.

        Raises:
            UserError: names the body, and the time if that is not the start.
        """
        for body in self.bodies.values():
            # Shapes refuse numbers that do not fit each other where these are not traced.
            body.shape(params)
        for time in times:
            with at_time(time):
                self.check_places(params, time)

    def check_places(self, params: Params, time: float) -> None:
        """Refuse bodies that do not fit at a time."""
        now = jnp.asarray(time, float)
        distances = {}
        for (name, body), position in zip(self.bodies.items(), self._positions(params, now), strict=True):
            shape = distances_from(self._shapes_at[name], params, now)
            distances[name] = check_obstacle(shape, self.domain, position, name, position, body.attached)
        check_apart(distances, self.domain)

    @functools.cached_property
    def _positions(self) -> Callable[[Params, jax.Array], list[tuple]]:
        return jax.jit(lambda params, time: [body.now(params, time).position for body in self.bodies.values()])

    @functools.cached_property
    def _shapes_at(self) -> dict[str, Callable[[Params, jax.Array], Shape]]:
        """Functions of parameters and time that return the shape of each body, always the same ones."""

        def of(body: Body) -> Callable[[Params, jax.Array], Shape]:
            return lambda params, time: body.shape_at(params, body.now(params, time), self.domain)

        return {name: of(body) for name, body in self.bodies.items()}

    def check_equations(self, equations: "Equations") -> None:
        """Refuse equations that bodies do not support.

        Raises:
            UserError: names the unsupported part.
        """
        check_scalar(equations, {name: tuple(body.surfaces) for name, body in self.bodies.items()}, self.swells)
        if self.swells and not (equations.domain.exits() or equations.domain.open_sides()):
            raise UserError(
                "a body changes its size, but no fluid can leave the domain; make one side an outflow or a pressure "
                "side, or give its motion no size"
            )

    def crossing_rate(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the largest number of cells per time that points of bodies cross; None where all are at rest.

            max over the cell centers inside of |U|/dx + |V|/dy + |W|/dz

        Args:
            params: parameters.
            time: the time, scalar.
        """
        grid, rates = self.domain.grid, []
        points = [like(time, p) for p in positions(None, grid)]
        for body in self.bodies.values():
            if body.motion is None and body.spin is None:
                continue
            now = body.now(params, time)
            arm = body.arm(points, now, self.domain)
            parts = [now.component(i, arm) * like(time, grid.along(1 / a.widths, i)) for i, a in enumerate(grid.axes)]
            inside = distance_and_normal(body.shape_at(params, now, self.domain), points)[0] < 0
            rates.append(jnp.max(jnp.where(inside, total(jnp.abs(part) for part in parts), 0)))
        return functools.reduce(jnp.maximum, rates) if rates else None

    def source(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the divergence that fills the insides of bodies that change their size; None where none does."""
        if not self.swells:
            return None
        fields = []
        for body in self.bodies.values():
            now, grid = body.now(params, time), self.domain.grid
            if now.growth is None:
                continue
            shape = body.shape_at(params, now, self.domain)
            fields.append(grid.dimension * now.growth * indicator(shape, None, grid, jnp.asarray(time).dtype))
        return total(fields)

    def during(self, params: Params, data: Any, time: jax.Array) -> "MethodInStep":
        """Return the bodies during the step that begins at a time, from the result of `prepare`."""
        return MethodInStep(self, params, self.at(params, data, time))

    def at(self, params: Params, data: Any, time: jax.Array) -> Any:
        """Return data for the step that begins at a time, from the result of `prepare`; by default the same."""
        return data

    def inertia(self, params: Params, data: Any, time: jax.Array) -> Inertia | None:
        """Return the velocity that advection carries at a time of a step; by default None: all of it, inside too."""
        return None

    def begin(
        self, velocity: Velocity, params: Params, data: Any, time: jax.Array, length: jax.Array
    ) -> tuple[Velocity, jax.Array]:
        """Return the velocity after what the bodies do to it once a step, by default nothing, and the momentum removed.

        Args:
            velocity: at the start of the step.
            params: parameters.
            data: the result of `at`.
            time: at the start of the step.
            length: of the step.
        """
        return velocity, jnp.zeros(self.turns * len(self.bodies), velocity[0].dtype)

    def impose(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, params: Params, data: Any, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity with the bodies' conditions imposed, the pressure, and the momentum removed.

        Args:
            velocity: at the end of the stage, before projection.
            before: at its start.
            pressure: at its start; zero if its gradient is already in the velocity.
            params: parameters.
            data: the result of `at`.
            stage: of the time step.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, eq=False)
class MethodInStep(BodiesInStep):
    """Bodies during one time step, with the method that imposes their conditions.

    Attributes:
        bodies: the bodies, with the method that imposes their conditions.
        params: parameters.
        data: the method's data for the step.
    """

    bodies: Bodies
    params: Params
    data: Any

    def begin(self, velocity: Velocity, time: jax.Array, length: jax.Array) -> tuple[Velocity, jax.Array]:
        """Return the velocity at the start of the step after what the bodies do to it, and the loads of that."""
        velocity, momentum = self.bodies.begin(velocity, self.params, self.data, time, length)
        return velocity, jnp.pad(momentum, (0, self.bodies.loads - len(momentum)))

    def inertia(self, time: jax.Array) -> Inertia | None:
        """Return the velocity that advection carries at a time; None for all of it."""
        return self.bodies.inertia(self.params, self.data, time)

    def source(self, time: jax.Array) -> jax.Array | None:
        """Return the divergence that fills the insides of bodies that change their size; None where none does."""
        return self.bodies.source(self.params, time)

    def project(
        self, velocity: Velocity, before: Velocity, pressure: jax.Array, stage: Stage
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the solenoidal velocity that meets the bodies' conditions, the pressure, and the momentum removed."""
        return self.bodies.impose(velocity, before, pressure, self.params, self.data, stage)

    def impose_scalar(self, scalar: Any, before: Any, carried: "Scalar", time: jax.Array) -> tuple[Any, jax.Array]:
        """Return a scalar (or several by name) with the bodies' conditions imposed, and the amount added by each body.

        Args:
            scalar: at the cell centers, at the end of the stage.
            before: that at the start of the stage.
            carried: the scalar as the equations have it.
            time: at the end of the stage.
        """
        spreads, domain = carried.diffusivity_at(before, self.params, time), self.bodies.domain
        added, imposed = [], scalar
        for name in self.bodies.scalars:
            now, at_start, diffusivity = (of_name(every, name) for every in (scalar, before, spreads))
            changed = now
            for body in self.bodies.bodies.values():
                shape = body.shape_at(self.params, body.now(self.params, time), domain)
                surface = body.surfaces[name]
                change = surface.force(now, at_start, shape, domain, diffusivity, self.params, time)
                changed = changed + change
                added.append(integral(change, domain.grid))
            imposed = changed if name is None else {**imposed, name: changed}
        return imposed, jnp.stack(added)

    def received(self, impulse: jax.Array, before: Moment, after: Moment, carried: "Scalar | None") -> jax.Array:
        """Return the impulse on each body and the amounts that it gave, without what the fluid inside it took.

        Args:
            impulse: momentum removed from the flow in the step, and amounts of scalars added to it.
            before: time, velocity and scalar at the start of the step.
            after: those at its end.
            carried: the scalar as the equations have it; None without one.
        """
        bodies, params = self.bodies.bodies.values(), self.params
        if self.bodies.moves:
            nothing = jnp.zeros(self.bodies.turns, impulse.dtype)
            gained = [
                nothing
                if body.motion is None
                else gained_inside(body, self.bodies.domain, params, before[:2], after[:2])
                for body in bodies
            ]
            impulse = impulse.at[: self.bodies.turns * len(bodies)].add(jnp.concatenate(gained))
        if carried is None:
            return impulse
        kept = [self._kept(body, name, before, after) for name in self.bodies.scalars for body in bodies]
        momentum, made = -jnp.stack(kept), self._produced(before, after, carried)
        return impulse.at[-len(kept) :].add(momentum if made is None else momentum + made)

    def _kept(self, body: Body, name: str | None, before: Moment, after: Moment) -> jax.Array:
        """Return the increase of the amount of a scalar in the fluid inside a body."""
        (start, _, first), (end, _, last) = before, after
        times = (start, of_name(first, name)), (end, of_name(last, name))
        return kept_inside(body, self.bodies.domain, self.params, *times)

    def _produced(self, before: Moment, after: Moment, carried: "Scalar") -> jax.Array | None:
        """Return the amount of each scalar that its source produces inside each body; None if no scalar has a source.

        It is integrated over the step by the trapezoidal rule.
        """
        at_start, at_end = (carried.production(c, velocity, self.params, time) for time, velocity, c in (before, after))
        sources = {name: (of_name(at_start, name), of_name(at_end, name)) for name in self.bodies.scalars}
        if all(rate is None for rate, _ in sources.values()):
            return None

        def made(body: Body, at_start: Any, at_end: Any) -> jax.Array:
            if at_start is None:
                return jnp.zeros_like(after[0])
            at = (before[0], at_start), (after[0], at_end)
            rates = [rate_inside(body, self.bodies.domain, self.params, *moment) for moment in at]
            return (rates[0] + rates[1]) / 2 * (after[0] - before[0])

        return jnp.stack([made(body, *both) for both in sources.values() for body in self.bodies.bodies.values()])


def of_name(scalars: Any, name: str | None) -> Any:
    """Return the entry of the scalar of a name; the argument itself for a single scalar without a name."""
    return scalars if name is None else scalars[name]


def are_clear(bodies: Bodies, params: Params, time: jax.Array) -> jax.Array:
    """Return whether at least two cells lie between every body and the sides, and between any two bodies; a boolean.

    Args:
        bodies: of a flow.
        params: parameters.
        time: time of the check, scalar.
    """
    grid, shapes = bodies.domain.grid, bodies.shapes(params, time)
    centers = [like(time, p) for p in positions(None, grid)]
    moving = [body for body in bodies.bodies.values() if body.motion is not None and not body.attached]
    places = [body.now(params, time).position for body in moving]
    spare = [jnp.asarray(jnp.inf, time.dtype)]
    for i, side in itertools.product(bodies.domain.bounded(), (0, -1)):
        axis = grid.axes[i]
        points = [
            jnp.full((1,) * grid.dimension, like(time, axis.faces[side])) if k == i else p
            for k, p in enumerate(centers)
        ]
        spare += [
            jnp.min(distance_and_normal(shape, points)[0]) - CLEAR * axis.widths[side]
            for name, shape in shapes.items()
            if not bodies.bodies[name].attached
        ]
        # A body outside the domain has a large distance from the side too, hence the second condition.
        spare += [(place[i] - axis.faces[side]) * (1 if side == 0 else -1) for place in places]
    if len(shapes) > 1:
        distances = [distance_and_normal(shape, centers)[0] for shape in shapes.values()]
        widths = functools.reduce(jnp.maximum, [like(time, grid.along(a.widths, i)) for i, a in enumerate(grid.axes)])
        spare += [jnp.min(a + b - CLEAR * widths) for a, b in itertools.combinations(distances, 2)]
    return jnp.min(jnp.stack(spare)) >= 0
