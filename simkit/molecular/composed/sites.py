"""Sites that particles start from: how far they have come, where they began, and the size of their lattice."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.moment import Moment, Seen
from simkit.molecular.composed.placing import Placing
from simkit.molecular.composed.settings import LATTICES


@dataclasses.dataclass(frozen=True)
class Sites:
    """Places that no random key draws.

    Attributes:
        placing: where particles start.
        room: the cell at the start.
        lattice: the name of the lattice and its unit cells along each axis; ``None`` for other places.
        moves_cell: whether the cell changes.
    """

    placing: Placing
    room: SystemCell
    lattice: tuple[str, tuple[int, ...]] | None
    moves_cell: bool

    def of_displacement(self, moment: Moment) -> Seen:
        """Return how far each particle is from its site, the drift of all taken away, (N,); sites follow the cell."""
        params = without_time(moment.params)
        home = self.placing.standing(params).astype(moment.position.dtype)
        if self.moves_cell:
            assert moment.cell is not None  # there is one that moves
            home = home @ spaces.inverse_of(self.room.vectors(params)) @ spaces.lattice_vectors(moment.cell)
        away = spaces.displacement_without_drift(spaces.free(self.room.dimension), moment.position, home)
        squared = jnp.sum(away**2, axis=1)
        distance = jnp.sqrt(squared)
        numbers = {"largest_displacement": distance.max(), "mean_square_displacement": jnp.mean(squared)}
        return Seen({"displacement": distance}, numbers)

    def of_origin(self, moment: Moment) -> Seen:
        """Return where along x each particle began, as a fraction of the cell, (N,)."""
        fractions = self.placing.places.fractions
        assert fractions is not None  # asked for only where places fill a cell
        return Seen({"origin": jnp.asarray(fractions[:, 0], moment.position.dtype)}, {})

    def of_lattice(self, moment: Moment) -> Seen:
        """Return the distance of nearest neighbors and the lattice constant of a crystal of the volume of the cell."""
        assert self.lattice is not None  # asked for only where there is one
        (build, dimension), repeats = LATTICES[self.lattice[0]], self.lattice[1]
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            unit = build(repeats)
            edges = np.diag(np.asarray(unit.cell)).astype(float)
        volume = spaces.of_cell(moment.cell, dimension).volume
        nearest = (volume / float(edges.prod())) ** (1 / dimension)
        return Seen({}, {"nearest_distance": nearest, "lattice_constant": float(edges[0]) / repeats[0] * nearest})
