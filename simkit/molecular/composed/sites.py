"""Sites of the start: displacements from them, fractional coordinates of the origin, and the lattice constant."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.moment import Moment, Observations
from simkit.molecular.composed.placing import Placing
from simkit.molecular.composed.starts import LATTICES


@dataclasses.dataclass(frozen=True)
class Sites:
    """Starting positions that do not depend on the key.

    Attributes:
        placing: starting positions.
        room: the cell at the start.
        moves_cell: whether the cell changes.
        may_drift: whether all particles may move together without meaning: nothing holds or pushes them from outside.
    """

    placing: Placing
    room: SystemCell
    moves_cell: bool
    may_drift: bool

    def of_displacement(self, moment: Moment) -> Observations:
        """Return the distance of each particle from its site, (N,); sites follow the cell, and a drift that is free."""
        params = without_time(moment.params)
        home = self.placing.standing(params).astype(moment.position.dtype)
        if self.moves_cell:
            assert moment.cell is not None  # there is one that moves
            home = home @ spaces.inverse_of(self.room.vectors(params)) @ spaces.lattice_vectors(moment.cell)
        away = moment.position - home
        if self.may_drift:
            away = spaces.displacement_without_drift(spaces.free(self.room.dimension), moment.position, home)
        squared = jnp.sum(away**2, axis=1)
        distance = jnp.sqrt(squared)
        numbers = {"largest_displacement": distance.max(), "mean_square_displacement": jnp.mean(squared)}
        return Observations({"displacement": distance}, numbers)

    def of_origin(self, moment: Moment) -> Observations:
        """Return the x coordinate of the site of each particle as a fraction of the cell, (N,)."""
        fractions = self.placing.places.fractions
        assert fractions is not None  # called only if positions fill a cell
        return Observations({"origin": jnp.asarray(fractions[:, 0], moment.position.dtype)}, {})

    def of_lattice(self, moment: Moment) -> Observations:
        """Return the distance of nearest neighbors and the lattice constant of a crystal of the volume of the cell."""
        lattice = self.placing.places.lattice
        assert lattice is not None  # called only for a start by lattice
        (build, dimension), repeats = LATTICES[lattice[0]], lattice[1]
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            unit = build(repeats)
            edges = np.diag(np.asarray(unit.cell)).astype(float)
        volume = spaces.of_cell(moment.cell, dimension).volume
        nearest = (volume / float(edges.prod())) ** (1 / dimension)
        return Observations(
            {}, {"nearest_distance": nearest, "lattice_constant": float(edges[0]) / repeats[0] * nearest}
        )
