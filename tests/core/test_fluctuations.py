"""Derivatives of averages by fluctuations: exact wells, cells that the params give, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.fluctuations import ensemble_derivative
from simkit.errors import UserError
from simkit.molecular import constraints, dynamics, spaces
from simkit.molecular.interactions.interaction import user_energy
from tests.core.wells import WELL, in_a_well, slopes, well
from tests.molecular.dynamics.moving import floats
from tests.tables import every


def test_a_run_in_an_anharmonic_well_has_the_derivatives_of_quadrature(x64):
    found = simkit.ensemble_derivative(well(), [*WELL, "friction"], quantity="spread", steps=60_000)
    assert abs(found.value - in_a_well(**WELL)) < 4 * found.value_error
    for name, exact in slopes(in_a_well, WELL).items():
        assert found.error[name] < 0.05 * abs(exact), name
        assert abs(found.derivative[name] - exact) < 4 * found.error[name], name
    assert found.derivative["friction"] == 0


def test_the_mean_force_on_a_wall_of_a_cell_is_that_of_its_particles(x64):
    # Particles at scaled places s have the energy L^2 (1 - cos(2 pi s)): <U> of an exact distribution.
    def energy(x, cell, params):
        side = jnp.sqrt(spaces.volume_of(cell, 2))
        return jnp.sum(side**2 * (1 - jnp.cos(2 * jnp.pi * x / side)))

    simulation = dynamics.langevin(
        user_energy(energy),
        lambda params, key: jnp.zeros((8, 2)),
        params=floats(side=1.2, mass=1.0, friction=1.0, time_step=0.05, temperature=1.0),
        cell=lambda params: jnp.full(2, params["side"]),
    )
    found = simkit.ensemble_derivative(simulation, "side", quantity="potential_energy", steps=120_000)

    def exact(side):
        u = side**2 * (1 - np.cos(2 * np.pi * np.linspace(0, 1, 1000, endpoint=False)))
        return 16 * np.sum(u * np.exp(-u)) / np.sum(np.exp(-u))

    slope = (exact(1.2001) - exact(1.1999)) / 0.0002
    assert found.error["side"] < 0.2 * abs(slope)
    assert abs(found.derivative["side"] - slope) < 4 * found.error["side"]


FREE = user_energy(lambda position, cell, params: 0.0 * jnp.sum(position))


def gas(method, **options):
    return method(
        FREE,
        lambda params, key: params["length"] * jnp.asarray([[0.0, 0.0], [1.0, 0.0]]),
        params=floats(length=1.0, mass=1.0, friction=1.0, time_step=0.1, temperature=1.0),
        **options,
    )


ROD = constraints.rigid_bonds([[0, 1]], "length")
AT = {"quantity": "potential_energy", "steps": 1000, "every": 10, "skip": 0}


@every(
    ("simulation", "wrt", "given", "message"),
    [
        (lambda: gas(dynamics.velocity_verlet), "mass", {}, "no bath with a known distribution; take langevin"),
        (lambda: simkit.rigid.bouncing_ball(), "gravity", {"quantity": "height"}, "does not declare the distribution"),
        (lambda: gas(dynamics.langevin, constraints=ROD), "length", {}, "'length' changes lengths of rigid bonds"),
        (lambda: gas(dynamics.langevin, frozen=[True, False]), "length", {}, "changes places of frozen particles"),
        (lambda: gas(dynamics.langevin), "mass", {"steps": 300}, "leave fewer than 40 samples"),
        (lambda: gas(dynamics.langevin), "mass", {"quantity": "enthalpy"}, "quantity = 'enthalpy' is unknown"),
        (
            lambda: gas(dynamics.langevin, temperature=lambda params, time: params["temperature"] * (1 + time)),
            "mass",
            {},
            "temperature or pressure change in time",
        ),
    ],
)
def test_what_fluctuations_do_not_tell_is_refused_in_one_line(simulation, wrt, given, message):
    with pytest.raises(UserError, match=message):
        ensemble_derivative(simulation(), wrt=wrt, **AT | given)


def test_a_run_shorter_than_its_correlations_warns(x64):
    with pytest.warns(UserWarning, match="errors are too small"):
        simkit.ensemble_derivative(well(time_step=0.01), "stiffness", quantity="spread", steps=1000)
