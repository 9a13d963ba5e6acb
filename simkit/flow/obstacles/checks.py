"""Refusing bodies that do not fit into their domain."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError, within
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.shapes import Point, Shape
from simkit.flow.scalar import TransportedScalar, TransportedScalars

if TYPE_CHECKING:
    from simkit.flow.equations import Equations

# Least number of cells between a body and a side, and between two bodies.
CLEAR = 2
# Points along each axis, two cells, among which the deepest point of a body is found to an eighth of a cell.
LOOKS = 17
# Keeps the midpoint between two images on one side of the jump from the one to the other.
ROUNDING = 1e-6
# Least thickness of a body in cells: the forced shells on both sides, one spacing each, and one spacing between.
NARROWEST = 3


# ``(*places) -> distances`` of points from a body: coordinates that broadcast against each other, of several sets.
type Distances = Callable[..., list[np.ndarray]]


def at_time(time: float) -> contextlib.AbstractContextManager[None]:
    """Name the time in what a block refuses, unless it is the start."""
    return within(f"at time {time:g}: " if time else "")


def distances_from(shape: Callable[..., Shape], *arguments: Any) -> Distances:
    """Return the distances of points from the shape that a function returns, all sets of points in one program.

    One program compiles faster than each of its operations; it serves all arguments of the same function.
    """
    return functools.partial(_distances_from, shape, arguments)


def _distances_from(shape: Callable[..., Shape], arguments: tuple, *places: Sequence[jax.Array]) -> list[np.ndarray]:
    return [np.asarray(distance) for distance in _compiled(shape)(arguments, places)]


@functools.lru_cache(maxsize=32)
def _compiled(shape: Callable[..., Shape]) -> Callable[..., list[jax.Array]]:
    return jax.jit(lambda arguments, places: [distance_and_normal(shape(*arguments), x)[0] for x in places])


def check_obstacle(
    shape: Distances,
    domain: Domain,
    across: Point | None = None,
    name: str = "obstacle",
    position: Sequence[jax.Array | float] | None = None,
    attached: bool = False,
) -> np.ndarray:
    """Refuse a body that is outside the domain, fills it, touches one of its sides, or is too small for its cells.

    Returns the distances of the cell centers from it.

    Args:
        shape: distances from the body, with the values it would run with.
        domain: the domain.
        across: pivot of a body that may cross the ends of periodic axes but not meet its own images, unless it is the
            same everywhere along an axis: an endless one.
        name: name of the body in messages.
        position: of the body, for messages.
        attached: whether it may touch sides whose velocity is given, and reach through them.

    Raises:
        UserError: names the body and the violated condition.
    """
    grid, what = domain.grid, "the obstacle" if name == "obstacle" else f"obstacle '{name}'"
    centers = [jnp.asarray(p, dtype=float) for p in positions(None, grid)]
    sides = []
    for i, axis in enumerate(grid.axes):
        ends = [(face, float(axis.widths[k])) for face, k in ((axis.faces[0], 0), (axis.faces[-1], -1))]
        if across is not None and axis.periodic:
            if _is_endless(shape, domain, across, i):
                continue
            # One cell must be free up to the midpoint to its image, so that two are free between them.
            half = axis.length / 2 * (1 - ROUNDING)
            ends = [(float(across[i]) + way * half, ends[0][1] / 2) for way in (-1, 1)]
        remedies = ["" if axis.periodic else _beside(domain, i, side, attached) for side in (0, 1)]
        sides += [(i, *end, remedy) for end, remedy in zip(ends, remedies, strict=True) if remedy is not None]
    on_sides = [[jnp.full_like(p, face) if k == i else p for k, p in enumerate(centers)] for i, face, *_ in sides]
    distance, *beside = shape(centers, *on_sides)
    problem = ""
    if not np.isfinite(distance).all():
        problem = "has a shape that is not a number somewhere in the domain; correct its parameters"
    elif distance.min() >= 0:
        problem = _outside(position, domain) or (
            "is outside the domain, or between its points, or its distance is negative nowhere; move it inside, "
            "enlarge it, or correct the distance"
        )
    elif distance.max() <= 0:
        problem = "fills the domain; make it smaller"
    for (i, face, width, remedy), along in zip(sides, beside, strict=True):
        gap = float(along.min())
        if not problem and gap < CLEAR * width:
            problem = _too_near(gap, face, width, i, grid.axes[i].periodic, across is not None) + remedy
    if problem:
        raise UserError(f"{what} {problem}")
    deepest = tuple(int(k) for k in np.unravel_index(np.argmin(distance), distance.shape))
    narrow = min(float(axis.widths[k]) for axis, k in zip(grid.axes, deepest, strict=True))
    # The deepest point of the body lies between those of the grid: it is looked for around the deepest of them.
    around = [
        p.ravel()[k] + float(axis.widths[k]) * np.linspace(-1, 1, LOOKS)
        for p, axis, k in zip(centers, grid.axes, deepest, strict=True)
    ]
    finer = [jnp.asarray(x, dtype=float) for x in np.meshgrid(*around, indexing="ij", sparse=True)]
    thickness = -2 * float(shape(finer)[0].min())
    if thickness < NARROWEST * narrow:
        raise UserError(
            f"{what} is about {thickness:.3g} across where cells are {narrow:.3g} wide; "
            f"use smaller cells, at least {NARROWEST} across it"
        )
    return distance


def _outside(position: Sequence[jax.Array | float] | None, domain: Domain) -> str:
    """Return what is wrong with a position outside the domain along a bounded axis; empty for any other."""
    for axis, x, label in zip(domain.grid.axes, map(float, position or ()), "xyz", strict=False):
        low, high = float(axis.faces[0]), float(axis.faces[-1])
        if not axis.periodic and not low <= x <= high:
            where = f"its position has {label} = {x:g}, and the domain is from {low:g} to {high:g}"
            return f"is outside the domain: {where}; move it inside"
    return ""


def _too_near(gap: float, face: float, width: float, axis: int, periodic: bool, moves: bool) -> str:
    """Return what is wrong with a body that is nearer to an end of an axis than two cells."""
    end, cells = f"{'xyz'[axis]} = {face:g}", f"leave at least two cells, {CLEAR * width:.3g}"
    if periodic and moves:
        cells = f"leave at least two cells, {4 * width:.3g}"
        return f"comes within {2 * gap:.3g} of its image along the periodic axis {'xyz'[axis]}; {cells}"
    if periodic:
        return (
            f"rests within two cells of the end {end} of a periodic axis, or over it; shift the axis, or let the body "
            "move there: write its position as a formula of time"
        )
    if gap < 0:
        hint = "a distance of its own is negative inside"
        return f"extends {-gap:.3g} beyond the side {end}; {cells}, between them; {hint}"
    return f"comes within {gap:.3g} of the side {end}; {cells}"


def _beside(domain: Domain, axis: int, side: int, attached: bool) -> str | None:
    """Return what else a body can do beside a side than keep clear of it; None where it may touch it."""
    what = domain.side(axis, side)
    if what.leaves or what.gives_pressure:
        where = f"; attached bodies touch walls and inflows alone, and this is an '{what.kind}' side"
        return where if attached else ""
    return None if attached else "; or let it touch the side: attached = true"


def _is_endless(shape: Distances, domain: Domain, pivot: Point, axis: int) -> bool:
    """Return whether a body is the same everywhere along a periodic axis."""
    grid = domain.grid
    places = [float(pivot[axis]) + share * grid.axes[axis].length for share in (0, 0.2, 0.49)]
    planes = [
        [jnp.full_like(p, place) if k == axis else p for k, p in enumerate(map(jnp.asarray, positions(None, grid)))]
        for place in places
    ]
    middle, *others = shape(*planes)
    return all(np.allclose(other, middle, rtol=0, atol=1e-5 * grid.axes[axis].length) for other in others)


def check_apart(distances: Mapping[str, np.ndarray], domain: Domain) -> None:
    """Refuse bodies that overlap, or come within two cells of each other.

    Args:
        distances: of the cell centers from the bodies, by their names.
        domain: the domain.

    Raises:
        UserError: names the two bodies.
    """
    grid = domain.grid
    for (one, a), (other, b) in itertools.combinations(distances.items(), 2):
        # On the line between two bodies this sum is their gap; elsewhere it is larger.
        between = a + b
        where = tuple(int(k) for k in np.unravel_index(np.argmin(between), between.shape))
        gap, width = float(between.min()), max(float(axis.widths[k]) for axis, k in zip(grid.axes, where, strict=True))
        if gap < CLEAR * width:
            state = f"come within {gap:.3g} of each other" if gap > 0 else "overlap"
            raise UserError(
                f"obstacles '{one}' and '{other}' {state}; leave at least two cells, {CLEAR * width:.3g}, between "
                "them, or make them one: by a distance such as min(a, b), in Python by shapes.union"
            )


def check_scalar(equations: "Equations", known: Mapping[str, tuple[str | None, ...]], swells: bool) -> None:
    """Refuse scalars without a condition on a body, and conditions of scalars that the flow does not carry.

    Args:
        equations: of a flow with bodies.
        known: names of the scalars for which each body has a condition; None for a single scalar without a name.
        swells: whether a body changes its size.

    Raises:
        UserError: names the body.
    """
    scalar = equations.scalar
    names = tuple(sorted(scalar.scalars)) if isinstance(scalar, TransportedScalars) else ()
    wanted: tuple[str | None, ...] = names or ((None,) if scalar is not None else ())
    surface = "ScalarSurface(value = ...) or ScalarSurface(flux = ...), 0 for an insulated one"
    others = [name for name, conditions in known.items() if conditions != wanted]
    problem = ""
    if others:
        carries = f"the scalars {', '.join(names)}" if names else "one scalar" if wanted else "no scalar"
        each = f"scalar = {{name: surface, ...}}, each {surface}" if names else f"scalar = {surface}"
        problem = f"the flow carries {carries}, and body '{others[0]}' has conditions of others; give it "
        problem += each if wanted else "none"
    elif scalar is not None and not isinstance(scalar, TransportedScalar | TransportedScalars):
        problem = "a body acts on a TransportedScalar or on TransportedScalars only; remove the body or this scalar"
    elif scalar is not None and swells:
        problem = "a body that changes its size in time does not support scalars; give its motion no size"
    if problem:
        raise UserError(problem)
