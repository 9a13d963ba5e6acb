"""The compass walker: its gait as a fixed point, stable, and of period two on steeper slopes, as published.

Goswami, Thuilot and Espiau 1998, doi:10.1177/027836499801701202: legs of 1 m with 5 kg in their middle, 10 kg at the
hip. The first doubling of the period is at a slope of 4.37 degrees.
"""

import jax
import jax.numpy as jnp
import numpy as np

import simkit

# Steps of 10 ms, of which a stride of 0.73 to 0.76 s takes the first.
STEPS = 100


def started(point):
    """Return coordinates and velocities just after an impact, from half the angle of the legs and both rates."""
    angle, standing, swinging = point
    hip = jnp.stack([jnp.cos(angle), jnp.sin(angle)]) * standing
    return jnp.stack([0 * angle, jnp.cos(angle), -angle, angle]), jnp.stack([*hip, standing, swinging])


def strides(simulation):
    """Return ``(point, slope) -> (point, period)``, the map from one impact to the next, which swaps the legs."""

    def stride(point, slope):
        position, velocity = started(point)
        given = {"slope": slope, "initial_position": position, "initial_velocity": velocity}
        params = {**simulation.params, **given}

        def step(state, _):
            later = simulation.step(state, params)
            goes_on = state.memory.impacts == 0
            return jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), later, state), None

        start = simulation.init(params, jax.random.key(0))
        memory = jax.lax.scan(step, start, length=STEPS)[0].memory
        angles, rates = memory.struck_position[2:], memory.struck_velocity[2:]
        after = jnp.stack([(angles[0] - angles[1]) / 2, rates[1], rates[0]])
        return jnp.where(memory.impacts == 1, after, jnp.nan), memory.period

    return stride


def test_the_gait_is_a_stable_fixed_point_whose_period_doubles_at_the_published_slope():
    with jax.enable_x64(True):
        simulation = simkit.build("compass_walker")
        stride = strides(simulation)

        def both(point, slope):
            after, period = stride(point, slope)
            return after, (after, period)

        derivative = jax.jit(jax.jacfwd(both, has_aux=True))

        def gait(point, degrees):
            """Return a fixed point by Newton's method, its period, and the derivative of the map there."""
            slope = jnp.asarray(np.radians(degrees))
            for _ in range(6):
                jacobian, (after, _) = derivative(point, slope)
                point = point + np.linalg.solve(np.eye(3) - np.asarray(jacobian), np.asarray(after - point))
            jacobian, (after, period) = derivative(point, slope)
            np.testing.assert_allclose(after, point, atol=1e-10)
            return point, float(period), np.asarray(jacobian)

        shipped = simulation.params["initial_position"][3], *simulation.params["initial_velocity"][2:]
        point, period, jacobian = gait(jnp.asarray([0.27, 1.09, 0.38]), 3.0)
        np.testing.assert_allclose(point, shipped, atol=1e-9)
        assert abs(period - 0.734) < 1e-3 and np.abs(np.linalg.eigvals(jacobian)).max() < 0.6
        # Central differences of step 1e-5 have an error of 1e-9.
        one, slope = jax.jit(lambda point, slope: stride(point, slope)[0]), jnp.asarray(np.radians(3.0))
        shifts = 1e-5 * np.eye(3)
        columns = [(one(point + shift, slope) - one(point - shift, slope)) / 2e-5 for shift in shifts]
        wanted = np.linalg.eigvals(np.stack(columns, axis=1))
        np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(jacobian)), np.sort_complex(wanted), atol=1e-6)
        # A multiplier passes -1 where the period doubles.
        angles, multipliers = (3.6, 4.1, 4.3, 4.35, 4.39), []
        for angle in angles:
            point, _, jacobian = gait(point, angle)
            multipliers.append(np.linalg.eigvals(jacobian).real.min())
        doubled = np.interp(-1, multipliers[:-3:-1], angles[:-3:-1])
        assert multipliers[-2] > -1 > multipliers[-1] and abs(doubled - 4.37) < 0.01
    jax.clear_caches()
