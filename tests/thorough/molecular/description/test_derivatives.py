"""Derivatives of systems given as data by every kind of parameter, against central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import system
from tests.differences import central_difference

pytestmark = pytest.mark.usefixtures("x64")

PAIR = {
    "energy": "4*depth*((size/r)**12 - (size/r)**6) + q_i*q_j/r",
    "values": {"depth": {"A_A": "epsilon", "A_B": "1.5*epsilon", "B_B": 0.5}, "size": "bonds*sigma"},
    "cutoff": "2*sigma",
}
PARAMETERS = {
    "epsilon": 1.0,
    "sigma": 0.9,
    "bonds": [[1.0, 0.9], [0.9, 0.95]],
    "charge": 0.2,
    "density": 0.9,
    "strength": 0.3,
    "speed": 2.0,
    "time_step": 0.004,
    "hot": 0.3,
    "weight": 1.5,
    "softness": 1.2,
}


def moved(made, params):
    """Return a number that depends on all particles after some steps of dynamics."""
    state = made.init(params, jax.random.key(0))
    for _ in range(3):
        state = made.step(state, params)
    return jnp.sum(jnp.sin(state.position)) + jnp.sum(state.velocity**2)


def mixture():
    """Return charged particles of two kinds, with masses, tables, a field in time, a wall and a bath that cools."""
    return system(
        particles={
            "A": {"count": 5, "mass": "weight", "values": {"q": "charge"}},
            "B": {"count": 4, "values": {"q": "-charge"}},
        },
        interactions=[PAIR],
        fields=[{"energy": "strength*cos(2*pi*x/side - speed*time)", "on": ["A"]}],
        walls=[{"distance": "y + 0.3", "potential": "soft_sphere", "values": {"epsilon": "softness", "sigma": 1}}],
        start={"lattice": "square", "repeats": [3, 3], "arrangement": 1, "disorder": 0.05},
        cell={"density": "density", "periodic": [True, False]},
        derived={"side": "sqrt(9/density)"},
        task="dynamics",
        dynamics={"method": "langevin", "friction": 0.5, "time_step": "time_step", "temperature": "hot*exp(-time)"},
        parameters=PARAMETERS,
    )


def test_dynamics_has_derivatives_by_every_kind_of_parameter():
    made = mixture()
    params = made.params
    slopes = jax.jit(jax.jacrev(lambda values: moved(made, values)))(params)
    function = jax.jit(lambda values: moved(made, values))
    for name, difference in central_difference(function, params, list(params)).items():
        np.testing.assert_allclose(slopes[name], difference, rtol=2e-6, atol=1e-9, err_msg=name)
        assert np.all(np.asarray(slopes[name]) != 0), name


def resting(**more):
    """Return charges in a trap beside one that stays where it is."""
    return system(
        particles={"A": {"count": 3}, "B": {"count": 1, "frozen": True}},
        interactions=[{"energy": "1/r"}],
        fields=[{"energy": "stiffness*(x**2 + 1.3*y**2)"}],
        start={"positions": [[0.5, 0], [-0.2, 0.6], [-0.3, -0.5], ["place", "place/2"]]},
        parameters={"stiffness": 1.0, "place": 1.1},
        **more,
    )


def test_relaxed_particles_beside_a_frozen_one_have_implicit_derivatives():
    made = resting(relax={"force_tolerance": 1e-13})

    def measure(params):
        found = converge(made, 200)(made.init(params, jax.random.key(0)), params)
        return jnp.sum(jnp.sin(made.observe(found.state, params)["position"])), found.status

    (_, status), slopes = jax.jit(jax.value_and_grad(measure, has_aux=True))(made.params)
    assert int(status) == Status.CONVERGED
    ends = jax.jit(lambda params: measure(params)[0])
    differences = central_difference(ends, made.params, ["stiffness", "place"], 1e-4)
    for name in ("stiffness", "place"):
        assert float(slopes[name]) == pytest.approx(float(differences[name]), rel=1e-5), name
