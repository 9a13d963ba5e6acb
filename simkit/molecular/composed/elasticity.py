"""Elastic constants of a relaxed system: stiffnesses and moduli as diagnostics."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.analysis.elasticity import elastic_constants
from simkit.molecular.analysis.moduli import voigt_bulk_modulus, voigt_shear_modulus
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.moment import Moment, Observations
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale, largest_norm

# Factor on the force tolerance: an evaluated force differs from the stored one of the minimizer by round-off.
SAME_FORCE = 2.0
# Numbers of the Voigt components, of xx yy xy in two dimensions and of xx yy zz yz xz xy in three.
COMPONENTS = {2: (1, 2, 6), 3: (1, 2, 3, 4, 5, 6)}


@dataclasses.dataclass(frozen=True)
class Elasticity:
    """Elastic constants of a system at rest.

    Attributes:
        interaction: energy of the particles.
        scale: ``params -> Scale`` of a bond.
        force_tolerance: largest residual force of the relaxation, in units of a bond's stiffness times its length.
        rattlers: ``moment -> `` mask of the particles without load-bearing contacts, (N,) booleans; ``None`` if there
            are none.
    """

    interaction: Interaction
    scale: Callable[[Params], Scale]
    force_tolerance: float
    rattlers: Callable[[Moment], jax.Array] | None

    def of_moment(self, moment: Moment) -> Observations:
        """Return the stiffnesses ``c11``, ``c12`` to ``c66`` and the moduli, NaN until the system is at rest.

        ``c12`` is the derivative of the stress along xx by the strain along yy, with relaxed particles. The moduli are
        those of Voigt, means over all directions.
        """
        position, cell, params, neighbors = moment.position, moment.cell, moment.params, moment.neighbors
        assert cell is not None  # refused in free space
        names = stiffness_names(position.shape[1])

        def measured() -> tuple[jax.Array, ...]:
            matrix = elastic_constants(
                self.interaction,
                position,
                spaces.lattice_vectors(cell),
                params,
                neighbors=neighbors,
                rattlers=None if self.rattlers is None else self.rattlers(moment),
            ).stiffness
            moduli = voigt_bulk_modulus(matrix), voigt_shear_modulus(matrix)
            return *(matrix[entry] for entry in names.values()), *moduli

        def undefined() -> tuple[jax.Array, ...]:
            return (jnp.asarray(jnp.nan, position.dtype),) * (len(names) + 2)

        length, stiffness = self.scale(without_time(params))
        limit = SAME_FORCE * self.force_tolerance * stiffness * length
        is_at_rest = largest_norm(self.interaction.force(position, cell, params, neighbors)) < limit
        # Away from equilibrium the linear solves would not converge.
        values = jax.lax.cond(is_at_rest, measured, undefined)
        return Observations({}, dict(zip((*names, "bulk_modulus", "shear_modulus"), values, strict=True)))


def stiffness_names(dimension: int) -> dict[str, tuple[int, int]]:
    """Return the rows and columns of the stiffness on and above its diagonal, by name such as ``c12``."""
    numbers = COMPONENTS[dimension]
    return {
        f"c{first}{second}": (row, column)
        for row, first in enumerate(numbers)
        for column, second in enumerate(numbers)
        if row <= column
    }
