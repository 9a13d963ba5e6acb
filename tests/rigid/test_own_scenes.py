"""Scenes in Python, the time of a run, and single precision."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.rigid import (
    Free,
    Impulses,
    Jointed,
    Scene,
    Vector,
    bouncing_ball,
    box,
    floor,
    gravity,
    hinge,
    motion_of,
    repeat,
    simulate,
)
from simkit.rigid.algebra.vector import zeros
from simkit.rigid.bodies.motion import Wrench
from simkit.rigid.models.mjcf import mjcf
from simkit.rigid.scene import Load
from simkit.rigid.shapes.sphere import sphere
from tests.rigid.models.models import PENDULUM
from tests.tables import every

PARAMS = {"gravity": 9.81, "time_step": 0.01}
PLACES = [[0.0, 0.0, 0.5], [0.0, 0.1, 2.0]]


def start_at(places, **more):
    return lambda params, bodies, key: motion_of(bodies, places, **more)


def scene(**changed):
    usual = {
        "params": PARAMS,
        "bodies": lambda params: repeat(box(1.0, (0.2, 0.2, 0.2)), 2),
        "start": start_at(Vector(jnp.zeros(2), jnp.array([0.0, 0.1]), jnp.array([0.5, 2.0]))),
        "dynamics": Impulses(),
        "planes": lambda params: floor(),
        "loads": (gravity(),),
    }
    return Scene(**usual | changed)


def started(changed):
    simulation = simulate(scene(**changed))
    state = simulation.init(simulation.params, jax.random.key(0))
    simulation.check(simulation.params, jax.random.key(0))
    return {name: np.asarray(array) for name, array in simulation.observe(state, simulation.params).items()}


def test_one_body_and_joints_need_no_wrapping():
    door = hinge(0, anchor=(0.1, 0.0, 0.0), base=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    for joints in (door, (door,), lambda params: (door,)):
        alone = started(
            {"bodies": box(1.0, 0.2), "start": start_at([-0.1, 0.0, 0.0]), "dynamics": Jointed(), "planes": None}
            | {"joints": joints}
        )
        assert alone["position"].shape == (1, 3)


def test_what_is_not_clear_is_refused_in_one_line():
    missed = []
    for changed, message in (
        ({"start": start_at([[0.0, 0.0], [0.0, 1.0]])}, "position of 2 bodies is [[0.0, 0.0], [0.0, 1.0]]; give three"),
        ({"start": start_at("here")}, "position of 2 bodies is here; give three numbers for all, or three for each"),
        ({"start": start_at(PLACES, velocity=[[1.0, 0.0, 0.0]] * 3)}, "velocity of 2 bodies is [[1.0, 0.0, 0.0]"),
        (
            {"bodies": lambda params: box(1.0, (0.2, 0.2))},
            "lengths has shape (2,); give three, along the axes of the box, or one",
        ),
        ({"bodies": (1.0, 2.0)}, "bodies = 1.0 is of type float; give Bodies, or a function of the parameters"),
        ({"dynamics": "Impulse"}, "dynamics = 'Impulse' is unknown; did you mean 'Impulses'?"),
        ({"dynamics": 3}, "dynamics = 3 is unknown; choose one of Free, Events, Impulses"),
        ({"bodies": []}, "bodies of the scene are an empty list; give at least one body"),
        ({"loads": gravity}, "loads = <function gravity"),
        ({"start": PLACES}, "start = [[0.0, 0.0, 0.5], [0.0, 0.1, 2.0]] is of type list; give a function such as"),
        ({"measures": {"height": 1.0}}, "measures = {'height': 1.0} is of type dict; give a function such as"),
        (
            {"start": start_at(PLACES, orientation=[0.0, 1.0])},
            "orientation of 2 bodies is [0.0, 1.0]; give four",
        ),
        ({"joints": ("hinge",)}, "joints = 'hinge' is of type str; give Joint, or a function of the parameters"),
        ({"dynamics": Free(), "planes": None, "bodies": box(1.0, 0.2)}, "position of one body is Vector(x="),
    ):
        with pytest.raises(UserError) as caught:
            started(changed)
        missed += [] if str(caught.value).startswith(message) else [str(caught.value)]
    assert not missed
    with pytest.raises(UserError, match="scene = None is of type NoneType; give a Scene"):
        simulate(None)


# Of float32, in s. Added to 400 s it is rounded to 33/32768 s, 0.7% more than it is.
STEP = np.float32(1e-3)


def swing(motion, bodies, time, params):
    nothing = zeros(bodies.mass)
    return Wrench(force=dataclasses.replace(nothing, x=nothing.x + jnp.cos(time)), torque=nothing)


def swung():
    return simulate(
        Scene(
            params={"time_step": jnp.asarray(STEP)},
            bodies=lambda params: repeat(sphere(1.0, 0.1), 1),
            start=lambda params, bodies, key: motion_of(bodies, zeros(bodies.mass)),
            dynamics=Free(),
            loads=(Load(wrench=swing),),
            measures=lambda motion, bodies, time, params: {"speed": motion.velocity.x[0]},
        )
    )


def run(simulation, steps, since=None):
    params = simulation.params | {"time_step": jnp.asarray(STEP)}
    start = simulation.init(params, jax.random.key(0))
    start = start if since is None else dataclasses.replace(start, time=jnp.asarray(since, start.time.dtype))
    return simulation.diagnose(jax.jit(segment(simulation, steps))(start, params), params)


@every("substeps", [1, 3])
def test_the_time_of_a_model_is_the_sum_of_its_steps(substeps):
    found = run(mjcf(PENDULUM, engine="mujoco", substeps=substeps), 100, since=400.0)["time"]
    np.testing.assert_allclose(found, 400 + 100 * substeps * float(STEP), rtol=1.2e-7)


def test_a_load_that_depends_on_time_uses_the_accurate_time():
    speed = run(swung(), 20_000, since=400.0)["speed"]
    # 20,000 sums of a number of order 1 in float32; a time that gains 0.7% would make it 0.13 by then.
    np.testing.assert_allclose(speed, np.sin(400 + 20_000 * float(STEP)) - np.sin(400), atol=2e-4)


def test_the_derivative_of_the_time_is_the_number_of_steps(x64):
    simulation = swung()

    def last(time_step):
        params = {"time_step": time_step}
        state = segment(simulation, 50)(simulation.init(params, jax.random.key(0)), params)
        return jnp.stack([state.time, state.motion.velocity.x[0]])

    found = jax.jit(jax.jacrev(last))(jnp.asarray(0.02))
    step = 1e-6
    numeric = (last(jnp.asarray(0.02 + step)) - last(jnp.asarray(0.02 - step))) / (2 * step)
    np.testing.assert_allclose(found[0], 50, rtol=1e-14)
    np.testing.assert_allclose(found, numeric, rtol=1e-8)


KEY = jax.random.key_data(jax.random.key(0))


def last_diagnostics(simulation, steps):
    def run(params, key):
        start = simulation.init(params, key)
        end, _ = jax.lax.scan(lambda state, _: (simulation.step(state, params), None), start, length=steps)
        return simulation.diagnose(end, params)

    return run


def test_float32_agrees_with_float64():
    results = {}
    for precision in (False, True):
        with jax.enable_x64(precision):
            simulation = bouncing_ball()
            results[precision] = jax.jit(last_diagnostics(simulation, 360))(simulation.params, KEY)
    assert results[False]["bounces"] == results[True]["bounces"] == 6
    for name in ("position_x", "height", "energy"):
        # 360 roundings of 6e-8 of positions of up to 3 m, energies of up to 10 J.
        assert abs(float(results[False][name]) - float(results[True][name])) < 360 * 6e-8 * 10
