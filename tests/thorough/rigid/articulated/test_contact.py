"""Walkers and stacks on a floor in joint coordinates."""

from pathlib import Path

import brax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from simkit import Status
from simkit.rigid import mjcf
from tests.rigid.articulated.test_contact import STACK

ASSETS = Path(brax.__file__).parent / "envs" / "assets"


def settled(text, steps, **params):
    """Return two states, after a number of steps each, and the largest penetration at them."""
    simulation = mjcf(text, engine="simkit", substeps=steps)
    params = simulation.with_params(**params).params
    step = jax.jit(simulation.step)
    first = step(simulation.init(params, jax.random.key(0)), params)
    second = step(first, params)
    depths = [float(simulation.diagnose(state, params)["penetration"]) for state in (first, second)]
    return first.memory, second.memory, max(depths)


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "walker2d"])
def test_the_walkers_of_brax_run(name):
    with jax.enable_x64(True):
        _, state, _ = settled(str(ASSETS / f"{name}.xml"), 50)
        assert np.isfinite(state.position).all() and state.misfit < 0.05


def test_a_humanoid_that_lies_on_the_floor_does_not_drift():
    """1 mm in 10 s is the demand; it rests to rounding."""
    spec = mujoco.MjSpec.from_file(str(ASSETS / "humanoid.xml"))
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.conaffinity = 1
        else:
            geom.contype = 1
    with jax.enable_x64(True):
        first, second, depth = settled(spec.to_xml(), 3334)
        assert np.abs(second.position - first.position)[:3].max() < 1e-6 and depth < 1e-8


ROLLERS = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="-0.3 0 0.1"><freejoint/><geom type="capsule" size="0.1" fromto="0 -0.3 0 0 0.3 0" mass="1"/>
<body pos="0 0.5 0"><joint axis="1 0 0" pos="0 -0.1 0"/>
<geom type="capsule" size="0.1" fromto="0 0 0 0 0.3 0" mass="1"/></body></body>
<body pos="0.3 0 0.1"><freejoint/><geom type="capsule" size="0.1" fromto="0 -0.3 0 0 0.3 0" mass="1"/></body>
<body pos="0 0 0.3"><freejoint/><geom type="capsule" size="0.1" fromto="-0.6 0 0 0.6 0 0" mass="{mass}"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("mass", [1, 1000])
def test_a_heavy_body_rests_on_light_jointed_ones(mass):
    with jax.enable_x64(True):
        _, state, depth = settled(ROLLERS.format(mass=mass), 500)
        assert depth < 1e-8 and np.abs(state.velocity).max() < 1e-6


def test_a_step_lowered_for_cuda_has_no_condition():
    simulation = mjcf(str(ASSETS / "hopper.xml"), engine="simkit")
    params = simulation.params
    state = jax.eval_shape(simulation.init, params, jax.random.key(0))
    text = jax.jit(simulation.step).trace(state, params).lower(lowering_platforms=("cuda",)).as_text()
    assert not text.count("stablehlo.case") and not text.count("stablehlo.if ")
    assert jnp.float32 == params["time_step"].dtype


EVERY_CONSTRAINT = """<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
<geom type="plane" size="1 1 1" friction="0.4 0.03 0.02" condim="{dim}"/>
<body name="trunk" pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="3" friction="0.3"/>
<body name="leg" pos="0.2 0 0.1"><joint name="hip" axis="0 1 0" range="0 2" limited="true" frictionloss="0.3"/>
<geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0.4" mass="1" contype="0" conaffinity="0"/></body>
<body name="left" pos="-0.1 0 0.2"><joint name="a" axis="0 1 0" damping="0.1"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2" mass="0.4" contype="0" conaffinity="0"/></body>
<body name="right" pos="-0.1 0.1 0.2"><joint name="b" axis="0 1 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.2" mass="0.4" contype="0" conaffinity="0"/></body>
</body></worldbody><equality><joint joint1="a" joint2="b" polycoef="0 0.5 0.2 0 0"/></equality></mujoco>"""


