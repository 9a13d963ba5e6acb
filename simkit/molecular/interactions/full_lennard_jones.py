"""Lennard-Jones interaction in a cell: pairs up to a smooth cut-off, plus a uniform tail correction."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular.interactions.interaction import Interaction, combined
from simkit.molecular.interactions.pair_interaction import Method, pair_interaction
from simkit.molecular.interactions.uniform_tail import uniform_tail
from simkit.molecular.neighbors.pair_sums import PairParameter
from simkit.molecular.potentials import lennard_jones, switched

type Units = Callable[[Params], tuple[jax.Array, jax.Array]]


def full_lennard_jones(
    switch_on: float,
    cutoff: float,
    *,
    capacity: int,
    skin: float,
    method: Method = "auto",
    units: Units = lambda params: (params["epsilon"], params["sigma"]),
) -> Interaction:
    """Return the Lennard-Jones interaction of a three-dimensional system, with a tail correction for its full range.

        E = sum_{i<j} U(r_ij) S(r_ij) + (2 pi N^2 / V) integral of U (1 - S) r^2 dr from switch_on to infinity

    S falls from 1 at ``switch_on`` to 0 at ``cutoff`` with continuous second derivatives.

    Args:
        switch_on: in units of sigma.
        cutoff: in units of sigma.
        capacity: neighbors per particle that the list can hold.
        skin: of the list, in units of the cut-off.
        method: as for `simkit.molecular.interactions.pair_interaction.pair_interaction`.
        units: ``params -> (epsilon, sigma)``.
    """

    def parameters(params: Params) -> dict[str, PairParameter]:
        epsilon, sigma = units(params)
        return {"epsilon": epsilon, "sigma": sigma, "switch_on": switch_on * sigma, "cutoff": cutoff * sigma}

    pair = pair_interaction(
        switched(lennard_jones()),
        cutoff=lambda params: cutoff * units(params)[1],
        parameters=parameters,
        method=method,
        skin=skin,
        capacity=capacity,
    )
    integral = _tail_integral(switch_on, cutoff)

    def tail(params: Params) -> jax.Array:
        epsilon, sigma = units(params)
        return integral * epsilon * sigma**3

    return combined(pair, uniform_tail(tail))


def _tail_integral(switch_on: float, cutoff: float) -> float:
    """Return the integral of ``4 (r^-12 - r^-6) (1 - S(r)) r^2`` from the switch to infinity."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    x = (nodes + 1) / 2
    r = switch_on + (cutoff - switch_on) * x
    in_shell = 4 * (r**-12 - r**-6) * x**3 * (10 - x * (15 - 6 * x)) * r**2
    beyond = 4 * (cutoff**-9 / 9 - cutoff**-3 / 3)
    return float(weights @ in_shell * (cutoff - switch_on) / 2 + beyond)
