"""Integrators: their order under forces of every kind, conserved quantities, and reversibility."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from tests.rigid.test_integrators import asymmetric_body, check_derivative

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_body_at_rest_has_finite_derivatives(name):
    bodies, spin = asymmetric_body(), jnp.zeros(3)
    still = Wrench(force=vector.zeros(bodies.mass), torque=vector.zeros(bodies.mass))

    def outcome(spin):
        motion = motion_of(bodies, vector.vector(jnp.zeros((1, 3))), angular_velocity=vector.vector(spin[None]))
        motion = integrator_named(name)(motion, bodies, lambda *_: still, jnp.array(0.0), jnp.array(0.1))
        return quaternion.stacked(motion.orientation)[0]

    # A turn by omega / 10: q = exp(omega / 20), of slope 1/20.
    for slope in (jax.jacrev(outcome)(spin), jax.jacfwd(outcome)(spin)):
        np.testing.assert_allclose(slope, np.vstack([np.zeros(3), np.eye(3) / 20]), atol=1e-15)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_the_derivative_of_a_motion_is_its_central_difference(name):
    check_derivative(name)