@pytest.mark.filterwarnings("ignore:derivatives through a contact")
@pytest.mark.parametrize("dim", [3, 6])
def test_derivatives_of_a_body_with_every_constraint_equal_central_differences(dim):
    """Places are computed to 3e-14 m, 1e-8 of a difference of step 1e-3, whose truncation error is 1e-9 of it."""
    with jax.enable_x64(True):
        simulation = mjcf(EVERY_CONSTRAINT.format(dim=dim), engine="simkit", substeps=3)
        start = {"initial_velocity": jnp.array([0.8, 0.3, 0, 0, 0, 0, 1.0, 0.6, 1.2])}

        def end(friction):
            params = simulation.with_params(**start, friction_scale=friction).params
            state = simulation.init(params, jax.random.key(0))
            return jnp.sum(simulation.step(state, params).memory.position)

        @jax.jit
        def everything(friction):
            both = jax.vmap(end)(friction + jnp.array([1e-3, -1e-3]))
            return jax.jacfwd(end)(friction), jax.grad(end)(friction), (both[0] - both[1]) / 2e-3

        forward, reverse, difference = everything(1.0)
        assert forward == pytest.approx(float(difference), rel=1e-6)
        assert reverse == pytest.approx(float(forward), rel=1e-9)


# One ball each of 3, 4 and 6 dimensions, which touch the plane only.
BALL_OF = """<body pos="0 {n} 0.1"><freejoint/>
<geom size="0.1" condim="{dim}" friction="1 0.004 0.003" conaffinity="0"/></body>"""
BALLS = f"""<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="1 1 1" contype="0" condim="1" friction="1 0 0"/>
{"".join(BALL_OF.format(n=n, dim=dim) for n, dim in enumerate((3, 4, 6)))}</worldbody></mujoco>"""


def test_torsional_friction_stops_a_spinning_ball_and_rolling_friction_a_rolling_one():
    """Rates of change by hand, mu_t g / (2/5 r^2) about the normal and mu_r g / (7/5 r^2) of rolling; r is 0.1 m."""
    with jax.enable_x64(True):
        simulation = mjcf(BALLS, substeps=50)
        params = simulation.with_params(initial_velocity=3 * [0.2, 0, 0, 0, 2.0, 5.0]).params
        step, state = jax.jit(simulation.step), simulation.init(params, jax.random.key(0))
        velocity = []
        for steps in (1, 10):
            for _ in range(steps):
                state = step(state, params)
            velocity.append(np.asarray(state.memory.velocity).reshape(3, 6))
    spin, roll = 0.004 * 9.81 / (0.4 * 0.1**2), 0.003 * 9.81 / (1.4 * 0.1**2)
    early, late = velocity
    # The angular velocity is in the frame of the body; its length is that of rolling, v / r, and of the spin.
    spun = np.sqrt(np.sum(early[:, 3:] ** 2, axis=1) - early[:, 0] ** 2 / 0.1**2)
    np.testing.assert_allclose(early[:, 0], 0.1 * (2.0 - 0.1 * roll * np.array([0, 0, 1])), rtol=1e-6)
    np.testing.assert_allclose(spun, 5.0 - 0.1 * spin * np.array([0, 1, 1]), rtol=1e-6)
    assert np.abs(late[0]).max() > 4.9 and abs(late[1, 0] - 0.2) < 1e-6 and np.abs(late[2]).max() < 1e-6
    np.testing.assert_allclose(np.linalg.norm(late[1, 3:]), 2.0, rtol=1e-6)


def test_a_ball_too_heavy_for_float32_on_a_light_one_is_told_by_the_status():
    simulation = mjcf(STACK.format(mass=1), engine="simkit", substeps=100)
    heavier, step = next(name for name in simulation.params["mass"] if name.endswith("2")), jax.jit(simulation.step)
    statuses = []
    for mass in (10.0, 1e5):
        params = dict(simulation.params)
        params["mass"] = {**params["mass"], heavier: jnp.float32(mass)}
        statuses.append(int(simulation.status(step(simulation.init(params, jax.random.key(0)), params), params)))
    assert statuses == [Status.OK, Status.SWEEPS_TOO_FEW]


