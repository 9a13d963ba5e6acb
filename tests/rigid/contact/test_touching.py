"""Contact law at one point: mobility, and friction within its cone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.quaternion import quaternion, unit
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.algebra.vector import dot, shortened, stacked, vector
from simkit.rigid.contact.sweeping.mobility import Mobility
from simkit.rigid.contact.sweeping.touching import masses
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")
SAMPLES = 500


def some_bodies(seed=0):
    rng = np.random.default_rng(seed)
    # Moments of boxes with edges 0.1 to 3, so that the triangle inequality holds.
    squares = rng.uniform(0.1, 3, (SAMPLES, 3)) ** 2
    moments = squares.sum(1, keepdims=True) - squares
    orientation = unit(quaternion(jnp.asarray(rng.normal(size=(SAMPLES, 4)))))
    mobility = Mobility(
        linear=jnp.asarray(rng.uniform(0.1, 10, SAMPLES)),
        angular=rotated(vector(jnp.asarray(1 / moments)), orientation),
    )
    arm, impulse, normal = (jnp.asarray(rng.normal(size=(SAMPLES, 3))) for _ in range(3))
    return mobility, vector(arm), vector(impulse), vector(normal / jnp.linalg.norm(normal, axis=1, keepdims=True))


def test_friction_is_iterated_with_a_step_that_converges():
    mobility, arm, _, normal = some_bodies(1)
    tensor = mobility.at(arm)
    answer, normal_mass, slip_mass = masses(tensor, normal)
    d, o = tensor.diagonal, tensor.rest
    matrices = np.moveaxis(np.array([[d.x, o.z, o.y], [o.z, d.y, o.x], [o.y, o.x, d.z]]), -1, 0)
    n = np.asarray(stacked(normal))
    along_surface = np.eye(3) - n[:, :, None] * n[:, None, :]
    eigenvalues = np.linalg.eigvalsh(along_surface @ matrices @ along_surface)[:, 1:]
    step = eigenvalues[:, 1] * np.asarray(slip_mass)
    # max over 0 <= x <= 1 of (1 + x) / (1 + x^2) is (1 + sqrt 2) / 2; a step of 2 would no longer converge.
    assert step.max() <= (1 + np.sqrt(2)) / 2 + 1e-9
    assert step.min() >= 1 - 1e-9
    np.testing.assert_allclose(1 / normal_mass, np.einsum("ki,kij,kj->k", n, matrices, n), rtol=1e-10)
    np.testing.assert_allclose(stacked(answer), np.einsum("kij,kj->ki", matrices, n), rtol=1e-9, atol=1e-9)


@every("length", [0.0, 0.5, 2.0])
@every("size", [0.0, 1.0])
def test_friction_within_its_cone_has_finite_and_right_derivatives(size, length):
    direction = jnp.array([0.6, 0.0, 0.8])

    def along(size, length):
        return dot(shortened(vector(size * direction), length), vector(direction))

    value, (by_size, by_length) = jax.value_and_grad(along, (0, 1))(size, length)
    slides = size > length
    assert float(value) == pytest.approx(min(size, length), abs=1e-15)
    # The derivatives are 1 and 0 within the cone, and 0 and 1 outside; rounding is all that is added.
    assert float(by_size) == pytest.approx(0 if slides else 1, abs=1e-15)
    assert float(by_length) == pytest.approx(1 if slides else 0, abs=1e-15)
