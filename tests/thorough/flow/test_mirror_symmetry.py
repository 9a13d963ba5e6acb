"""Mirror symmetry: mirrored domain, sides, force and initial state give the mirrored result."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain, prescribe
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.equations import Equations
from simkit.flow.grid import Axis, bounded_axis, periodic_axis
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import solenoidal_noise, uneven_axis

pytestmark = pytest.mark.usefixtures("x64")

WALLS = ("wall", "wall")
STEPS = 10
PARAMS = {"viscosity": 0.02, "time_step": 0.01}


def profile(points):
    """An inflow without symmetry, between 0.5 and 1.5."""
    return 1 + 0.5 * np.sin(2 * points + 0.3)


def channel():
    grid = periodic_axis(12, 3.0), uneven_axis(10)
    return domain(grid, (None, WALLS)), (None, ((-0.3, 0.0), (1.0, 0.0)))


def cavity():
    grid = uneven_axis(9), bounded_axis(10, 2.0, -1.0, 1.5)
    return domain(grid, (WALLS, WALLS)), (((0.0, 0.4), (0.0, 0.0)), ((0.0, 0.0), (1.0, 0.0)))


def inflow():
    grid = uneven_axis(12), uneven_axis(9)
    entering = profile(grid[1].centers)[None, :], 0.2 * profile(grid[1].faces)[None, :]
    sides = ("inflow", "outflow"), ("free_slip", "wall")
    return domain(grid, sides), ((entering, (0.0, 0.0)), ((0.0, 0.0), (0.5, 0.0)))


CASES = {
    "channel, Adams-Bashforth": (channel, {"method": "adams_bashforth", "implicit": (0, 1)}),
    "cavity, Runge-Kutta": (cavity, {}),
    "inflow, Adams-Bashforth": (inflow, {"method": "adams_bashforth"}),
    "inflow, Runge-Kutta, upwind": (inflow, {"implicit": (1,), "scheme": "upwind"}),
}


def flipped(velocity, axis, place):
    """The mirror image of a velocity under x[axis] -> -x[axis]."""
    images = []
    for i, f in enumerate(velocity):
        image = jnp.flip(f, axis)
        if i == axis and place.grid.axes[axis].periodic:
            # The right face of a cell becomes the left face of its image, which is the right one of the cell before.
            image = jnp.roll(image, -1, axis)
        images.append(-image if i == axis else image)
    return tuple(images)


def flipped_side(velocity, axis, along):
    """The mirror image of the velocity on a side; ``along``: whether the side is parallel to the axis."""
    values = [np.flip(f, axis) if along and np.ndim(f) else f for f in velocity]
    return tuple(-f if i == axis else f for i, f in enumerate(values))


def flipped_place(place, boundary, axis):
    """The mirror image of a domain and of the velocities on its sides."""
    axes, sides, image = list(place.grid.axes), list(place.sides), list(boundary)
    axes[axis] = Axis(-axes[axis].faces[::-1], axes[axis].periodic)
    for j, pair in enumerate(boundary):
        if pair is not None:
            image[j] = tuple(flipped_side(velocity, axis, j != axis) for velocity in pair)
            if j == axis:
                image[j], sides[j] = image[j][::-1], sides[j][::-1]
    return domain(tuple(axes), tuple(sides)), tuple(image)


def after(place, boundary, velocity, force, options):
    """The state after some steps."""
    equations = Equations(
        domain=place,
        viscosity=lambda params: params["viscosity"],
        time_step=fixed_time_step,
        boundary=lambda params, time: boundary,
        force=lambda velocity, scalar, params, time: force,
        **options,
    )
    start, step = stepper(equations)

    @jax.jit
    def run(velocity, params):
        state = start(prescribe(velocity, boundary, place), params)
        return jax.lax.fori_loop(0, STEPS, lambda _, state: step(state, params), state)

    return run(velocity, jax.tree.map(jnp.asarray, PARAMS))


@pytest.mark.parametrize("case", CASES)
def test_mirror_image_of_a_flow_is_the_flow_of_the_mirror_image(case):
    make, options = CASES[case]
    place, boundary = make()
    velocity = jax.tree.map(lambda f: 0.3 * f, solenoidal_noise(place.grid, 3))
    plain = after(place, boundary, velocity, (0.5, -0.2), options)
    assert kinetic_energy(plain.velocity, place.grid) > 0.01
    for axis in (0, 1):
        image, its_boundary = flipped_place(place, boundary, axis)
        force = (-0.5, -0.2) if axis == 0 else (0.5, 0.2)
        mirrored = after(image, its_boundary, flipped(velocity, axis, place), force, options)
        expected = flipped(plain.velocity, axis, place)
        # Not an image of itself: a flow that did not notice the mirror would fail.
        assert max(jnp.max(jnp.abs(a - b)) for a, b in zip(expected, plain.velocity, strict=True)) > 0.1
        for a, b in zip(mirrored.velocity, expected, strict=True):
            # Sums in another order: rounding of velocities of size 1 in some 30 projections, whose solutions are known
            # to about 1e-15 times the number of cells along an axis.
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        # The pressure is a velocity times the least width over a part of the time step, some 10 times as large.
        np.testing.assert_allclose(mirrored.pressure, jnp.flip(plain.pressure, axis), rtol=0, atol=1e-11)
