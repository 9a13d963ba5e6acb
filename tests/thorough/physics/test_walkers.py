"""Walkers without motors: gaits as fixed points of the map from one impact to the next, and their Floquet multipliers.

The simplest walker of Garcia, Chatterjee, Ruina and Coleman 1998, doi:10.1115/1.2798313: massless legs of length 1, a
mass 1 at the hip, feet whose mass tends to zero, gravity 1, slope 0.009. The compass walker of Goswami, Thuilot and
Espiau 1998, doi:10.1177/027836499801701202: legs of 1 m with 5 kg in their middle, 10 kg at the hip; the first doubling
of its period is published at a slope of 4.37 degrees.
"""

import jax
import jax.numpy as jnp
import numpy as np

import simkit
from simkit.rigid import mjcf

LEG = """<body name="{name}"><joint name="{name}" axis="0 1 0"/><inertial pos="0 0 -1" mass="1e-4"
diaginertia="1e-11 1e-11 1e-11"/><geom size="1e-9" pos="0 0 -1" mass="0" conaffinity="0"/></body>"""
WALKER = f"""<mujoco><option timestep="0.05" gravity="0 0 -1"/><worldbody>
<geom type="plane" size="5 5 1" friction="2"/><body name="hip">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{LEG.format(name="left")}{LEG.format(name="right")}</body>
</worldbody></mujoco>"""
# Masses of the feet from which the limit is extrapolated.
FEET = (1e-4, 2e-4)


def started(point):
    """Return coordinates and velocities just after an impact, from half the angle of the legs and both rates."""
    angle, standing, swinging = point
    hip = jnp.stack([jnp.cos(angle), jnp.sin(angle)]) * standing
    return jnp.stack([0 * angle, jnp.cos(angle), -angle, angle]), jnp.stack([*hip, standing, swinging])


def stride(simulation, point, steps, **values):
    """Return the point after the next impact, with the legs swapped, and the period of the stride.

    Args:
        simulation: the walker.
        point: as for `started`.
        steps: steps of time, more than the stride takes.
        **values: parameters that differ from the defaults.
    """
    position, velocity = started(point)
    params = {**simulation.params, **values, "initial_position": position, "initial_velocity": velocity}

    def step(state, _):
        later = simulation.step(state, params)
        goes_on = state.memory.impacts == 0
        return jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), later, state), None

    memory = jax.lax.scan(step, simulation.init(params, jax.random.key(0)), length=steps)[0].memory
    angles, rates = memory.struck_position[2:], memory.struck_velocity[2:]
    after = jnp.stack([(angles[0] - angles[1]) / 2, rates[1], rates[0]])
    return jnp.where(memory.impacts == 1, after, jnp.nan), memory.period


def differentiated(function):
    """Return ``point -> (derivative, (after, period))`` of a stride, compiled."""

    def both(*arguments):
        after, period = function(*arguments)
        return after, (after, period)

    return jax.jit(jax.jacfwd(both, has_aux=True))


def fixed_point(derivative, point):
    """Return a fixed point by Newton's method, the derivative there and the period."""
    for _ in range(6):
        jacobian, (after, _) = derivative(point)
        point = point + np.linalg.solve(np.eye(3) - np.asarray(jacobian), np.asarray(after - point))
    jacobian, (after, period) = derivative(point)
    np.testing.assert_allclose(after, point, atol=1e-10)
    return point, np.asarray(jacobian), period


def test_the_simplest_walker_has_its_published_gaits_and_multipliers():
    """The stable long-period gait, and the unstable short-period one, whose multipliers have three published digits.

    The extrapolated limit lies within 2e-8 of published points and 3e-6 of published multipliers, by the rounding of
    impulses that feet of 1e-4 multiply by 1e4.
    """
    with jax.enable_x64(True):
        simulation = mjcf(WALKER, engine="simkit", events={"least_step": 0.3})

        @differentiated
        def by_foot(point, foot):
            mass = {**simulation.params["mass"], "left": foot, "right": foot}
            return stride(simulation, point, 90, mass=mass, slope=jnp.asarray(0.009))

        def gait(guess, foot):
            point, jacobian, _ = fixed_point(lambda point: by_foot(point, jnp.asarray(foot)), jnp.asarray(guess))
            # The feet take away the third multiplier.
            multipliers = np.linalg.eigvals(jacobian)
            return np.asarray(point[:2]), np.sort_complex(multipliers[np.argsort(-np.abs(multipliers))[:2]])

        gaits = []
        for guess in ([0.2, 0.2, 0.184], [0.194, 0.204, 0.189]):
            near, far = (gait(guess, foot) for foot in FEET)
            gaits.append([2 * a - b for a, b in zip(near, far, strict=True)])
    jax.clear_caches()
    (long, of_long), (short, of_short) = gaits
    np.testing.assert_allclose(long, [0.200310900544287, 0.199832473004977], atol=1e-6)
    pair = 0.557599274284362j * np.array([-1, 1]) - 0.190099639402167
    np.testing.assert_allclose(of_long, pair, atol=1e-5)
    np.testing.assert_allclose(short, [0.1939374, 0.2038669], atol=1e-6)
    np.testing.assert_allclose(of_short, [0.459, 4.00], atol=5e-3)


def test_the_gait_of_the_compass_is_stable_and_its_multipliers_are_those_of_differences():
    with jax.enable_x64(True):
        simulation = simkit.build("compass_walker")
        derivative = differentiated(lambda point: stride(simulation, point, 100, slope=jnp.asarray(np.radians(3.0))))
        point, jacobian, period = fixed_point(derivative, jnp.asarray([0.27, 1.09, 0.38]))
        shipped = simulation.params["initial_position"][3], *simulation.params["initial_velocity"][2:]
        np.testing.assert_allclose(point, shipped, atol=1e-9)
        multipliers = np.linalg.eigvals(jacobian)
        assert abs(period - 0.734) < 1e-3 and np.abs(multipliers).max() < 0.6
        # Central differences of step 1e-5 have an error of 1e-9.
        columns = [
            (derivative(point + shift)[1][0] - derivative(point - shift)[1][0]) / 2e-5 for shift in 1e-5 * np.eye(3)
        ]
        wanted = np.linalg.eigvals(np.stack(columns, axis=1))
        np.testing.assert_allclose(np.sort_complex(multipliers), np.sort_complex(wanted), atol=1e-6)
    jax.clear_caches()


def test_the_period_doubles_between_slopes_on_both_sides_of_the_published_one():
    """At 4.3 degrees the periods of successive strides approach each other; at 4.6 degrees they stay apart."""
    with jax.enable_x64(True):
        simulation = simkit.build("compass_walker")
        position, velocity = started(jnp.asarray([0.3065, 1.1492, 0.1635]))

        def periods(slope):
            values = {"slope": slope, "initial_position": position, "initial_velocity": velocity}
            params = {**simulation.params, **values}

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
