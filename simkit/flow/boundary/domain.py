"""Domain of a flow: a grid, the kind of each of its sides, and the velocities and pressures given on them."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.settings import word
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.boundary.side_data import Boundary, BoundaryVelocity, Place, on_side, with_values
from simkit.flow.boundary.sides import Side
from simkit.flow.grid import Axis, Grid, Velocity, end, like, with_end
from simkit.flow.parts import SIDES
from simkit.plugins import Registry

type Sides = tuple[Side, Side]
WALL_SLOPES = ("parabola", "symmetric")


@dataclasses.dataclass(frozen=True, eq=False)
class Domain:
    """A staggered grid and its sides.

    ===========  =============================================  ==================================
    kind         velocity through the side                      velocity along the side
    ===========  =============================================  ==================================
    wall         0                                              that of the wall
    navier_slip  0                                              wall plus slip length times slope
    free_slip    0                                              no shear
    inflow       the given profile                              the given profile
    outflow      carried out by the mean outflow (Orlanski);    no change across the side
                 all inflow leaves through it, to round-off
    pressure     from the equations, with the given pressure    no change across the side
    ===========  =============================================  ==================================

    These kinds are known by name; others are objects, see `simkit.flow.boundary.sides.Side`.

    Velocities on the sides are traced: ``boundary[axis] = (lower, upper)``, each a tuple of one number or array for
    every component; arrays have one entry along the axis. A periodic axis has ``None``.

    The friction on sides that prescribe the velocity, and the diffusion through those that give a scalar a value, come
    from the slope between the value f_0 on the side and the nearest points, at the distances a and b::

        parabola    that of the parabola through f_0, f_a and f_b, on the side
        symmetric   (f_a - f_0)/a

    Both are exact for Couette flow on any grid, and solutions are of second order with both. The parabola is exact for
    Poiseuille flow on equal cells, where the symmetric slope leaves an error of h^2/4, and is the better one for steady
    flow, oscillating layers and heat. With the symmetric slope friction is self-adjoint: it takes from the energy the
    sum of the squares of all slopes, whatever the flow. That is the better one for small waves that live from the
    balance of energy, such as those of Tollmien and Schlichting. See docs/flow.md.

    Attributes:
        grid: the grid.
        sides: for each axis its lower and upper side, or ``None`` where it is periodic.
        wall_slope: "parabola" or "symmetric".

    Example:
        >>> axes = (flow.bounded_axis(8, 2.0), flow.bounded_axis(6, 1.0))
        >>> box = flow.domain(axes, (("inflow", "outflow"), ("wall", "wall")))
        >>> isinstance(box, flow.Domain), box.entrances(), box.exits()
        (True, [(0, 0)], [(0, 1)])
    """

    grid: Grid
    sides: tuple[Sides | None, ...]
    wall_slope: str = "parabola"

    def bounded(self) -> list[int]:
        """Return the axes that are not periodic."""
        return [i for i, sides in enumerate(self.sides) if sides is not None]

    @property
    def kinds(self) -> tuple[tuple[str, str] | None, ...]:
        """For each axis the names of the kinds of its lower and upper side, or ``None`` where it is periodic."""
        return tuple(None if pair is None else (pair[0].kind, pair[1].kind) for pair in self.sides)

    def side(self, axis: int, side: int) -> Side:
        """Return the lower (0) or upper (1) side of a bounded axis."""
        pair = self.sides[axis]
        assert pair is not None, "a periodic axis has no sides"
        return pair[side]

    def place(self, axis: int, side: int) -> Place:
        """Return the position of the lower (0) or upper (1) side of a bounded axis.

        Example:
            >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0))
            >>> upper = flow.domain(axes, (None, ("wall", "wall"))).place(1, 1)
            >>> upper.axis, upper.side
            (1, 1)
        """
        return Place(self.grid, axis, side, self.wall_slope)

    def entrances(self) -> list[tuple[int, int]]:
        """Return (axis, 0 or 1) of the sides on which the velocity through them is given."""
        return [(i, s) for i in self.bounded() for s in (0, 1) if self.side(i, s).enters]

    def exits(self) -> list[tuple[int, int]]:
        """Return (axis, 0 or 1) of the sides through which the flow leaves."""
        return [(i, s) for i in self.bounded() for s in (0, 1) if self.side(i, s).leaves]

    def open_sides(self) -> list[tuple[int, int]]:
        """Return (axis, 0 or 1) of the sides on which the pressure is given."""
        return [(i, s) for i in self.bounded() for s in (0, 1) if self.side(i, s).gives_pressure]

    def is_open(self, axis: int) -> tuple[bool, bool]:
        """Return whether the pressure is given on the lower and on the upper side of an axis."""
        pair = self.sides[axis]
        return (False, False) if pair is None else (pair[0].gives_pressure, pair[1].gives_pressure)

    def drawn_sides(self) -> np.ndarray:
        """Return names (4,) of how pictures of the x-y plane draw the left, right, lower and upper side."""
        drawn = [("periodic",) * 2 if pair is None else [side.drawn_as for side in pair] for pair in self.sides[:2]]
        return np.array([word for pair in drawn for word in pair])


def domain(
    axes: tuple[Axis, ...], sides: tuple[tuple[str | Side, str | Side] | None, ...], wall_slope: str = "parabola"
) -> Domain:
    """Return the domain with the given axes and sides.

    Args:
        axes: two or three axes.
        sides: the lower and upper side of each bounded axis, names of kinds or objects; ``None`` for a periodic one.
        wall_slope: "parabola" or "symmetric", see `Domain`.

    Raises:
        UserError: if sides do not fit the axes or each other, or a name is unknown.

    Example:
        >>> axes = (flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0))
        >>> channel = flow.domain(axes, (None, ("wall", "wall")))
        >>> channel.grid.cells, [side.kind for side in channel.sides[1]]
        ((8, 6), ['wall', 'wall'])
    """
    if len(axes) not in (2, 3) or [axis.periodic for axis in axes] != [pair is None for pair in sides]:
        kinds = " and ".join("a periodic" if axis.periodic else "a bounded" for axis in axes)
        raise UserError(
            f"sides = {sides!r} for {kinds} axis; give two or three axes, None for each periodic and a pair for each "
            "bounded one"
        )
    word("of walls", tuple(WALL_SLOPES)).check(wall_slope, "wall_slope")
    pairs = tuple(None if pair is None else known_sides(pair, i, "", SIDES, Side) for i, pair in enumerate(sides))
    built = Domain(Grid(tuple(axes)), pairs, wall_slope)
    _check_passage(built)
    return built


def _check_passage(built: Domain) -> None:
    """Refuse sides of which what passes through them does not follow: in without a way out, or two ways out."""
    entrances, exits, opens = built.entrances(), built.exits(), built.open_sides()
    both = "gives both the pressure and the velocity through it; choose one"
    problems = [(side, both) for side in opens if side in entrances or side in exits]
    if exits and opens:
        shared = "is beside one that gives the pressure: how much leaves through each is not said; give it on both"
        problems.append((exits[0], shared))
    elif len(entrances) == 1 and not (exits or opens):
        # Of several inflows some may lead out.
        problems.append((entrances[0], "lets the flow in, and nothing lets it out; make another side an 'outflow'"))
    elif exits and not entrances:
        problems.append((exits[0], "lets the flow out, and nothing lets it in; make another side an 'inflow'"))
    if problems:
        (axis, side), problem = problems[0]
        key = f"axes.{'xyz'[axis]}.{('lower', 'upper')[side]}"
        what = f"{built.place(axis, side).name}, of kind '{built.side(axis, side).kind}',"
        raise UserError(f"{what} {problem}", key=key)


def known_sides[T](pair: tuple[str | T, str | T], axis: int, of: str, known: Registry, kind: type[T]) -> tuple[T, T]:
    """Return the sides of a bounded axis, those that are named made of their parts.

    Args:
        pair: the lower and the upper side, names or objects.
        axis: the axis.
        of: owner of the sides in messages: "" or " of the scalar".
        known: sides by name.
        kind: class of the objects.

    Raises:
        UserError: if there are not two, or one is unknown.
    """
    names, where = known.names(), f"{of} on axis {'xyz'[axis]}" if of else f" of axis {'xyz'[axis]}"
    problem = [f"sides[{axis}] = {pair!r}{of}; axis {'xyz'[axis]} has a lower and an upper side, give both"]
    if isinstance(pair, tuple | list) and len(pair) == 2:
        made = tuple(_named(side, known) if isinstance(side, str) and side in names else side for side in pair)
        wrong = [side for side in made if not isinstance(side, kind)]
        if not wrong:
            return made  # type: ignore[return-value]
        if isinstance(wrong[0], type):
            problem = [f"side '{wrong[0].kind}'{where} holds data; in place of its name give {wrong[0].__name__}(...)"]
        else:
            problem = [f"side '{wrong[0]}'{where} is unknown", nearest(str(wrong[0]), names)]
    raise UserError(*problem)


def _named(name: str, known: Registry) -> Any:
    """Return the side of a name, or its class where it holds data of its own."""
    kind = known.resolve(name)
    needed = [field for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    return kind if needed else kind()


def same(one: Domain, other: Domain) -> bool:
    """Return whether two domains have the same axes, sides and slopes at walls."""
    if one is other:
        return True
    if (one.sides, one.wall_slope, one.grid.cells) != (other.sides, other.wall_slope, other.grid.cells):
        return False
    axes = zip(one.grid.axes, other.grid.axes, strict=True)
    return all(a.periodic == b.periodic and np.array_equal(a.faces, b.faces) for a, b in axes)


def check_same(name: str, one: Domain, other: Domain) -> None:
    """Refuse a part of a flow that has another domain.

    Args:
        name: of the part, for messages.
        one: its domain.
        other: that of the flow.

    Raises:
        UserError: naming the part.
    """
    if not same(one, other):
        raise UserError(f"the domain of {name} is not that of the flow; build both with one domain")


def no_motion(domain: Domain) -> BoundaryVelocity:
    """Return the boundary velocity of sides at rest.

    Example:
        >>> axes = (flow.periodic_axis(8, 1.0), flow.bounded_axis(6, 1.0))
        >>> flow.no_motion(flow.domain(axes, (None, ("wall", "wall"))))
        (None, ((0.0, 0.0), (0.0, 0.0)))
    """
    rest = (0.0,) * domain.grid.dimension
    return tuple(None if sides is None else (rest, rest) for sides in domain.sides)


def prescribe(
    velocity: Velocity, boundary: BoundaryVelocity, domain: Domain, made: jax.Array | float = 0.0
) -> Velocity:
    """Return the velocity with its prescribed values on the sides, and with the outflow balancing the inflow.

    Where the velocity through all sides is given, that of the fluid that leaves is scaled by one factor, which is 1 to
    round-off if the given flows balance, see `passing`.

    Args:
        velocity: any velocity; its values on outflow sides are shifted by one constant.
        boundary: velocity on the sides.
        domain: the domain.
        made: volume per time that sources add inside.
    """
    components = list(velocity)
    outflows, entrances = domain.exits(), domain.entrances()
    is_given = bool(entrances) and not outflows and not domain.open_sides()
    entering, leaving = passing(boundary, domain, velocity[0].dtype)
    factor = entering / jnp.where(leaving > 0, leaving, 1)
    for axis, side in entrances:
        face = _given_face(boundary, domain, axis, side, velocity[axis].dtype)
        if is_given:
            leaves = domain.place(axis, side).outward * face > 0
            face = jnp.where(leaves, face * factor, face)
        components[axis] = with_end(components[axis], face, axis, side)
    if outflows:
        surplus = sum(domain.place(axis, side).flux(components) for axis in domain.bounded() for side in (0, 1)) - made
        area = sum(domain.place(*which).area for which in outflows)
        for axis, side in outflows:
            face = end(components[axis], axis, side) - domain.place(axis, side).outward * surplus / area
            components[axis] = with_end(components[axis], face, axis, side)
    return tuple(components)


def passing(boundary: BoundaryVelocity, domain: Domain, dtype) -> tuple[jax.Array, jax.Array]:
    """Return the volumes per time that enter and leave through all sides on which the velocity is given.

    Args:
        boundary: velocity on the sides.
        domain: the domain.
        dtype: of the result.
    """
    entering, leaving = jnp.zeros((), dtype), jnp.zeros((), dtype)
    for axis, side in domain.entrances():
        place = domain.place(axis, side)
        outward = place.outward * _given_face(boundary, domain, axis, side, dtype)
        both = (jnp.maximum(-outward, 0), jnp.maximum(outward, 0))
        inward, out = (place.outward * place.flux([part] * domain.grid.dimension) for part in both)
        entering, leaving = entering + inward, leaving + out
    return entering, leaving


def _given_face(boundary: BoundaryVelocity, domain: Domain, axis: int, side: int, dtype) -> jax.Array:
    """Return the given velocity through a side, as one layer."""
    entering = jnp.asarray(on_side(boundary, axis, side)[axis], dtype)
    return jnp.broadcast_to(entering, tuple(1 if i == axis else n for i, n in enumerate(domain.grid.cells)))


def velocity_on_sides(boundary: Boundary | None, domain: Domain, params: Params, time: jax.Array) -> BoundaryVelocity:
    """Return the checked velocity on the sides at a time, with the sides' own values; at rest by default.

    Args:
        boundary: ``(params, time) -> velocity on the sides``; ``None`` for sides at rest.
        domain: the domain.
        params: parameters.
        time: the time.

    Raises:
        UserError: if a side is given a component that its kind does not use.
    """
    side_values = no_motion(domain) if boundary is None else checked_boundary(boundary(params, time), domain)
    return with_values(side_values, domain.sides, params, time)


def checked_boundary(boundary: BoundaryVelocity, domain: Domain) -> BoundaryVelocity:
    """Return the velocity on the sides, after checking that each given number is used by its side.

    A wall uses the tangential velocity, an inflow the whole velocity; a free-slip side and an outflow use none, see
    `simkit.flow.boundary.sides.Side`. A component that a side does not use must be the Python number 0, not a
    traced array.

    Args:
        boundary: ``boundary[axis] = (lower, upper)``, for each side one number or array per component; None where the
            axis is periodic.
        domain: the domain.

    Raises:
        UserError: if an entry is missing, superfluous or unused; names the side.
    """
    dimension = domain.grid.dimension
    for axis, side, side_values in entries_on_sides("boundary", boundary, domain):
        what = domain.side(axis, side)
        here = f"{domain.place(axis, side).name}, which is of kind '{what.kind}',"
        unused, problem = [], f"{_entries_of(side_values)} and not {dimension} components"
        if _count(side_values) == dimension:
            uses = [what.enters if component == axis else what.takes_along for component in range(dimension)]
            unused = [i for i, value in enumerate(side_values) if not uses[i] and not _is_zero(value)]
            if not unused:
                continue
            problem = f"a velocity along {'xyz'[unused[0]]}, which it does not use; give the number 0"
        remedy = ", or make the side an inflow" if axis in unused[:1] else ""
        raise UserError(f"boundary gives {here} {problem}{remedy}")
    return boundary


def entries_on_sides(name: str, side_values: Any, domain: Domain) -> Iterator[tuple[int, int, Any]]:
    """Yield (axis, 0 or 1, entry) of data on the sides, which is a pair for each bounded axis and None for the others.

    Args:
        name: of the data, for messages.
        side_values: the data.
        domain: the domain.

    Raises:
        UserError: if a pair is missing or superfluous.
    """
    wanted = [0 if pair is None else 2 for pair in domain.sides]
    counts = (
        [0 if pair is None else _count(pair) for pair in side_values] if isinstance(side_values, tuple | list) else None
    )
    if counts != wanted:
        raise UserError(
            f"{name} gives {_entries_of(side_values)}, with {counts} of their own; give one for each axis: None for a "
            f"periodic one, a pair for the lower and the upper side of a bounded one, {wanted}"
        )
    for axis, pair in enumerate(side_values):
        for side, entry in enumerate(pair or ()):
            yield axis, side, entry


def _count(value: object) -> int:
    """Return the number of entries of a tuple or list; -1 for anything else."""
    return len(value) if isinstance(value, tuple | list) else -1


def _entries_of(value: object) -> str:
    """Return how many entries a tuple or list has, or the value itself, for a message."""
    return f"{len(value)} entries" if isinstance(value, tuple | list) else repr(value)


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Tracer) and not np.any(np.asarray(value))


# For each axis the pressure on its lower and upper side, numbers or arrays of one layer; None where it is periodic.
type PressureOnSides = tuple[tuple[jax.Array | float, jax.Array | float] | None, ...]
type SidePressure = Callable[[Params, jax.Array], PressureOnSides]


def pressure_on_sides(
    side_values: SidePressure | None, domain: Domain, params: Params, time: jax.Array
) -> PressureOnSides:
    """Return the pressure on the sides at a time, checked; zero by default.

    Args:
        side_values: ``(params, time) -> pressure``; None for zero on every open side.
        domain: the domain.
        params: parameters.
        time: the time.

    Raises:
        UserError: if an entry is missing, or given for a side that does not use it; names the side.
    """
    if side_values is None:
        return tuple(None if pair is None else (0.0, 0.0) for pair in domain.sides)
    pressure = side_values(params, time)
    for axis, side, value in entries_on_sides("side_pressure", pressure, domain):
        if not domain.side(axis, side).gives_pressure and not _is_zero(value):
            raise UserError(
                f"side_pressure is given on {domain.place(axis, side).name}, which is of kind "
                f"'{domain.side(axis, side).kind}'; give the number 0, or make the side a 'pressure' side"
            )
    return pressure


def pushed(acceleration: Velocity, pressure: PressureOnSides, domain: Domain) -> Velocity:
    """Return an acceleration on all faces, with the part due to the pressure on the open sides added.

    The distance between a side and the nearest centers is half a cell, so that the pressure P on the side adds
    ``2 P/width`` to the acceleration into the domain. The part due to the pressure at the centers is subtracted by
    `simkit.flow.operators.differences.gradient`.

    Args:
        acceleration: of each component, on all faces.
        pressure: on the sides.
        domain: the domain.
    """
    return tuple(pushed_along(i, f, pressure, domain) for i, f in enumerate(acceleration))


def pushed_along(axis: int, f: jax.Array, pressure: PressureOnSides, domain: Domain) -> jax.Array:
    """Return the component of `pushed` along an axis."""
    for side in (0, 1):
        pair = pressure[axis]
        if pair is None or not domain.is_open(axis)[side]:
            continue
        place = domain.place(axis, side)
        layer = end(f, axis, side) - place.outward * 2 / place.width * like(f, pair[side])
        f = with_end(f, layer, axis, side)
    return f
