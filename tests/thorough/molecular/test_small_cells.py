"""Status of cells that shrink to less than twice the cut-off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.status import Status, status_of
from simkit.molecular.dynamics import langevin, stochastic_cell_rescaling
from simkit.molecular.interactions import combined, pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import pair_potential
from simkit.molecular.relaxation import relaxation

SIDE = 4.5
TOLD = "shrank its cell to less than twice the cut-off"
PLACES = np.stack(np.meshgrid(*[np.arange(4) + 0.5] * 2), axis=-1).reshape(-1, 2) * SIDE / 4


def soft(cutoff):
    energy = pair_potential(lambda distance, epsilon: epsilon * jnp.maximum(cutoff - distance, 0) ** 2)
    return pair_interaction(energy, cutoff=cutoff, parameters=["epsilon"])


def interaction():
    return combined(soft(2.0), soft(1.5))


def cell(params):
    return jnp.full(2, SIDE, params["epsilon"].dtype)


def start(params, key):
    return jnp.asarray(PLACES, params["epsilon"].dtype)


def under(pressure, start=start, **options):
    """The relaxation of particles and their cell under a pressure."""
    return relaxation(
        interaction(),
        start,
        params={"epsilon": 1.0, "pressure": pressure},
        scale=lambda params: Scale(jnp.ones_like(params["epsilon"]), params["epsilon"]),
        cell=cell,
        relax_cell=True,
        **options,
    )


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "gradient_descent"])
def test_relaxation_under_too_high_a_pressure_ends_as_cell_too_small(minimizer, x64):
    squeezed = under(100.0, minimizer=minimizer, isotropic=True)
    with pytest.warns(UserWarning, match=TOLD):
        run = simkit.run(squeezed, steps=3000)
    assert float(run["volume"][-1]) < 4.0**2 * 1.0001


def test_a_cell_above_twice_the_cutoff_converges(x64):
    run = simkit.run(under(0.6, isotropic=True), steps=3000, every=3000)
    assert float(run["volume"][-1]) > 4.0**2 and float(run["max_force"][-1]) < 1e-9


@pytest.mark.parametrize("isotropic", [True, False])
def test_dynamics_under_too_high_a_pressure_ends_as_cell_too_small(isotropic):
    moved = langevin(
        interaction(),
        start,
        cell=cell,
        params={
            "epsilon": 1.0,
            "mass": 1.0,
            "temperature": 0.1,
            "friction": 1.0,
            "time_step": 0.005,
            "pressure": 100.0,
            "compressibility": 0.05,
            "barostat_time": 1.0,
        },
        barostat=stochastic_cell_rescaling(isotropic=isotropic),
    )
    with pytest.warns(UserWarning, match=TOLD):
        simkit.run(moved, steps=400)


def test_other_non_finite_numbers_end_as_non_finite():
    broken = under(1.0, lambda params, key: start(params, key) * jnp.nan)
    state = broken.init(broken.params, jax.random.key(0))
    assert int(status_of(broken)(state, broken.params)) == Status.NON_FINITE