CAN = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="1 1 1" euler="0 {slope} 0" friction="0.8"/>
<body pos="{place}"><freejoint/><geom type="cylinder" size="0.1 0.15" {turned} mass="2"/></body></worldbody></mujoco>"""


def after_step(model, substeps):
    with jax.enable_x64(True):
        simulation = mjcf(model, engine="simkit", substeps=substeps)
        state = simulation.init(simulation.params, jax.random.key(0))
        return jax.tree.map(np.asarray, jax.jit(simulation.step)(state, simulation.params).memory)


def test_a_cylinder_stands_upright_with_its_weight_on_its_lower_end():
    last = after_step(CAN.format(slope=0, place="0 0 0.15", turned=""), 100)
    assert last.impulses.contact[:, 2].sum() == pytest.approx(2 * 9.81 * 0.002, rel=1e-6)
    assert np.abs(last.velocity).max() < 1e-6 and last.position[2] == pytest.approx(0.15, abs=1e-9)


def test_a_cylinder_on_its_side_rolls_down_a_slope_with_two_thirds_of_the_acceleration_of_sliding():
    slope = np.deg2rad(20)
    place = f"{0.1 * np.sin(slope)} 0 {0.1 * np.cos(slope)}"
    last = after_step(CAN.format(slope=20, place=place, turned='euler="90 0 0"'), 200)
    speed = np.hypot(last.velocity[0], last.velocity[2])
    assert speed / 0.4 == pytest.approx(2 / 3 * 9.81 * np.sin(slope), rel=1e-9)
    assert 0.1 * np.linalg.norm(last.velocity[3:]) == pytest.approx(speed, rel=1e-9)


TURNED = np.array([np.cos(0.7), 0.9 * np.sin(0.7), np.sqrt(0.19) * np.sin(0.7), 0])
# The normal of the floor in the frame of the body.
DOWN = np.array([2 * -TURNED[0] * TURNED[2], 2 * TURNED[0] * TURNED[1], 1 - 2 * (TURNED[1] ** 2 + TURNED[2] ** 2)])


@pytest.mark.filterwarnings("ignore:derivatives through a contact")
@pytest.mark.parametrize(
    ("shape", "height"),
    [
        ('type="ellipsoid" size="0.1 0.15 0.08"', np.linalg.norm(DOWN * [0.1, 0.15, 0.08])),
        ('type="cylinder" size="0.1 0.08"', 0.1 * np.hypot(DOWN[0], DOWN[1]) + 0.08 * abs(DOWN[2])),
    ],
)
def test_derivatives_of_a_sliding_round_shape_equal_central_differences(shape, height):
    model = f"""<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1" friction="0.3"/>
    <body><freejoint/><geom {shape} mass="1"/></body></worldbody></mujoco>"""
    with jax.enable_x64(True):
        simulation = mjcf(model, engine="simkit", substeps=3)
        place, velocity = jnp.array([0, 0, height, *TURNED]), jnp.array([0.8, 0.3, -0.2, 1.0, 2.0, 0.5])

        def end(values):
            params = simulation.params | {"friction_scale": values[0], "initial_position": place}
            state = simulation.init(params | {"initial_velocity": values[1] * velocity}, jax.random.key(0))
            memory = simulation.step(state, params | {"initial_velocity": values[1] * velocity}).memory
            return jnp.sum(memory.position * jnp.arange(1, 8))

        @jax.jit
        def both(values):
            ways = 1e-4 * jnp.eye(2)
            return jax.jacfwd(end)(values), jax.vmap(lambda way: (end(values + way) - end(values - way)) / 2e-4)(ways)

        np.testing.assert_allclose(*both(jnp.ones(2)), rtol=1e-6)
