"""Scenes as data: shipped systems with the same numbers, and derivatives through paths, joints, loads and motors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import rigid
from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from tests.differences import central_difference
from tests.rigid.description.scenes import DRIVEN, NUMBERS

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(scope="module")
def driven():
    """Return a rod on a hinge that a prescribed body carries, with a motor and a spring, and its numbers at the end."""
    with jax.enable_x64(True):
        scene = rigid.system(**DRIVEN, parameters={**NUMBERS, "time_step": 0.01})
        return scene, jax.jit(lambda params: trajectory(scene, 20, 20)(params, jax.random.key(0))[2])


def test_a_prescribed_body_follows_its_path_and_carries_what_is_jointed_to_it(driven):
    scene, final = driven
    last = {name: values[-1] for name, values in final(scene.params).items()}
    assert np.isclose(last["time"], 0.2) and last["joint_error"] < 1e-14
    cart = 0.1 * np.sin(3 * 0.2)
    angle = 0.4 + last["pivot.angle"]
    # The tip is at the end of a rod of one meter that begins at the cart.
    assert np.isclose(last["tip.x"], cart - np.sin(angle), atol=1e-12)
    assert np.isclose(last["tip.z"], -np.cos(angle), atol=1e-12)
    assert np.isclose(last["rod.wy"], last["pivot.rate"])
    assert np.isclose(last["band.length"], np.hypot(last["rod.x"] - 0.5, last["rod.z"] + 1))


def test_derivatives_by_numbers_of_bodies_joints_loads_motors_and_paths_equal_differences(driven):
    scene, final = driven
    end = jax.jit(lambda params: final(params)["tip.x"][-1])
    exact = central_difference(end, scene.params, [*NUMBERS])
    forward, reverse = jax.jit(jax.jacfwd(end))(scene.params), jax.jit(jax.grad(end))(scene.params)
    for name, value in exact.items():
        assert abs(value) > 1e-6, name
        assert np.isclose(forward[name], value, rtol=1e-6, atol=1e-9), name
        assert np.isclose(reverse[name], forward[name], rtol=1e-10, atol=1e-14), name


def test_members_with_paths_and_contact_options_of_their_own_equal_single_runs(driven):
    scene, final = driven
    amplitudes = jnp.array([0.05, 0.1, 0.2])
    many = ensemble(scene, over=["a"])
    params = {**scene.params, "a": amplitudes}
    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.jit(trajectory(many, 20, 20))(params, keys)[2]
    for member, amplitude in enumerate(amplitudes):
        alone = final({**scene.params, "a": amplitude})
        for name in ("tip.x", "pivot.angle", "energy"):
            assert np.allclose(together[name][-1, member], alone[name][-1], rtol=1e-12, atol=1e-13), name


BEAM = {"shape": "box", "lengths": [0.4, 0.2, 0.05], "density": 400}


def test_a_jointed_beam_rests_on_the_floor_by_compliant_contact_and_its_joint_stays_closed():
    scene = rigid.system(
        bodies=[
            {"shape": "plane", "friction": 0.5},
            {**BEAM, "name": "left", "position": [-0.2, 0, 0.1]},
            {**BEAM, "name": "right", "position": [0.2, 0, 0.1]},
        ],
        joints=[
            {"joint": "hinge", "name": "pin", "first": "right", "second": "left", "at": [0, 0, 0.1], "axis": [0, 1, 0]}
        ],
        gravity=9.81,
        method={"name": "jointed", "contact": {"substeps": 20, "stiffness": 1e6, "dissipation": 2.0}},
        measured=["left", "right", "pin"],
        parameters={"time_step": 0.004},
    )
    state, _, found = jax.jit(trajectory(scene, 500, 500))(scene.params, jax.random.key(0))
    # The beams, which overlap at the pin, do not push each other; each rests on four corners.
    assert found["joint_error"].max() < 1e-14 and Status(int(scene.status(state, scene.params))) == Status.OK
    overlap = (400 * 0.4 * 0.2 * 0.05 * 9.81 / 4 / 1e6) ** (2 / 3)
    for name in ("left", "right"):
        assert np.isclose(found[f"{name}.z"][-1], 0.025 - overlap, atol=1e-5), name
    assert abs(found["pin.angle"][-1]) < 1e-4 and abs(found["left.vx"][-1]) < 1e-6
