"""The compass walker: its gait as a fixed point, stable, and of period two on steeper slopes.

Goswami, Thuilot and Espiau 1998, doi:10.1177/027836499801701202: legs of 1 m with 5 kg in their middle, 10 kg at the
hip. The first doubling of the period is published at a slope of 4.37 degrees; here between 4.3 and 4.6 degrees.
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


def test_the_gait_is_a_stable_fixed_point_whose_multipliers_are_those_of_differences():
    with jax.enable_x64(True):
        simulation = simkit.build("compass_walker")
        stride, slope = strides(simulation), jnp.asarray(np.radians(3.0))

        def both(point):
            after, period = stride(point, slope)
            return after, (after, period)

        derivative, point = jax.jit(jax.jacfwd(both, has_aux=True)), jnp.asarray([0.27, 1.09, 0.38])
        for _ in range(6):
            jacobian, (after, _) = derivative(point)
            point = point + np.linalg.solve(np.eye(3) - np.asarray(jacobian), np.asarray(after - point))
        jacobian, (after, period) = derivative(point)
        np.testing.assert_allclose(after, point, atol=1e-10)
        shipped = simulation.params["initial_position"][3], *simulation.params["initial_velocity"][2:]
        np.testing.assert_allclose(point, shipped, atol=1e-9)
        found = np.linalg.eigvals(np.asarray(jacobian))
        assert abs(period - 0.734) < 1e-3 and np.abs(found).max() < 0.6
        # Central differences of step 1e-5 have an error of 1e-9.
        columns = [
            (derivative(point + shift)[1][0] - derivative(point - shift)[1][0]) / 2e-5 for shift in 1e-5 * np.eye(3)
        ]
        wanted = np.linalg.eigvals(np.stack(columns, axis=1))
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(wanted), atol=1e-6)
    jax.clear_caches()


def test_the_period_doubles_between_slopes_on_both_sides_of_the_published_one():
    """At 4.3 degrees the periods of successive strides approach each other; at 4.6 degrees they stay apart."""
    with jax.enable_x64(True):
        simulation = simkit.build("compass_walker")
        position, velocity = started(jnp.asarray([0.3065, 1.1492, 0.1635]))

        def periods(slope):
            given = {"slope": slope, "initial_position": position, "initial_velocity": velocity}
            params = {**simulation.params, **given}

            def step(state, _):
                later = simulation.step(state, params)
                return later, (later.memory.impacts, later.memory.period)

            return jax.lax.scan(step, simulation.init(params, jax.random.key(0)), length=3000)[1]

        run, apart = jax.jit(periods), []
        for degrees in (4.3, 4.6):
            impacts, period = map(np.asarray, run(jnp.asarray(np.radians(degrees))))
            each = period[np.flatnonzero(np.diff(impacts)) + 1]
            assert len(each) == 39
            apart.append(np.abs(np.diff(each[-5:])))
        assert (np.diff(apart[0]) < 0).all() and apart[0].max() < 3e-4
        np.testing.assert_allclose(apart[1], 0.0587895, atol=1e-5)
    jax.clear_caches()
