"""Tail correction of any pair energy: pairs beyond the cut-off as a uniform medium."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.molecular.composed.cells import SystemCell
from simkit.molecular.composed.pair_terms import PairTerm
from simkit.molecular.composed.particles import Particles
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.uniform_tail import uniform_tail

NODES, WEIGHTS = (array.tolist() for array in np.polynomial.legendre.leggauss(48))


def tail_of(term: PairTerm, particles: Particles, cell: SystemCell, settings: Settings) -> Interaction:
    """Return the energy and pressure that the cut-off of a pair energy neglects.

    ``2 pi / V sum_ab N_a N_b M_ab`` with ``M_ab = integral of (U - U_ended) r^2 dr`` from where a switch begins to
    infinity; U must fall off faster than r^-3.

    Args:
        term: the pair energy.
        particles: the particles, with the number of each species.
        cell: cell of the system.
        settings: settings of the interaction, for messages.

    Raises:
        UserError: if the energy has no end, or one that changes it everywhere, or the cell is no periodic one in space.
    """
    if cell.dimension != 3 or not cell.is_closed:
        raise settings.refuse("tail", "needs a cell that repeats along three axes; leave it out")
    if not term.ends or settings["ending"] not in ("switch", "truncate"):
        raise settings.refuse("tail", "needs a cutoff with the ending 'switch' or 'truncate'; give one")
    counts = np.bincount(particles.species, minlength=len(particles.names)) / particles.count
    shares = {
        (a, b): counts[a] * counts[b] for a in range(len(counts)) for b in range(len(counts)) if term.between[a, b]
    }

    def moment(params: Params) -> jax.Array:
        total = 0.0
        for (a, b), share in shares.items():
            total = total + share * _missing(term, params, a, b)
        return jnp.asarray(total)

    return uniform_tail(moment)


def _missing(term: PairTerm, params: Params, a: int, b: int) -> jax.Array:
    """Return M of one pair of species."""
    assert term.cutoff is not None  # it ends
    cutoff = term.cutoff(params)
    cutoff = cutoff[a, b] if cutoff.ndim else cutoff
    values = term.of_pair(params, a, b)

    def energy(r: jax.Array) -> jax.Array:
        return term.bare.energy(r, **values)

    inner = (
        0.0
        if term.switch_on == 1
        else _integral(_faded(energy, cutoff, term.switch_on), term.switch_on * cutoff, cutoff)
    )
    # Beyond the cut-off by r = cutoff / x.
    beyond = _integral(lambda x: energy(cutoff / x) * cutoff**3 / x**4, jnp.zeros_like(cutoff), jnp.ones_like(cutoff))
    return inner + beyond


def _faded(energy: Callable, cutoff: jax.Array, share: float) -> Callable:
    def lost(r: jax.Array) -> jax.Array:
        x = (r / cutoff - share) / (1 - share)
        return energy(r) * x**3 * (10 - x * (15 - 6 * x)) * r**2

    return lost


def _integral(function: Callable, low: jax.Array, high: jax.Array) -> jax.Array:
    nodes, weights = jnp.asarray(NODES, high.dtype), jnp.asarray(WEIGHTS, high.dtype)
    x = low + (high - low) * (nodes + 1) / 2
    return jnp.sum(weights * function(x)) * (high - low) / 2
