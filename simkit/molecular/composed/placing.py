"""Starting positions of the particles of a system, (N, d), in its cell, for any parameters."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.composed.cells import Frame, SystemCell
from simkit.molecular.composed.fields import Field
from simkit.molecular.composed.names import TIME, Names
from simkit.molecular.composed.particles import Particles
from simkit.molecular.composed.random_places import RandomPlaces
from simkit.molecular.composed.starts import Places, carried
from simkit.molecular.neighbors.pair_sums import FEWEST_COLUMNS

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
    """

    places: Places
    random: RandomPlaces | None
    frame: Frame | None
    disorder: Formula
    frozen: np.ndarray

    def start(self, params: Params, key: jax.Array) -> jax.Array:
        """Return the starting positions, (N, d)."""
        disorder = self.disorder.number(params)
        shift_key = key
        if self.random is not None:
            assert self.frame is not None  # random places fill something
            shift_key = jax.random.fold_in(key, 1)
            home = carried(self.random.draw(key, disorder.dtype), self.frame(params))
        else:
            home = self.standing(params)
        home = home.astype(disorder.dtype)
        if self.disorder.expression.syntax.text in ("0", "0.0"):
            return home
        shift = jax.random.uniform(shift_key, home.shape, home.dtype, minval=-1, maxval=1)
        return home + disorder * jnp.where(jnp.asarray(self.frozen)[:, None], 0, shift)

    def sample(self, params: Params, seed: int = 0) -> jax.Array:
        """Return typical starting positions that do not depend on the key, (N, d)."""
        if self.random is None:
            return self.standing(params)
        assert self.frame is not None  # random places fill something
        fractions = np.random.default_rng(seed).uniform(size=(len(self.frozen), len(self.random.frame)))
        return carried(jnp.asarray(fractions - 0.5 * self.random.is_ball), self.frame(params))

    def standing(self, params: Params) -> jax.Array:
        """Return positions that do not depend on the key, (N, d)."""
        if self.places.at is not None:
            return self.places.at(params)
        assert self.frame is not None and self.places.fractions is not None  # or they would have no place
        frame = self.frame(params)
        return carried(jnp.asarray(self.places.fractions, frame.dtype), frame)

    def spacing(self, params: Params, count: int, dimension: int) -> jax.Array:
        """Return the typical distance of neighbors."""
        frame = self.places.own if self.frame is None else self.frame
        if frame is not None:
            volume = jnp.abs(spaces.determinant(spaces.lattice_vectors(frame(params))))
            return (volume / count) ** (1 / dimension)
        if self.places.nearest is not None:
            return jnp.asarray(self.places.nearest, precision_of(params))
        assert self.places.at is not None  # the only other way
        position = self.places.at(params)
        apart = jnp.sum((position[:, None] - position[None, :]) ** 2, axis=-1)
        apart = jnp.where(jnp.eye(count, dtype=bool), jnp.inf, apart)
        nearest = jnp.mean(jnp.sqrt(jnp.min(apart, axis=1)))
        return jnp.where(jnp.isfinite(nearest) & (nearest > 0), nearest, 1)


def placing_of(
    settings: Settings,
    places: Places,
    particles: Particles,
    cell: SystemCell,
    names: Names,
    params: Params,
    fields: Sequence[Field],
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

    Raises:
        UserError: if the region of random positions is not given, or given twice.
    """
    disorder = names.number(settings["disorder"])
    if places.count is not None:
        frame = None if places.at is not None else cell.frame
        return Placing(places, None, frame, disorder, particles.frozen)
    radius = settings["radius"]
    if radius is not None and cell.frame is not None:
        raise settings.refuse("radius", "and the cell both bound random positions; leave one out")
    if radius is None and cell.frame is None:
        raise UserError(
            "start.radius is missing; in free space random positions lie in a ball: give its radius, or a cell"
        )
    frame = cell.frame if radius is None else _cube(names.number(radius), cell.dimension)
    assert frame is not None  # one of the two was given
    random = RandomPlaces(
        separation=settings["separation"],
        diameter=np.asarray(particles.of_each("diameter", params), np.float64),
        frame=np.asarray(frame(params), np.float64),
        periodic=cell.periodic if radius is None else (False,) * cell.dimension,
        is_ball=radius is not None,
        walls=tuple(_distance_from(field, params) for field in fields if field.distance is not None),
    )
    return Placing(places, random, frame, disorder, particles.frozen)


def _distance_from(field: Field, params: Params) -> Callable[[tuple[jax.Array, ...]], jax.Array]:
    """Return the distance from a wall at the start, infinite for particles on which it does not act."""

    def away(columns: tuple[jax.Array, ...]) -> jax.Array:
        assert field.distance is not None  # only walls have one
        now = {**params, TIME: jnp.zeros((), columns[0].dtype)} if field.takes_time else params
        return jnp.where(jnp.asarray(field.on), field.distance(columns, now), jnp.inf)

    return away


def _cube(radius: Formula, dimension: int) -> Frame:
    return lambda params: jnp.broadcast_to(2 * radius.number(params), (dimension,))


def list_capacity(
    placing: Placing, particles: Particles, cell: SystemCell, params: Params, reach: float, *, shrinks: bool
) -> int:
    """Return the neighbors within a distance for which a list has capacity at first; it grows when a run needs more.

    Args:
        placing: starting positions.
        particles: the particles.
        cell: cell of the system, which repeats along all axes.
        params: default parameters.
        reach: distance up to which neighbors are listed.
        shrinks: whether the cell relaxes and may get smaller.
    """
    dimension = cell.dimension
    ball = math.pi if dimension == 2 else 4 / 3 * math.pi
    mean = ball * (reach / float(placing.spacing(params, particles.count, dimension))) ** dimension
    overlaps = placing.random is not None and not placing.random.separation
    most = mean + DEVIATIONS * math.sqrt(mean) if overlaps else (SHRINKING if shrinks else SEPARATED) * mean + FEW
    # A multiple of the columns that the pair sums take per turn.
    return FEWEST_COLUMNS * math.ceil(most / FEWEST_COLUMNS)
