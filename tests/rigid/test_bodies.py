"""Bodies: moments of inertia are integrals of the density, and what cannot exist is refused."""

import jax
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.vector import stacked, vector
from simkit.rigid.bodies.bodies import check_bodies, gather, with_inertia
from simkit.rigid.bodies.motion import angular_momentum, angular_velocity, kinetic_energy, momentum, motion_of
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.mesh import mesh
from simkit.rigid.shapes.sphere import sphere
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def gauss(low, high, points=12):
    """Points and weights that integrate polynomials of degree 23 exactly."""
    x, w = np.polynomial.legendre.leggauss(points)
    return (low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w


def solid_of_revolution(pieces):
    """Points (n, 3) and weights of solids about z: pieces (low, high, profile), rho <= profile(z)."""
    points, weights = [], []
    turns = 2 * np.pi * np.arange(8) / 8  # exact for the harmonics up to 7 of a polynomial of degree 2
    for low, high, profile in pieces:
        for z, dz in zip(*gauss(low, high), strict=True):
            for rho, drho in zip(*gauss(0, profile(z)), strict=True):
                points += [[rho * np.cos(turn), rho * np.sin(turn), z] for turn in turns]
                weights += [dz * drho * rho * 2 * np.pi / 8] * 8
    return np.array(points), np.array(weights)


def solid_box(lengths):
    axes = [gauss(-length / 2, length / 2, 3) for length in lengths]
    points = np.stack(np.meshgrid(*[x for x, _ in axes], indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.prod(np.stack(np.meshgrid(*[w for _, w in axes], indexing="ij"), axis=-1), axis=-1).ravel()
    return points, weights


def solid_capsule(radius, length):
    half = length / 2

    def cap(z):
        return np.sqrt(radius**2 - (abs(z) - half) ** 2)

    middle = [(-half, half, lambda z: radius)] if length else []
    return solid_of_revolution([(-half - radius, -half, cap), *middle, (half, half + radius, cap)])


def flat_disk(radius):
    points, weights = solid_of_revolution([(-1e-9, 1e-9, lambda z: radius)])
    return points[:, [0, 2, 1]], weights  # about y


SHAPES = {
    "sphere": (lambda: sphere(2.0, 0.3), solid_capsule(0.3, 0.0)),
    "disk": (lambda: disk(2.0, 0.3), flat_disk(0.3)),
    "box": (lambda: box(2.0, (0.3, 0.5, 1.1)), solid_box((0.3, 0.5, 1.1))),
    "capsule": (lambda: capsule(2.0, 0.3, 0.8), solid_capsule(0.3, 0.8)),
    "long capsule": (lambda: capsule(2.0, 0.01, 3.0), solid_capsule(0.01, 3.0)),
    "short capsule": (lambda: capsule(2.0, 0.3, 1e-3), solid_capsule(0.3, 1e-3)),
}


@every("name", SHAPES)
def test_moments_of_inertia_are_integrals_of_the_density(name):
    make, (points, weights) = SHAPES[name]
    weights = 2.0 * weights / weights.sum()
    # Squares and products are formed before they are added, so that a thin body loses no digits.
    x, y, z = points.T
    moments = weights @ np.stack([y**2 + z**2, z**2 + x**2, x**2 + y**2], axis=1)
    products = weights @ np.stack([y * z, z * x, x * y], axis=1)
    np.testing.assert_allclose(weights @ points, 0, atol=1e-15)
    # The quadrature is exact, so only the rounding of some thousand sums of numbers below 3 is left.
    np.testing.assert_allclose(moments, stacked(make().inertia), rtol=1e-12)
    np.testing.assert_allclose(products, 0, atol=1e-14)


def test_moments_have_derivatives_with_respect_to_mass_and_size():
    def moment(radius):
        return capsule(2.0, radius, 0.8).inertia.x

    step = 1e-6
    difference = (moment(0.3 + step) - moment(0.3 - step)) / (2 * step)
    # Central differences: step^2 times a third derivative of order 10, rounding 1e-16 / step.
    np.testing.assert_allclose(jax.grad(moment)(0.3), difference, rtol=1e-8)
    np.testing.assert_allclose(jax.grad(lambda mass: capsule(mass, 0.3, 0.8).inertia.x)(2.0), moment(0.3) / 2)


def test_momenta_and_energy_are_those_of_the_mass_points():
    make, (points, weights) = SHAPES["box"]
    weights = 2.0 * weights / weights.sum()
    center, speed, omega = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.2, -0.7]), np.array([0.4, -2.0, 3.0])
    bodies = gather([make()])
    motion = motion_of(bodies, vector(center[None]), velocity=vector(speed[None]), angular_velocity=vector(omega[None]))
    velocities = speed + np.cross(omega, points)
    # Exact quadratures: a few dozen roundings.
    np.testing.assert_allclose(kinetic_energy(motion, bodies), weights @ np.sum(velocities**2, axis=1) / 2, rtol=1e-13)
    np.testing.assert_allclose(stacked(momentum(motion, bodies)), weights @ velocities, rtol=1e-13)
    np.testing.assert_allclose(
        stacked(angular_momentum(motion, bodies)), weights @ np.cross(center + points, velocities), rtol=1e-13
    )
    np.testing.assert_allclose(stacked(angular_velocity(motion, bodies))[0], omega, rtol=1e-14)


def good():
    return sphere(1.0, 0.1)


BAD = {
    "mass = -2 is not positive": lambda: sphere(-2.0, 0.1),
    "mass = 0 is": lambda: sphere(0.0, 0.1),
    "mass = nan is": lambda: sphere(np.nan, 0.1),
    "mass = inf is": lambda: sphere(np.inf, 0.1),
    "size = -0.1 is not positive": lambda: sphere(1.0, -0.1),
    "size = 0 is": lambda: disk(1.0, 0.0),
    "size = -0.5 is": lambda: box(1.0, (1.0, -1.0, 1.0)),
    "size = -0.2 is": lambda: capsule(1.0, 0.1, -0.4),
    "size = nan is": lambda: capsule(1.0, np.nan, 0.4),
    "size = inf is": lambda: box(1.0, (1.0, np.inf, 1.0)),
    "moment of inertia = -1 is not positive": lambda: with_inertia(good(), (1.0, -1.0, 1.0)),
    "moment of inertia = nan is": lambda: with_inertia(good(), (1.0, np.nan, 1.0)),
    "moments of inertia 1, 1, 2.1 kg m^2 break the triangle inequality": lambda: with_inertia(good(), (2.1, 1.0, 1.0)),
    "friction = -0.1 is negative": lambda: sphere(1.0, 0.1, friction=-0.1),
    "friction = nan": lambda: sphere(1.0, 0.1, friction=np.nan),
    "restitution = 1.1 is above its upper bound 1": lambda: sphere(1.0, 0.1, restitution=1.1),
    "restitution = -0.5 is below its lower bound 0": lambda: sphere(1.0, 0.1, restitution=-0.5),
}


@every("message", BAD)
def test_bodies_that_cannot_exist_are_refused_in_one_line(message):
    with pytest.raises(UserError) as error:
        check_bodies(gather([good(), BAD[message]()]))
    assert str(error.value).startswith("body 1 (") and f"): {message}" in str(error.value)
    assert "\n" not in str(error.value) and ";" in str(error.value)  # what is wrong; what to do


def test_a_mesh_of_equal_moments_keeps_the_axes_of_its_file():
    corners = [f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    sides = ["f 1 2 4 3", "f 5 7 8 6", "f 1 5 6 2", "f 3 4 8 7", "f 1 3 7 5", "f 2 6 8 4"]
    cube = mesh(6.0, "\n".join(corners + sides), 0.2)
    np.testing.assert_allclose(stacked(cube.half_lengths)[0], 0.1, rtol=1e-12)
    np.testing.assert_allclose(stacked(cube.inertia)[0], 6 * 0.2**2 / 6, rtol=1e-12)
