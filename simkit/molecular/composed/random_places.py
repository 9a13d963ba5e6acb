"""Random starting positions without overlap: drawn uniformly, then pushed apart, and off walls, by repulsion."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import minimizers, spaces
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.spaces import Cell

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
    """

    separation: float
    diameter: np.ndarray
    frame: np.ndarray
    periodic: tuple[bool, ...]
    is_ball: bool
    walls: tuple[Callable[[tuple[jax.Array, ...]], jax.Array], ...] = ()

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
        )
        method, scale = minimizers.by_name("fire"), Scale(wanted.mean(), 1 / wanted.mean() ** 2)

        def at_walls(position: jax.Array) -> jax.Array:
            overlaps = (jnp.maximum(1 - away / wanted, 0) for away in self._away(position))
            return sum((jnp.sum(overlap**2) / 2 for overlap in overlaps), jnp.zeros((), kind))

        def evaluate(position: jax.Array) -> tuple[jax.Array, jax.Array]:
            energy, slope = jax.value_and_grad(at_walls)(position)
            pairs = interaction.energy(position, cell, {}, ())
            return pairs + energy, interaction.force(position, cell, {}, ()) - slope

        # Below this energy no single overlap exceeds the margin.
        enough = (1 - 1 / MARGIN) ** 2 / 4

        def proceed(carry: tuple) -> jax.Array:
            state, energy = carry
            return (energy > enough) & (state.iteration < MOST_ITERATIONS)

        def step(carry: tuple) -> tuple:
            state, _ = carry
            moved = minimizers.step(
                method, dataclasses.replace(state, trial=self._inside(state.trial)), evaluate, scale
            )
            return moved, interaction.energy(moved.position, cell, {}, ()) + at_walls(moved.position)

        position = drawn * frame if frame.ndim == 1 else drawn @ frame
        state = minimizers.start(method, position, evaluate, scale)
        state, _ = jax.lax.while_loop(proceed, step, (state, evaluate(position)[0]))
        placed = state.position
        return placed / frame if frame.ndim == 1 else placed @ spaces.inverse_of(frame)

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
        fractions = position @ spaces.inverse_of(frame)
        return jnp.where(jnp.asarray(self.periodic), fractions, jnp.clip(fractions, 0, 1)) @ frame

    def filled(self) -> float:
        """Return the volume of balls whose diameters are the required distances, per volume that can hold them.

        That volume is the cell's, and the part of the balls that may lie beyond its sides. Above 1 there is no room.
        """
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
        position = jnp.asarray(fractions * self.frame if frame.ndim == 1 else fractions @ self.frame)
        space = spaces.of_cell(self._cell(position.dtype), len(self.periodic))
        wanted = self.separation * (self.diameter[:, None] + self.diameter[None, :]) / 2
        apart = np.asarray(
            jnp.sqrt(
                sum(
                    d**2
                    for d in space.nearest_image(
                        tuple(
                            position[:, axis][:, None] - position[:, axis][None, :]
                            for axis in range(len(self.periodic))
                        )
                    )
                )
            )
        )
        np.fill_diagonal(apart := apart.copy(), np.inf)
        from_walls = [np.asarray(away) / (self.separation * self.diameter) for away in self._away(position)]
        return float(min((apart / wanted).min(), *(each.min() for each in from_walls), np.inf))
