"""The simplest walker: both gaits on one slope and their Floquet multipliers, as published.

Garcia, Chatterjee, Ruina and Coleman 1998, doi:10.1115/1.2798313: massless legs of length 1, a mass 1 at the hip, feet
whose mass tends to zero, gravity 1, slope 0.009.
"""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid import mjcf

LEG = """<body name="{name}"><joint name="{name}" axis="0 1 0"/><inertial pos="0 0 -1" mass="1e-4"
diaginertia="1e-11 1e-11 1e-11"/><geom size="1e-9" pos="0 0 -1" mass="0" conaffinity="0"/></body>"""
WALKER = f"""<mujoco><option timestep="0.05" gravity="0 0 -1"/><worldbody>
<geom type="plane" size="5 5 1" friction="2"/><body name="hip">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{LEG.format(name="left")}{LEG.format(name="right")}</body>
</worldbody></mujoco>"""
# Steps of which a stride of 3.9 s takes the first 78, and masses of the feet from which the limit is extrapolated.
STEPS, FEET = 90, (1e-4, 2e-4)


def started(point):
    """Return coordinates and velocities just after an impact, from half the angle of the legs and both rates."""
    angle, standing, swinging = point
    hip = jnp.stack([jnp.cos(angle), jnp.sin(angle)]) * standing
    return jnp.stack([0 * angle, jnp.cos(angle), -angle, angle]), jnp.stack([*hip, standing, swinging])


def strides():
    """Return ``(point, foot) -> (derivative, point)`` of the map from one impact to the next, which swaps the legs."""
    simulation = mjcf(WALKER, engine="simkit", events={"least_step": 0.3})

    def stride(point, foot):
        position, velocity = started(point)
        params = {
            **simulation.params,
            "mass": {**simulation.params["mass"], "left": foot, "right": foot},
            "slope": jnp.asarray(0.009),
            "initial_position": position,
            "initial_velocity": velocity,
        }

        def step(state, _):
            later = simulation.step(state, params)
            goes_on = state.memory.impacts == 0
            return jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), later, state), None

        start = simulation.init(params, jax.random.key(0))
        memory = jax.lax.scan(step, start, length=STEPS)[0].memory
        angles, rates = memory.struck_position[2:], memory.struck_velocity[2:]
        after = jnp.stack([(angles[0] - angles[1]) / 2, rates[1], rates[0]])
        after = jnp.where(memory.impacts == 1, after, jnp.nan)
        return after, after

    return jax.jit(jax.jacfwd(stride, has_aux=True))


def gait(stride, point, foot):
    """Return a fixed point by Newton's method, and its two multipliers that the feet do not take away."""
    for _ in range(6):
        derivative, after = stride(point, foot)
        point = point + np.linalg.solve(np.eye(3) - np.asarray(derivative), np.asarray(after - point))
    derivative, after = stride(point, foot)
    np.testing.assert_allclose(after, point, atol=1e-10)
    multipliers = np.linalg.eigvals(np.asarray(derivative))
    return np.asarray(point[:2]), np.sort_complex(multipliers[np.argsort(-np.abs(multipliers))[:2]])


def test_the_simplest_walker_has_its_published_gaits_and_multipliers():
    """The stable long-period gait, and the unstable short-period one, whose multipliers have three published digits.

    The extrapolated limit lies within 2e-8 of published points and 3e-6 of published multipliers, by the rounding of
    impulses that feet of 1e-4 multiply by 1e4.
    """
    with jax.enable_x64(True):
        stride = strides()
        found = []
        for guess in ([0.2, 0.2, 0.184], [0.194, 0.204, 0.189]):
            near, far = (gait(stride, jnp.asarray(guess), jnp.asarray(foot)) for foot in FEET)
            found.append([2 * a - b for a, b in zip(near, far, strict=True)])
    jax.clear_caches()
    (long, of_long), (short, of_short) = found
    np.testing.assert_allclose(long, [0.200310900544287, 0.199832473004977], atol=1e-6)
    pair = 0.557599274284362j * np.array([-1, 1]) - 0.190099639402167
    np.testing.assert_allclose(of_long, pair, atol=1e-5)
    np.testing.assert_allclose(short, [0.1939374, 0.2038669], atol=1e-6)
    np.testing.assert_allclose(of_short, [0.459, 4.00], atol=5e-3)
