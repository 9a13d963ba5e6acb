"""Scenes as users write them: what is clear is taken, and anything else is one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid import Free, Impulses, Jointed, Scene, Vector, box, floor, gravity, hinge, motion_of, repeat, simulate

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


def test_the_same_scene_written_in_other_ways_is_the_same():
    cube = box(1.0, 0.2)
    expected, missed = started({}), []
    for name, changed in {
        "rows": {"start": start_at(PLACES)},
        "an array": {"start": start_at(np.array(PLACES))},
        "vectors of lists": {"start": start_at(Vector([0.0, 0.0], [0.0, 0.1], [0.5, 2.0]))},
        "one velocity for all": {"start": start_at(PLACES, velocity=[0.0, 0.0, 0.0])},
        "rows of orientations": {"start": start_at(PLACES, orientation=[[1, 0, 0, 0]] * 2)},
        "one orientation for all": {"start": start_at(PLACES, orientation=[1, 0, 0, 0])},
        "one length": {"bodies": lambda params: repeat(cube, 2)},
        "a list of bodies": {"bodies": [cube, cube]},
        "bodies without a function": {"bodies": repeat(cube, 2)},
        "the name of a method": {"dynamics": "Impulses"},
        "its class": {"dynamics": Impulses},
        "planes without a function": {"planes": floor()},
        "a list of planes": {"planes": [floor()]},
        "one load": {"loads": gravity()},
    }.items():
        found = started(changed)
        missed += [name for key in expected if not np.array_equal(expected[key], found[key])]
    assert not missed


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
        ({"bodies": lambda params: box(1.0, (0.2, 0.2))}, "a box has 2 lengths; give three, along its axes, or one"),
        ({"bodies": (1.0, 2.0)}, "bodies of the scene are (1.0, 2.0); give Bodies or a function of the parameters"),
        ({"dynamics": "Impulse"}, "dynamics = 'Impulse' is no method of time stepping; did you mean 'Impulses'?"),
        ({"dynamics": 3}, "dynamics = 3 is no method of time stepping; give one such as Free, Events, Impulses"),
        ({"bodies": []}, "bodies of the scene are an empty list; give at least one body"),
        ({"loads": gravity}, "loads of the scene are <function gravity"),
        ({"start": PLACES}, "start of the scene is [[0.0, 0.0, 0.5], [0.0, 0.1, 2.0]]; give a function such as"),
        ({"measures": {"height": 1.0}}, "measures of the scene is {'height': 1.0}; give a function such as"),
        (
            {"start": start_at(PLACES, orientation=[0.0, 1.0])},
            "orientation of 2 bodies is [0.0, 1.0]; give four",
        ),
        ({"joints": ("hinge",)}, "joints of the scene are ('hinge',); give Joint or a function of the parameters"),
        ({"dynamics": Free(), "planes": None, "bodies": box(1.0, 0.2)}, "position of one body is Vector(x="),
    ):
        with pytest.raises(UserError) as caught:
            started(changed)
        missed += [] if str(caught.value).startswith(message) else [str(caught.value)]
    assert not missed
    with pytest.raises(UserError, match="simulate takes a Scene, not None"):
        simulate(None)
