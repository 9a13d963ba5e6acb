import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.diagnosis.measures import kinetic_energy
from tests.flow.flows import DOMAINS, solenoidal_noise, uniform_channel
from tests.flow.test_stepper import CHANNEL, KINDS, eddies, flow
from tests.longer.flow.test_stepper import test_a_step_and_its_derivatives_agree_in_both_formulations as quick
from tests.tables import misses


# The pressure belongs to the middle of the last stage: half a step before the end, or a sixth.
@pytest.mark.parametrize(("scheme", "before"), [("adams_bashforth, implicit", 1 / 2), ("runge_kutta, implicit", 1 / 6)])
def test_pressure_is_second_order_in_time(scheme, before, x64):
    velocity = eddies(CHANNEL)

    def at_half(steps):
        params = {"time_step": 0.5 / steps, "force": 0.06, "upper": 1.0}
        early, late = (flow(CHANNEL, scheme, velocity, n, **params).pressure for n in (steps, steps + 1))
        return (1 - before) * early + before * late

    runs = [at_half(steps) for steps in (40, 80, 160)]
    changes = [float(jnp.max(jnp.abs(a - b))) for a, b in itertools.pairwise(runs)]
    # As for the velocity.
    assert np.log2(changes[0] / changes[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("scheme", "order"), [("runge_kutta", 3), ("adams_bashforth", 2)])
@pytest.mark.parametrize("name", ["stretched", "periodic", "cavity", "box 3-D"])
def test_kinetic_energy_is_conserved_without_viscosity_but_for_the_time_step(name, scheme, order, x64):
    place = DOMAINS[name]
    velocity = solenoidal_noise(place.grid, 0)

    def gain(steps):
        state = flow(place, scheme, velocity, steps, viscosity=0.0, time_step=0.01 / steps)
        return float(kinetic_energy(state.velocity, place.grid) / kinetic_energy(velocity, place.grid)) - 1

    # The semi-discrete equations conserve energy exactly, so what is gained is the error of the scheme.
    assert gain(40) / gain(20) == pytest.approx(2.0**-order, rel=0.2)
    assert abs(gain(40)) < 1e-3


def test_impulsively_started_wall_leaves_no_oscillation(x64):
    walls = uniform_channel((4, 64), 1.0)
    rest = tuple(jnp.zeros(walls.grid.shape(i)) for i in range(2))
    for steps in range(1, 6):
        state = flow(walls, "adams_bashforth, implicit", rest, steps, viscosity=1.0, upper=1.0)
        profile = state.velocity[0][0]
        # From the lower wall to the moving one the exact velocity grows monotonically. Steps of Crank-Nicolson's kind
        # alone would overshoot: viscosity * time_step/dy^2 = 10, where the kink of the start flips its sign each step.
        assert jnp.all(jnp.diff(profile) > 0)
        assert profile[-1] < 1


def test_steps_of_all_kinds_and_their_derivatives_agree_in_both_formulations(x64):
    assert not misses(KINDS, quick.check)
