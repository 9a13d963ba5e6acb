"""Rates of rare events by harmonic transition-state theory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular.analysis.elasticity import hessian, mass_weighted, squared_frequencies
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def attempt_frequency(
    interaction: Interaction,
    minimum: jax.Array,
    saddle: jax.Array,
    cell: Cell,
    params: Params,
    *,
    mass: jax.Array | float = 1.0,
    frozen: np.ndarray | None = None,
    neighbors: tuple[Any, Any] | None = None,
) -> jax.Array:
    """Return Vineyard's attempt frequency ``nu`` of the rate ``nu exp(-barrier / kT)``, 1 / time.

        nu = prod_i omega_i(minimum) / (2 pi prod'_i omega_i(saddle))

    The second product leaves out the unstable mode, both leave out rigid motions without a restoring force. In free
    space these would add a ratio of moments of inertia, which is not included. The result is NaN unless the minimum has
    no unstable mode, the saddle exactly one, and both the same number of zero modes. Differentiable, also where
    frequencies are degenerate, since the product is symmetric in them.

    Args:
        interaction: energy of the particles.
        minimum: length, (N, d).
        saddle: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`; ``None`` for free space.
        params: of the interaction.
        mass: of the particles, scalar or (N,).
        frozen: mask of particles that do not move, (N,) booleans; ``None``: all move.
        neighbors: current at the minimum and at the saddle; ``None`` prepares them.

    Example:
        >>> well = molecular.interactions.user_energy(
        ...     lambda x, cell, p: jnp.sum((x[:, 0] ** 2 - 1) ** 2 + p["k"] / 2 * x[:, 1] ** 2)
        ... )
        >>> at = jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 0.0]])
        >>> frequency = molecular.barriers.attempt_frequency(well, *at, None, {"k": 3.0})
        >>> print(f"{frequency:.4f} = sqrt(8) / (2 pi) = {8**0.5 / 2 / np.pi:.4f}")
        0.4502 = sqrt(8) / (2 pi) = 0.4502

    Reference: Vineyard, J. Phys. Chem. Solids 3, 121 (1957), doi:10.1016/0022-3697(57)90059-8.
    """
    count, dimension = minimum.shape
    mobile = np.ones(count, bool) if frozen is None else ~np.asarray(frozen)
    rows = np.flatnonzero(np.repeat(mobile, dimension))
    weights = jnp.broadcast_to(jnp.asarray(mass, minimum.dtype), count)[mobile]

    def product(position: jax.Array, near: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return half the logarithm of the product of the stable modes, and the numbers of unstable and zero modes."""
        matrix = hessian(interaction, position, cell, params, neighbors=near)[rows][:, rows]
        squared, is_zero = squared_frequencies(mass_weighted(matrix, weights))
        is_stable = ~is_zero & (squared > 0)
        logarithms = jnp.where(is_stable, jnp.log(jnp.where(is_stable, squared, 1)), 0)
        return logarithms.sum() / 2, (~is_zero & (squared < 0)).sum(), is_zero.sum()

    bottom, falls, rigid = product(minimum, None if neighbors is None else neighbors[0])
    top, descents, rigid_at_top = product(saddle, None if neighbors is None else neighbors[1])
    is_transition = (falls == 0) & (descents == 1) & (rigid == rigid_at_top)
    return jnp.where(is_transition, jnp.exp(bottom - top) / (2 * jnp.pi), jnp.nan)
