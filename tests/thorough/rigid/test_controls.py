"""Forces held constant over steps, with every method: displacement and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.estimation import controlled
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.joints.rattle import Jointed
from tests.rigid.test_controls import CONTROLS, DECISIONS, DT, HELD, KEY, MASS, pushed

pytestmark = pytest.mark.usefixtures("x64")
# How far into its step a held force acts at once: half a step is exact, since x = x0 + v0 dt + F dt^2 / 2m.
METHODS = {
    "Free": (Free(), 0.5),
    "Free by Runge-Kutta": (Free("runge_kutta"), 0.5),
    "Free by Euler": (Free("semi_implicit_euler"), 0.0),
    "Events": (Events(impacts=1), 0.5),
    "Compliant": (Compliant(substeps=4), 0.5),
    "Jointed": (Jointed(), 0.5),
    "Jointed of order 4": (Jointed(order=4), 0.5),
    "Impulses": (Impulses(sweeps=1, impacts=1), 0.0),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_force_held_over_steps_and_its_derivatives_are_exact(name):
    method, into = METHODS[name]
    simulation = pushed(method)
    run, state = controlled(simulation, HELD), simulation.init(simulation.params, KEY)

    def way(controls):
        seen = run(state, simulation.params, {"push": controls})[1]
        return seen["x"][-1], seen

    (x, seen), slope = jax.jit(jax.value_and_grad(way, has_aux=True))(jnp.asarray(CONTROLS))
    # Each step with force F adds F dt / m to the speed, for the rest of the time.
    left = np.arange(DECISIONS * HELD, 0, -1) - into
    each = (DT**2 / MASS * left).reshape(DECISIONS, HELD).sum(axis=1)
    np.testing.assert_allclose(slope, each, rtol=1e-10)
    np.testing.assert_allclose(x, each @ CONTROLS, rtol=1e-10)
    np.testing.assert_allclose(seen["time"], HELD * DT * np.arange(1, DECISIONS + 1), rtol=1e-12)
