"""Starting positions: lattices, structures, given and random positions."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.compilation import compiled
from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.formulation import precise_product
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import Settings, either, formula, number, several, text, whole, word
from simkit.core.settings.tables import number_of
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import minimizers, spaces
from simkit.molecular.description.bonded_energies import BondedEnergy
from simkit.molecular.description.fields import Field
from simkit.molecular.description.formulas import TIME, Names
from simkit.molecular.description.packing import Packing, anchors, overlapping, packing_of, unwrapped
from simkit.molecular.description.padding import Padding, padding_of
from simkit.molecular.description.particles import Frame, Particles, SystemCell
from simkit.molecular.interactions.interaction import combined, user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.neighbors.pair_sums import FEWEST_COLUMNS, PerParticle
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.spaces import Cell
from simkit.molecular.structures import lattices
from simkit.molecular.structures.extended_xyz import parse_extended_xyz
from simkit.molecular.structures.structures import Structure

LATTICES = {
    "square": (lattices.square, 2),
    "triangular": (lattices.triangular, 2),
    "honeycomb": (lattices.honeycomb, 2),
    "face_centered_cubic": (lattices.face_centered_cubic, 3),
    "hexagonal_close_packed": (lattices.hexagonal_close_packed, 3),
    "diamond": (lattices.diamond, 3),
    "body_centered_cubic": (lattices.body_centered_cubic, 3),
    "rocksalt": (lattices.rocksalt, 3),
    "fluorite": (lattices.fluorite, 3),
}


@dataclasses.dataclass(frozen=True)
class Places:
    """Starting positions before disorder is added.

    Attributes:
        count: number of positions; ``None`` for random ones, one for each particle.
        dimension: dimension of space; ``None`` if positions do not fix it.
        structure: the structure whose atoms they are; otherwise ``None``.
        lattice: edges of the cell of a lattice whose spacing is one, (d,), and unit cells along each axis; otherwise
            ``None``.
        arrangement: seed of a random order of the species; ``None`` for one species after the other.
        own: edges of the cell of a lattice or structure; ``None`` if there is none.
        is_oblique: whether ``own`` gives lattice vectors instead of sides.
        periodic: along which axes ``own`` repeats, d booleans; ``None`` for all.
        at: ``params -> (N, d)``, positions given by coordinates; ``None`` if they are fractions of a cell.
        fractions: positions in units of the edges of a cell, (N, d); otherwise ``None``.
        where: path of positions that may coincide; ``None`` for those of a lattice and random ones.
        nearest: mean distance of nearest neighbors, of a structure in free space or a text; otherwise ``None``.
        padding: structures of which a parameter chooses one, with (F, N, d) fractions; otherwise ``None``.
    """

    count: int | None
    dimension: int | None
    structure: Structure | None = None
    lattice: tuple[np.ndarray, tuple[int, ...]] | None = None
    arrangement: int | None = None
    own: Frame | None = None
    is_oblique: bool = False
    periodic: tuple[bool, ...] | None = None
    at: Callable[[Params], jax.Array] | None = None
    fractions: np.ndarray | None = None
    where: str | None = None
    nearest: float | Callable[[Params], jax.Array] | None = None
    padding: Padding | None = None


@part(
    keys={
        "lattice": word("the lattice whose sites they start on", tuple(LATTICES)),
        "repeats": several(whole("number of unit cells", low=1), "unit cells of the lattice along each axis", (2, 3)),
        "spacing": formula("distance of nearest neighbors; left out if the cell fixes it", None, unit="length"),
        "arrangement": whole(
            "which random arrangement of several species on the sites; left out, one species follows the other", None
        ),
    }
)
def lattice(settings: Settings, names: Names) -> Places:
    """Return the sites of a lattice."""
    build, dimension = LATTICES[settings["lattice"]]
    several(whole("unit cells"), "along each axis", (dimension,)).check(settings["repeats"], settings.path("repeats"))
    # Concrete numbers, even if the system is made inside a traced function.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        sites = build(settings["repeats"])
        edges = np.diag(np.asarray(sites.cell))
        fractions = np.asarray(sites.position) / edges
    spacing = None if settings["spacing"] is None else names.number(settings["spacing"])

    def frame(params: Params) -> jax.Array:
        length = jnp.ones((), precision_of(params)) if spacing is None else spacing.number(params)
        return jnp.asarray(edges, length.dtype) * length

    return Places(
        len(fractions),
        dimension,
        own=frame,
        at=None if spacing is None else lambda params: jnp.asarray(fractions, frame(params).dtype) * frame(params),
        fractions=fractions,
        lattice=(edges, settings["repeats"]),
        arrangement=settings["arrangement"],
    )


@part(
    keys={
        "structure": text('extended XYZ text, as of `{ file = "silicon.xyz" }`'),
        "frame": formula(
            "which frame of the structure, from 0; -1 is the last. An expression chooses one of frames of any sizes",
            -1,
        ),
    }
)
def structure(settings: Settings, names: Names) -> Places:
    """Return the atoms of a structure.

    Raises:
        UserError: if the text is no structure, or has no such frame.
    """
    text = settings["structure"]
    if len(text.split("\n")) == 1:
        raise settings.refuse("structure", f"is one line; for a file write structure = {{ file = {text[:60]!r} }}")
    frames = parse_extended_xyz(text, settings.path("structure"))
    where, which = settings.path("structure"), names.number(settings["frame"])
    if (number := number_of(which.expression.syntax.text)) is None:
        return _of_frames(frames, *padding_of(which, frames, where), where)
    written = int(number) if number == int(number) else number
    whole("frame", low=-1, high=len(frames) - 1).check(written, settings.path("frame"))
    return _of_structure(frames[int(number)], where)


@part(
    keys={
        "positions": either(
            "places, in the order of the species",
            several(several(formula("a coordinate", unit="length"), "a place", (2, 3)), "places"),
            text('their coordinates, a particle in each line, as of `{ file = "positions.txt" }`'),
        )
    }
)
def positions(settings: Settings, names: Names) -> Places:
    """Return positions given by coordinates.

    Raises:
        UserError: if they have different numbers of coordinates, or there are none.
    """
    rows = settings["positions"]
    if isinstance(rows, str):
        return _of_text(rows, settings.path("positions"))
    if not rows or len({len(row) for row in rows}) > 1:
        raise settings.refuse("positions", "do not all have the same number of coordinates; write [x, y] or [x, y, z]")
    formulas = tuple(tuple(names.number(each) for each in row) for row in rows)

    def at(params: Params) -> jax.Array:
        return jnp.stack([jnp.stack([each.number(params) for each in row]) for row in formulas])

    return Places(len(rows), len(rows[0]), at=at, where=settings.path("positions"))


@part(
    keys={
        "radius": formula(
            "radius of the disk or ball of random positions, in free space", None, unit="length", bounds=POSITIVE
        ),
        "separation": number(
            "least distance of random positions from each other and from walls, in mean diameters; 0 allows overlap",
            0.8,
            (0.0, 2.0),
        ),
    }
)
def random(settings: Settings, names: Names) -> Places:
    """Return that positions are random, in the cell or a ball."""
    del settings, names
    return Places(None, None)


def _of_text(content: str, where: str) -> Places:
    """Return positions of a text, a particle in each line."""
    rows = []
    for index, line in enumerate(content.splitlines(), 1):
        row = [number_of(word) for word in line.split()]
        size = len(rows[0]) if rows else len(row)
        if None in row or len(row) != size or size not in (2, 3):
            raise UserError(f"{where}: line {index} is not {size if rows else '2 or 3'} coordinates; repair it")
        rows.append(row)
    position = np.array(rows, float)
    if not rows or not np.isfinite(position).all():
        raise UserError(f"{where} has no positions, or some that are not finite; give a line of numbers for each")
    return Places(
        len(rows),
        position.shape[1],
        at=lambda params: jnp.asarray(position, precision_of(params)),
        where=where,
        nearest=_mean_nearest_distance(position),
    )


def _of_structure(structure: Structure, where: str) -> Places:
    position, dimension = structure.position, structure.position.shape[1]
    if not structure.periodic:
        return Places(
            len(structure),
            dimension,
            structure=structure,
            at=lambda params: jnp.asarray(position, precision_of(params)),
            where=where,
            nearest=_mean_nearest_distance(position),
        )
    vectors = structure.cell
    assert vectors is not None  # a periodic structure has one
    sides = np.diag(vectors)
    is_oblique = _is_oblique(vectors)
    edges = vectors if is_oblique else sides
    axes = _axes_of(structure)
    return Places(
        len(structure),
        dimension,
        structure=structure,
        own=lambda params: jnp.asarray(edges, precision_of(params)),
        is_oblique=is_oblique,
        periodic=axes,
        fractions=position @ np.linalg.inv(vectors),
        where=where,
    )


def _is_oblique(vectors: np.ndarray) -> bool:
    sides = np.diag(vectors)
    return bool((vectors != np.diag(sides)).any() or (sides < 0).any())


def _axes_of(structure: Structure) -> tuple[bool, ...] | None:
    """Return along which axes a periodic structure repeats; ``None`` for all."""
    if structure.periodic is True:
        return None
    return tuple(np.broadcast_to(structure.periodic, structure.position.shape[1]).tolist())


def _of_frames(frames: Sequence[Structure], padding: Padding, symbols: tuple[str, ...], where: str) -> Places:
    """Return the atoms of structures of different sizes, of which a parameter chooses one."""
    count, dimension = len(symbols), frames[0].position.shape[1]
    common = {
        "structure": Structure(symbols, np.zeros((count, dimension))),
        "where": where,
        "padding": padding,
    }
    positions = [frame.position for frame in frames]
    if not frames[0].periodic:
        nearest = np.array([_mean_nearest_distance(position) for position in positions])
        table = padding.spread(positions)
        at = {"at": lambda params: padding.of(table, params), "nearest": lambda params: padding.of(nearest, params)}
        return Places(count, dimension, **at, **common)
    vectors = np.stack([frame.cell for frame in frames])  # type: ignore[arg-type]  # periodic ones have cells
    axes, is_oblique = _axes_of(frames[0]), any(map(_is_oblique, vectors))
    if is_oblique and axes is None:
        # As short as they may be, which differs between the frames.
        vectors = np.stack([spaces.reduction(each) @ each for each in vectors])
    edges = vectors if is_oblique else np.einsum("fii->fi", vectors)
    fractions = padding.spread([x @ np.linalg.inv(each) for x, each in zip(positions, vectors, strict=True)])
    return Places(
        count,
        dimension,
        own=lambda params: padding.of(edges, params),
        is_oblique=is_oblique,
        periodic=axes,
        fractions=fractions,
        **common,
    )


def _mean_nearest_distance(position: np.ndarray) -> float:
    """Return the mean distance of nearest neighbors, 1 if it is zero or there is one particle."""
    from scipy.spatial import KDTree

    apart = np.asarray(KDTree(position).query(position, k=2)[0])[:, 1].mean()
    return float(apart) if np.isfinite(apart) and apart > 0 else 1.0


def carried(fractions: jax.Array, frame: jax.Array) -> jax.Array:
    """Return positions in a cell from their fractions of its edges, (N, d).

    Args:
        fractions: (N, d).
        frame: sides (d,), or lattice vectors as rows (d, d).
    """
    return fractions * frame if frame.ndim == 1 else precise_product(fractions, frame)


def _fractions(position: jax.Array, frame: jax.Array) -> jax.Array:
    return position / frame if frame.ndim == 1 else precise_product(position, spaces.inverse_of(frame))


# Margin of the least distance, so that rounding leaves no overlap; and the largest number of iterations.
MARGIN = 1.02
MOST_ITERATIONS = 3000


@dataclasses.dataclass(frozen=True)
class RandomPlaces:
    """Positions in a cell or ball, drawn at the default parameters and scaled with the cell for all others.

    The draw depends on the key alone; derivatives with respect to a size are those of scaled positions.

    Attributes:
        separation: least distance of a pair, relative to the mean of its diameters; of a particle and a wall, relative
            to its diameter.
        diameter: of each particle, (N,), at the default parameters.
        frame: edges of the cell, (d,) or (d, d), at the default parameters; of the cube about a ball.
        periodic: along which axes the cell repeats.
        is_ball: whether positions lie in the ball inscribed in the cube.
        walls: ``columns -> (N,)``, distance of each particle from a wall at positions given as one array per axis,
            infinite for particles on which the wall does not act; at the default parameters.
        packing: molecules; ``None`` if there are none.
    """

    separation: float
    diameter: np.ndarray
    frame: np.ndarray
    periodic: tuple[bool, ...]
    is_ball: bool
    walls: tuple[Callable[[tuple[jax.Array, ...]], jax.Array], ...] = ()
    packing: Packing | None = None

    def draw(self, key: jax.Array, kind: jnp.dtype) -> jax.Array:
        """Return positions in units of the edges, (N, d), about the origin for a ball.

        Args:
            key: random key.
            kind: floating-point type.
        """
        count, dimension = len(self.diameter), len(self.periodic)
        if self.is_ball:
            heading_key, distance_key = jax.random.split(key)
            heading = jax.random.normal(heading_key, (count, dimension), kind)
            heading = heading / jnp.sqrt(jnp.sum(heading**2, axis=1, keepdims=True))
            drawn = heading * jax.random.uniform(distance_key, (count, 1), kind) ** (1 / dimension) / 2
        else:
            drawn = jax.random.uniform(key, (count, dimension), kind)
        if self.packing is not None:
            frame = jnp.asarray(self.frame, kind)
            drawn = _fractions(self.packing.drawn(carried(drawn, frame), jax.random.fold_in(key, 2)), frame)
        if not self.separation:
            return drawn
        # No derivative: the result does not depend on parameters, and the loop's length is not known.
        return jax.lax.stop_gradient(self._apart(drawn, kind))

    def _apart(self, drawn: jax.Array, kind: jnp.dtype) -> jax.Array:
        frame = jnp.asarray(self.frame, kind)
        cell = self._cell(kind)
        wanted = MARGIN * self.separation * jnp.asarray(self.diameter, kind)
        interaction = pair_interaction(
            soft_sphere(2.0),
            cutoff=lambda params: wanted.max(),
            parameters=lambda params: {
                "epsilon": jnp.ones((), kind),
                "sigma": PerParticle(wanted, lambda a, b: (a + b) / 2),
            },
            method="all_pairs",
            excluded=() if self.packing is None else self.packing.apart,
        )
        method, scale = minimizers.by_name("fire"), Scale(wanted.mean(), 1 / wanted.mean() ** 2)

        def at_walls(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
            overlaps = (jnp.maximum(1 - away / wanted, 0) for away in self._away(position))
            return sum((jnp.sum(overlap**2) / 2 for overlap in overlaps), jnp.zeros((), kind))

        both = combined(interaction, user_energy(at_walls))

        position, packing = carried(drawn, frame), self.packing
        unknowns, count = position if packing is None else packing.coordinates(position), len(position)

        def evaluate(unknowns: jax.Array) -> tuple[jax.Array, jax.Array]:
            if packing is None:
                at = unknowns, cell, {}, ((), ())
                energy, force = both.several(("energy", "force"), *at)
                return energy, force
            value, slope = jax.value_and_grad(of_molecules)(unknowns, packing)
            return value, -slope

        def of_molecules(unknowns: jax.Array, packing: Packing) -> jax.Array:
            moved = packing.positions(unknowns, position)
            return both.energy(moved, cell, {}, ((), ())) + packing.strain(moved)

        # Below this energy no single overlap exceeds the margin.
        enough = (1 - 1 / MARGIN) ** 2 / 4

        def proceed(carry: tuple) -> jax.Array:
            state, energy = carry
            return (energy > enough) & (state.iteration < MOST_ITERATIONS)

        def step(carry: tuple) -> tuple:
            trial = carry[0].trial
            inside = self._inside(trial[:count])
            trial = inside if packing is None else jnp.concatenate([inside, trial[count:]])
            state = dataclasses.replace(carry[0], trial=trial)
            moved = minimizers.step(method, state, evaluate, scale)
            return moved, evaluate(moved.position)[0]

        state = minimizers.start(method, unknowns, evaluate, scale)
        state, _ = jax.lax.while_loop(proceed, step, (state, evaluate(unknowns)[0]))
        placed = state.position if packing is None else packing.positions(state.position, position)
        return _fractions(placed, frame)

    def _away(self, position: jax.Array) -> list[jax.Array]:
        """Return the distances from each wall, (N,)."""
        inside = spaces.of_cell(self._cell(position.dtype), len(self.periodic)).wrap(position)
        columns = tuple(inside[:, axis] for axis in range(len(self.periodic)))
        return [wall(columns).astype(position.dtype) for wall in self.walls]

    def _cell(self, kind: jnp.dtype) -> Cell:
        if not any(self.periodic):
            return None
        frame = jnp.asarray(self.frame, kind)
        return frame if all(self.periodic) else jnp.where(jnp.asarray(self.periodic), frame, jnp.inf)

    def _inside(self, position: jax.Array) -> jax.Array:
        """Return positions moved back into the ball, or into the cell along axes that do not repeat."""
        if all(self.periodic):
            return position
        frame = jnp.asarray(self.frame, position.dtype)
        if self.is_ball:
            distance = jnp.sqrt(jnp.sum(position**2, axis=1, keepdims=True))
            return position * jnp.minimum(1, frame[0] / 2 / jnp.where(distance > 0, distance, 1))
        if frame.ndim == 1:
            return jnp.where(jnp.asarray(self.periodic), position, jnp.clip(position, 0, frame))
        fractions = precise_product(position, spaces.inverse_of(frame))
        return precise_product(jnp.where(jnp.asarray(self.periodic), fractions, jnp.clip(fractions, 0, 1)), frame)

    def filled(self) -> float:
        """Return the volume of balls whose diameters are the required distances, per volume that can hold them.

        That volume is the cell's, and the part of the balls that may lie beyond its sides. Above 1 there is no room.
        Balls of molecules overlap; these count as 0.
        """
        if self.packing is not None:
            return 0.0
        dimension = len(self.periodic)
        ball = np.pi if dimension == 2 else 4 / 3 * np.pi
        radii = self.separation * self.diameter / 2
        if self.is_ball:
            room = ball * (self.frame[0] / 2 + radii.max()) ** dimension
        else:
            edges = np.diag(self.frame) if self.frame.ndim == 1 else self.frame
            heights = 1 / np.linalg.norm(np.linalg.inv(edges), axis=0)
            beyond = np.where(self.periodic, 0, 2 * radii.max() / heights)
            room = abs(np.linalg.det(edges)) * np.prod(1 + beyond)
        return float(ball * np.sum(radii**dimension) / room)

    def closest(self, fractions: np.ndarray) -> float:
        """Return the least distance of two positions, or from a wall, relative to the required one, on the host.

        Args:
            fractions: result of `draw`.
        """
        frame = jnp.asarray(self.frame)
        position = carried(jnp.asarray(fractions), frame)
        space = spaces.of_cell(self._cell(position.dtype), len(self.periodic))
        wanted = self.separation * (self.diameter[:, None] + self.diameter[None, :]) / 2
        apart = np.linalg.norm(spaces.displacement(space, position[:, None], position[None]), axis=-1)
        np.fill_diagonal(apart, np.inf)
        apart = overlapping(self.packing, apart)
        from_walls = [np.asarray(away) / (self.separation * self.diameter) for away in self._away(position)]
        return float(min((apart / wanted).min(), *(each.min() for each in from_walls), np.inf))


# Most neighbors of a particle in units of the mean: of separated particles, and in a cell that relaxes and may shrink;
# of random positions without separation, in standard deviations of a Poisson distribution.
SEPARATED, SHRINKING, DEVIATIONS = 1.3, 1.5, 6.0
FEW = 4


@dataclasses.dataclass(frozen=True)
class Placing:
    """Starting positions in a cell.

    Attributes:
        places: sites of a lattice or structure, or given positions; unused for random ones.
        random: random positions, or ``None``.
        frame: edges of the cell or cube that positions fill; ``None`` for positions given by coordinates.
        disorder: largest random displacement along each axis.
        frozen: mask of the particles that do not move, (N,) booleans.
        anchor: particle with which each one moves when the cell changes, (N,); ``None`` if each moves by itself.
        reference: edges of the cell or cube in which molecules have their size; ``None`` without.
    """

    places: Places
    random: RandomPlaces | None
    frame: Frame | None
    disorder: Formula
    frozen: np.ndarray
    anchor: np.ndarray | None = None
    reference: np.ndarray | None = None

    def start(self, params: Params, key: jax.Array) -> jax.Array:
        """Return the starting positions, (N, d)."""
        disorder, shift_key = self.disorder.number(params), key
        if self.random is None:
            home = self.standing(params)
        else:
            shift_key = jax.random.fold_in(key, 1)
            home = self.filled(self.random.draw(key, disorder.dtype), params)
        home = home.astype(disorder.dtype)
        if self.disorder.expression.syntax.text in ("0", "0.0"):
            return home
        shift = jax.random.uniform(shift_key, home.shape, home.dtype, minval=-1, maxval=1)
        return home + disorder * jnp.where(jnp.asarray(self.frozen)[:, None], 0, shift)

    def sample(self, params: Params, seed: int = 0) -> jax.Array:
        """Return typical starting positions that do not depend on the key, (N, d)."""
        if self.random is None:
            return self.standing(params)
        fractions = np.random.default_rng(seed).uniform(size=(len(self.frozen), len(self.random.frame)))
        return self.filled(jnp.asarray(fractions - 0.5 * self.random.is_ball), params)

    def standing(self, params: Params) -> jax.Array:
        """Return positions that do not depend on the key, (N, d)."""
        if self.places.at is not None:
            return self.places.at(params)
        return self.filled(self.places.fractions, params)

    def filled(self, fractions: Any, params: Params) -> jax.Array:
        """Return positions in the cell or cube from their fractions of its edges, (N, d)."""
        assert self.frame is not None  # the places would be coordinates
        frame, padding = self.frame(params), self.places.padding
        fractions = jnp.asarray(fractions, frame.dtype) if padding is None else padding.of(fractions, params)
        if self.anchor is None:
            return carried(fractions, frame)
        anchored = fractions[self.anchor]
        return carried(anchored, frame) + carried(fractions - anchored, jnp.asarray(self.reference, frame.dtype))

    def spacing(self, params: Params) -> jax.Array:
        """Return the typical distance of neighbors."""
        padding = self.places.padding
        count = len(self.frozen) if padding is None else padding.count(params)
        frame = self.places.own if self.frame is None else self.frame
        if frame is not None:
            cell = frame(params)
            volume = compiled(lambda cell: jnp.abs(spaces.determinant(spaces.lattice_vectors(cell))))(cell)
            return (volume / count) ** (1 / len(cell))
        nearest = self.places.nearest
        if nearest is not None:
            return nearest(params) if callable(nearest) else jnp.asarray(nearest, precision_of(params))
        assert self.places.at is not None  # the only other way
        position = self.places.at(params)
        apart = jnp.sum((position[:, None] - position[None, :]) ** 2, axis=-1)
        apart = jnp.where(jnp.eye(count, dtype=bool), jnp.inf, apart)
        mean = jnp.mean(jnp.sqrt(jnp.min(apart, axis=1)))
        return jnp.where(jnp.isfinite(mean) & (mean > 0), mean, 1)


def placing_of(
    settings: Settings,
    places: Places,
    particles: Particles,
    cell: SystemCell,
    names: Names,
    params: Params,
    fields: Sequence[Field],
    bonded: Sequence[BondedEnergy] = (),
) -> Placing:
    """Return the starting positions of a system's particles.

    Args:
        settings: settings of the start.
        places: sites of a lattice or structure, or given positions; unused for random ones.
        particles: the particles.
        cell: cell of the system.
        names: names that formulas may use.
        params: default parameters, for which random positions are drawn.
        fields: external energies and walls; random positions keep away from the walls.
        bonded: energies of bonds, which have a length at random positions.

    Raises:
        UserError: if the region of random positions is not given, or given twice; or molecules are to be on a lattice.
    """
    disorder, molecules = names.number(settings["disorder"]), particles.molecules
    anchor = anchors(particles) if molecules.kinds else None
    if anchor is not None and places.lattice is not None:
        raise settings.refuse("lattice", "has sites for single particles; give the places of molecules, or random ones")
    if places.count is not None and anchor is not None and places.fractions is not None and places.own is not None:
        reference = np.asarray(places.own(params), np.float64)
        whole = unwrapped(places.fractions, molecules, places.periodic or (True,) * cell.dimension)
        places = dataclasses.replace(places, fractions=whole)
        return Placing(places, None, cell.frame, disorder, particles.frozen, anchor, reference)
    if places.count is not None:
        frame = None if places.at is not None else cell.frame
        return Placing(places, None, frame, disorder, particles.frozen)
    radius = settings["radius"]
    if (radius is None) == (cell.frame is None):
        problem = "is missing: in free space random positions lie in a ball; give it, or a cell"
        raise settings.refuse(
            "radius", "and the cell both bound random positions; leave one out" if radius else problem
        )
    frame = cell.edges if radius is None else _cube(names.number(radius), cell.dimension)
    random = RandomPlaces(
        separation=settings["separation"],
        diameter=np.asarray(particles.of_each("diameter", params), np.float64),
        frame=np.asarray(frame(params), np.float64),
        periodic=cell.periodic if radius is None else (False,) * cell.dimension,
        is_ball=radius is not None,
        walls=tuple(_distance_from(field, params) for field in fields if field.wall is not None),
        packing=packing_of(particles, bonded, names, params, cell.dimension),
    )
    reference = None if anchor is None else random.frame
    return Placing(places, random, frame, disorder, particles.frozen, anchor, reference)


def _distance_from(wall: Field, params: Params) -> Callable[[tuple[jax.Array, ...]], jax.Array]:
    """Return the distance from a wall at the start, infinite for particles on which it does not act."""

    def away(columns: tuple[jax.Array, ...]) -> jax.Array:
        now = {**params, TIME: jnp.zeros((), columns[0].dtype)}
        return jnp.where(jnp.asarray(wall.on), wall.distance(columns, now), jnp.inf)

    return away


def _cube(radius: Formula, dimension: int) -> Frame:
    return lambda params: jnp.broadcast_to(2 * radius.number(params), (dimension,))


def list_capacity(placing: Placing, dimension: int, params: Params, reach: float, *, shrinks: bool) -> int:
    """Return the neighbors within a distance for which a list has capacity at first; it grows when a run needs more.

    Args:
        placing: starting positions.
        dimension: dimension of space.
        params: default parameters.
        reach: distance up to which neighbors are listed.
        shrinks: whether the cell relaxes and may get smaller.
    """
    ball = math.pi if dimension == 2 else 4 / 3 * math.pi
    mean = ball * (reach / float(placing.spacing(params))) ** dimension
    overlaps = placing.random is not None and not placing.random.separation
    most = mean + DEVIATIONS * math.sqrt(mean) if overlaps else (SHRINKING if shrinks else SEPARATED) * mean + FEW
    # A multiple of the columns that the pair sums take per turn.
    return FEWEST_COLUMNS * math.ceil(most / FEWEST_COLUMNS)
