"""Scenes of rigid bodies as data: places, names, held bodies, derivatives and mistakes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import rigid
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from tests.rigid.description.scenes import DRIVEN, NUMBERS
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

BALL = {"shape": "sphere", "name": "ball", "radius": 0.1, "mass": 1.0}
FREE = {"method": "free", "parameters": {"time_step": 0.01}}


def started(*bodies, seed=0, **scene):
    """Return the bodies of a scene, and their motion at the start."""
    simulation = rigid.system(bodies=list(bodies), **{**FREE, **scene})
    simulation.check(simulation.params, jax.random.key(seed))
    return simulation, jax.jit(simulation.init)(simulation.params, jax.random.key(seed)).motion


def test_points_move_as_their_formulas_of_the_time_say():
    table = {"x": [0, 0.01, 0.02], "y": [0, 0.3, 0.9]}
    simulation, _ = started(
        {**BALL, "position": [1, 0, 0], "orientation": [0, 0, "pi/2"], "velocity": [2, 0, 0]},
        points={
            "recorded": {"at": ["interp(time, path)", "5*time", "4"]},
            "bead": {"body": "ball", "at": ["3*time", 0, 0]},
        },
        tables={"path": table},
    )
    diagnosed = jax.jit(trajectory(simulation, 1, 1))(simulation.params, jax.random.key(0))[2]
    ends = {name: [float(diagnosed[f"{name}.{x}"][-1]) for x in ("x", "y", "z")] for name in ("recorded", "bead")}
    assert np.allclose(ends["recorded"], [0.3, 0.05, 4]) and np.allclose(ends["bead"], [1.02, 0.03, 0])
    rates = {name: [float(diagnosed[f"{name}.v{x}"][0]) for x in "xyz"] for name in ends}
    assert np.allclose(rates["recorded"], [30, 5, 0]) and np.allclose(rates["bead"], [2, 3, 0])
    with pytest.raises(UserError, match="path"):
        simulation.check_values(simulation.params, jax.random.key(0), 3)


def test_statistics_are_of_the_named_bodies():
    taken = {take: {"of": "x*vz", "take": take, "on": ["ball"]} for take in ("mean", "sum", "largest", "smallest")}
    simulation, _ = started(
        {**BALL, "count": 3, "position": ["index - 1.5", 0, 0], "velocity": [0, 0, 2]},
        {**BALL, "name": "other", "position": [9, 0, 0], "velocity": [0, 0, 1]},
        statistics={**taken, "all": {"of": "x", "take": "largest"}},
    )
    found = simulation.diagnose(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert [float(found[name]) for name in (*taken, "all")] == [-1, -3, 1, -3, 9]
    with pytest.raises(UserError, match=r"statistics\.of\.on\[0\] = 'balls' names no body"):
        started(BALL, statistics={"of": {"of": "x", "on": ["balls"]}})
    with pytest.raises(UserError, match=r"statistics\.of\.on has 0 entries; write at least 1"):
        started(BALL, statistics={"of": {"of": "x", "on": []}})
    with pytest.raises(UserError, match=r"statistics\.energy: the name 'energy' is taken"):
        started(BALL, statistics={"energy": {"of": "x"}})


def test_mass_follows_from_the_density_of_every_shape():
    box = {"shape": "box", "lengths": [0.2, "size", 0.4], "density": 500}
    pill = {"shape": "capsule", "radius": 0.1, "length": 0.3, "density": "500*(1 + index)", "count": 2}
    ball = {"shape": "sphere", "radius": 0.1, "density": 500}
    pull = rigid.system(
        bodies=[box, {"shape": "box", "lengths": 0.2, "density": 500}, pill, ball],
        gravity=[0, 0, "-g"],
        method="free",
        parameters={"size": 0.3, "g": 1.0, "time_step": 1.0},
    )
    state = pull.init(pull.params, jax.random.key(0))
    state = dataclasses.replace(
        state, motion=dataclasses.replace(state.motion, velocity=rigid.vector(jnp.tile(jnp.eye(3)[0], (5, 1))))
    )
    # The momentum at unit velocity is the total mass.
    capsule, sphere = np.pi * 0.01 * (0.3 + 4 / 30), 4 / 3 * np.pi * 1e-3
    volume = 0.2 * 0.3 * 0.4 + 0.2**3 + 3 * capsule + sphere
    assert np.isclose(pull.diagnose(state, pull.params)["momentum"], 500 * volume, rtol=1e-14)


def test_a_table_that_ends_before_the_run_is_refused():
    track = {"x": [0, 0.5], "y": [0, 1]}
    cart = {"shape": "sphere", "radius": 0.1, "motion": "prescribed", "position": ["interp(time, track)", 0, 0]}
    scene = rigid.system(bodies=[cart], tables={"track": track}, **FREE)
    scene.check_values(scene.params, jax.random.key(0), 40)
    with pytest.raises(UserError, match=r"bodies\[0\]\.position\[0\].* ends at 0\.5, and the run at time 0\.6"):
        scene.check_values(scene.params, jax.random.key(0), 60)


def with_entry(key, **changes):
    scene = {**DRIVEN, "parameters": {**NUMBERS, "time_step": 0.01}}
    first, *rest = scene[key]
    changed = {name: value for name, value in {**first, **changes}.items() if value is not None}
    return {**scene, key: [changed, *rest]}


MISTAKES = {
    "an unknown shape": (with_entry("bodies", shape="cuboid"), "bodies[0].shape = 'cuboid' is unknown; write 'box'"),
    "a key of another shape": (
        with_entry("bodies", radius=1),
        "bodies[0].radius has no effect on shape = 'box'; leave it out",
    ),
    "a plane with a mass": (
        with_entry("bodies", shape="plane", lengths=None, motion=None, position=None, mass=1),
        "bodies[0].mass has no effect on shape = 'plane', which is fixed at normal and offset; leave it out",
    ),
    "no mass": (with_entry("bodies", motion="free", position=None), "bodies[0].mass is missing; give a mass in kg"),
    "a mass of a held body": (
        with_entry("bodies", mass=1),
        "bodies[0].mass has no effect beside motion = 'prescribed'",
    ),
    "a time of a free body": (
        with_entry("bodies", motion="free", mass=1),
        "bodies[0].position[0] takes the time; set motion = 'prescribed'",
    ),
    "a time behind a name": (
        {**with_entry("bodies", motion="held", position=["shift", 0, 0]), "derived": {"shift": "a*time"}},
        "bodies[0].position[0] takes the time; set motion = 'prescribed'",
    ),
    "an unknown parameter": (
        with_entry("bodies", position=["b*time", 0, 0]),
        "bodies[0].position[0]: column 1 of '>>>b*time': 'b' is not known here",
    ),
    "a number out of bounds": (with_entry("bodies", lengths=[1, 1, "-a"]), "bodies[0].lengths[2]: '-a' = -0.1"),
    "a name twice": (with_entry("bodies", name="rod"), "bodies[1].name: the name 'rod' is taken"),
    "an unknown body": (
        with_entry("joints", first="rods"),
        "joints[0].first = 'rods' names no body; did you mean 'rod'?",
    ),
    "a body with itself": (with_entry("joints", second="rod"), "joints[0].second is the first body"),
    "a copy that does not exist": (
        with_entry("joints", first="rod[1]"),
        "joints[0].first = 'rod[1]': there is no number 1",
    ),
    "both ways of a place": (with_entry("joints", anchor=[0, 0, 0]), "joints[0].anchor has no effect beside at"),
    "a length of a hinge": (with_entry("joints", length=1), "joints[0].length has no effect on joint = 'hinge'"),
    "a motor without a hinge": (
        with_entry("motors", joint="band"),
        "motors[0].joint = 'band' is a joint of the kind 'attachment'; name a hinge",
    ),
    "a spring of bodies": (
        with_entry("loads", on=["rod"]),
        "loads[0].on has no effect on load = 'spring', which acts in a",
    ),
    "a spring without a joint": (with_entry("loads", joint=None), "loads[0].joint is missing"),
    "a method without joints": (
        {**with_entry("motors"), "method": "impulses"},
        "impulses does not support joints: choose the method jointed, or leave joints out",
    ),
    "a method of Python": (
        {**with_entry("motors"), "method": "Jointed"},
        "method = 'Jointed' is unknown; write 'jointed'",
    ),
    "an option of another method": (
        {**with_entry("motors"), "method": {"name": "jointed", "sweeps": 3}},
        "method.sweeps has no effect on name = 'jointed'; leave it out",
    ),
    "held bodies of events": (
        {"bodies": [{**BALL, "mass": 1}, {"shape": "sphere", "radius": 1, "motion": "held"}], "method": "events"},
        "body 1 is held; events does not support held bodies: choose the method free, impulses, compliant or jointed",
    ),
    "an unknown measure": (
        {**with_entry("motors"), "measured": ["pivt"]},
        "measured[0] = 'pivt' is unknown",
    ),
}


@every("name", MISTAKES)
def test_a_mistake_names_its_key_and_the_remedy(name):
    scene, message = MISTAKES[name]
    with pytest.raises(UserError) as refused:
        simulation = rigid.system(**scene)
        simulation.check(simulation.params, jax.random.key(0))
    assert message in str(refused.value), str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mesh_that_is_not_closed_is_refused_by_the_key_of_its_body():
    open_mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 4 4\n"
    for surface, word in ((open_mesh, "closed"), ("nothing", "triangles"), (3, "text")):
        with pytest.raises(UserError, match=rf"bodies\[0\]\.surface.*{word}"):
            rigid.system(bodies=[{"shape": "mesh", "mass": 1, "surface": surface}], method="free")
