import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.adams_bashforth import FlowState, adams_bashforth
from simkit.flow.eddies import random_eddies
from simkit.flow.grid import uniform_grid
from simkit.flow.measures import kinetic_energy
from simkit.flow.operators import divergence, gradient, laplacian
from tests.flow.flows import on_every_grid, solenoidal_noise, stretched_grid


@functools.partial(jax.jit, static_argnames="grid")
def flow(grid, velocity, steps, viscosity, time_step, force=(0.0, 0.0), walls=(0.0, 0.0)):
    """The state after some steps."""
    start, step = adams_bashforth(grid)

    def advance(_, state):
        return step(state, viscosity, time_step, force, walls)

    return jax.lax.fori_loop(0, steps, advance, start(velocity, viscosity, walls))


def eddies(grid, dtype=jnp.float64):
    return random_eddies(grid, jax.random.key(0), dtype)


def difference(a: FlowState, b: FlowState) -> float:
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(a.velocity, b.velocity, strict=True))


@pytest.mark.parametrize("walls", [(0.0, 0.0), (-0.5, 1.0)], ids=["walls at rest", "moving walls"])
def test_velocity_is_second_order_in_time(walls, x64):
    grid = uniform_grid((16, 12), 4.0)
    velocity = eddies(grid)

    def after(steps):
        return flow(grid, velocity, steps, jnp.asarray(0.02), jnp.asarray(0.5 / steps), (0.06, 0.0), walls)

    runs = [after(steps) for steps in (40, 80, 160)]
    order = np.log2(difference(runs[0], runs[1]) / difference(runs[1], runs[2]))
    # The next term of the error is smaller by the largest rate times the step: eddies turn at a rate of about 5, and
    # 5 * 0.5/80 = 0.03 shifts the measured order by less than log2(1 + 0.03).
    assert order == pytest.approx(2, abs=0.05)


def test_pressure_is_second_order_in_time(x64):
    grid = uniform_grid((16, 12), 4.0)
    velocity = eddies(grid)

    def at_half(steps):
        numbers = (jnp.asarray(0.02), jnp.asarray(0.5 / steps), (0.06, 0.0), (0.0, 1.0))
        # The pressure belongs to the middle of a step, so that of two steps together to the time between them.
        return sum(flow(grid, velocity, n, *numbers).pressure for n in (steps, steps + 1)) / 2

    runs = [at_half(steps) for steps in (40, 80, 160)]
    changes = [float(jnp.max(jnp.abs(a - b))) for a, b in itertools.pairwise(runs)]
    # As for the velocity.
    assert np.log2(changes[0] / changes[1]) == pytest.approx(2, abs=0.05)


@on_every_grid
def test_pressure_of_the_start_makes_the_acceleration_solenoidal(grid, x64):
    velocity = solenoidal_noise(grid, 0)
    state = flow(grid, velocity, 0, jnp.asarray(0.02), jnp.asarray(0.01), (1.0, 0.0), (0.0, 1.0))
    viscous = laplacian(velocity, (0.0, 1.0), grid)
    slope = gradient(state.pressure, grid)
    acceleration = jax.tree.map(lambda a, d, g: -a + 0.02 * d - g, state.advection, viscous, slope)
    # Rounding of advection and friction, below 1e3, over cells above 0.1.
    assert jnp.max(jnp.abs(divergence(acceleration, grid))) < 1e-10


@pytest.mark.parametrize("precision", ["float32", "float64"])
@on_every_grid
def test_divergence_is_round_off_after_any_number_of_steps(grid, precision, x64):
    dtype = jnp.dtype(precision)
    velocity = jax.tree.map(lambda w: (0.2 * w).astype(dtype), eddies(grid))
    width = min(grid.dx, grid.heights.min())
    for steps in (0, 1, 2, 300):
        viscosity, time_step = jnp.asarray(0.01, dtype), jnp.asarray(0.02, dtype)
        state = flow(grid, velocity, steps, viscosity, time_step, (viscosity, 0 * viscosity), (0.0, 1.0))
        assert state.velocity[0].dtype == dtype
        # Differences of velocities of size 1, each known to eps, over cells of width w; four faces per cell and a few
        # roundings each. It does not grow with the number of steps, since every step projects the whole velocity.
        assert jnp.max(jnp.abs(divergence(state.velocity, grid))) < 20 * jnp.finfo(dtype).eps / width


def test_kinetic_energy_is_conserved_without_viscosity_but_for_the_time_step(x64):
    grid = stretched_grid()
    velocity = solenoidal_noise(grid, 0)

    def gain(steps):
        state = flow(grid, velocity, steps, jnp.asarray(0.0), jnp.asarray(0.01 / steps))
        return float(kinetic_energy(state.velocity, grid) / kinetic_energy(velocity, grid)) - 1

    # The semi-discrete equations conserve energy exactly, so what is gained is the error of the second-order scheme.
    assert gain(40) / gain(20) == pytest.approx(1 / 4, rel=0.2)
    assert abs(gain(40)) < 1e-3


def test_kinetic_energy_decays_by_viscosity(x64):
    grid = uniform_grid((16, 12), 4.0)
    velocity = eddies(grid)
    energies = [
        float(kinetic_energy(flow(grid, velocity, steps, jnp.asarray(0.02), jnp.asarray(0.01)).velocity, grid))
        for steps in range(0, 100, 20)
    ]
    assert energies == sorted(energies, reverse=True)
    assert energies[-1] < 0.9 * energies[0]


def test_very_viscous_flow_is_stable_at_any_time_step(x64):
    grid = uniform_grid((16, 12), 4.0)
    # Here viscosity * time_step/dy^2 = 36000; an explicit scheme bears 1/4.
    state = flow(grid, eddies(grid), 200, jnp.asarray(1e3), jnp.asarray(1.0))
    assert kinetic_energy(state.velocity, grid) < 1


def test_impulsively_started_wall_leaves_no_oscillation(x64):
    grid = uniform_grid((4, 64), 1.0)
    rest = (jnp.zeros(grid.cells), jnp.zeros(grid.cells))
    for steps in range(1, 6):
        profile = flow(grid, rest, steps, jnp.asarray(1.0), jnp.asarray(0.01), walls=(0.0, 1.0)).velocity[0][0]
        # From the lower wall to the moving one the exact velocity grows monotonically. Steps of Crank-Nicolson's kind
        # alone would overshoot: viscosity * time_step/dy^2 = 10, where the kink of the start flips its sign each step.
        assert jnp.all(jnp.diff(profile) > 0)
        assert profile[-1] < 1


def test_flow_turned_around_is_the_flow_turned_around(x64):
    """A turn of the channel by 180 degrees, x to -x and y to -y, maps solutions to solutions."""
    grid = uniform_grid((16, 12), 4.0)

    def turned(velocity):
        u, v = velocity
        # The right face of cell i becomes the left face of cell -i, and the upper face of cell j the lower one.
        return -jnp.roll(u[::-1, ::-1], -1, axis=0), jnp.pad(-v[::-1, -2::-1], ((0, 0), (0, 1)))

    numbers = (jnp.asarray(0.02), jnp.asarray(0.02))
    plain = flow(grid, eddies(grid), 20, *numbers, (0.06, 0.0), (-0.5, 1.0))
    mirrored = flow(grid, turned(eddies(grid)), 20, *numbers, (-0.06, 0.0), (-1.0, 0.5))
    for a, b in zip(turned(plain.velocity), mirrored.velocity, strict=True):
        # Rounding errors of 20 steps of a velocity of size 3.
        assert jnp.allclose(a, b, rtol=0, atol=1e-13)
