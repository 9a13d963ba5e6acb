"""Derivatives through impacts of `Impulses` are not those of the physics, and every report says so."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.rigid.algebra.vector import Vector, vector
from simkit.rigid.bodies.bodies import repeat, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

KEY = jax.random.key(0)
GRAVITY, TIME = 9.81, 0.6


@functools.cache
def dropped(**settings):
    """Return a ball dropped onto a floor, along which it may move."""

    def start(params, bodies, key):
        nothing = jnp.zeros(1)
        return motion_of(
            bodies,
            Vector(nothing, nothing, nothing + params["z0"] + 0.1),
            velocity=Vector(nothing + params["speed"], nothing, nothing),
        )

    names = {"z0": 1.0, "restitution": 0.8, "friction": 0.0, "speed": 0.0, "gravity": GRAVITY, "time_step": 0.003}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in names.items()},
            bodies=lambda p: repeat(sphere(1.0, 0.1, p["friction"], p["restitution"]), 1),
            start=start,
            dynamics=Impulses(**settings),
            planes=lambda p: floor(),
            loads=(gravity(),),
            measures=lambda motion, bodies, time, p: {"height": motion.position.z[0], "x": motion.position.x[0]},
        )
    )


def end_of(simulation, steps=200, **values):
    params = {**simulation.params, **{name: jnp.asarray(value, dtype=float) for name, value in values.items()}}
    state = jax.jit(segment(simulation, steps))(simulation.init(params, KEY), params)
    return Status(int(simulation.status(state, params)))


@pytest.mark.usefixtures("x64")
def test_a_derivative_through_a_bounce_is_not_physical_and_sets_the_status():
    simulation = dropped()
    objective = Objective(simulation, "height", 200)
    checked = gradient.check_gradient(objective, simulation.params, KEY, ["z0"])
    # z = e v s - g s^2 / 2 with v = g t, s = T - t, t = sqrt(2 z0 / g).
    t = np.sqrt(2 / GRAVITY)
    physical = (0.8 * GRAVITY * (TIME - 2 * t) + GRAVITY * (TIME - t)) / (GRAVITY * t)
    assert physical == pytest.approx(-0.2081, abs=1e-4)
    # The impact acts at the start of its step of 3 ms, at a height h that follows z0, with e = 0.8:
    # z = h + w s - g s^2 / 2 with w^2 = e^2 v^2 - (1 - e^2) 2 g h.
    begin = 3e-3 * np.floor(t / 3e-3)
    h, v = 1 - GRAVITY * begin**2 / 2, GRAVITY * begin
    rebound = np.sqrt(0.64 * v**2 - 0.36 * 2 * GRAVITY * h)
    tooth = 1 - 0.36 * GRAVITY * (TIME - begin) / rebound
    assert tooth == pytest.approx(0.85, abs=0.01)
    np.testing.assert_allclose([checked.derivative["z0"], checked.difference["z0"]], tooth, rtol=1e-6)
    assert checked.status == Status.STEPPED_IMPACT


@pytest.mark.usefixtures("x64")
def test_rest_sliding_and_rolling_have_status_ok():
    assert end_of(dropped(), z0=0.0, friction=0.3, speed=2.0) == Status.OK
    # In flight nothing has happened yet.
    assert end_of(dropped(), steps=100) == Status.OK
    assert end_of(dropped()) == Status.STEPPED_IMPACT


@pytest.mark.usefixtures("x64")
def test_a_plastic_impact_sets_the_status_where_its_derivative_is_wrong():
    """After a plastic head-on impact both balls have half the speed: dx/dx0 = 1/2 for the incoming ball."""

    def start(params, bodies, key):
        place = jnp.asarray([[0.0, 0, 0], [0.5, 0, 0]]).at[0, 0].set(params["x0"])
        return motion_of(bodies, vector(place), velocity=vector(jnp.asarray([[1.0, 0, 0], [0, 0, 0]])))

    for impacts, friction, slope, status in (
        (4, 0.0, 1.0, Status.STEPPED_IMPACT),
        (0, 0.0, 0.5, Status.OK),
        (0, 0.3, 0.5, Status.STEPPED_IMPACT),
    ):
        simulation = simulate(
            Scene(
                params={"x0": jnp.asarray(0.0), "time_step": jnp.asarray(0.007)},
                bodies=lambda params, friction=friction: repeat(sphere(1.0, 0.1, friction), 2),
                start=start,
                dynamics=Impulses(sweeps=4, impacts=impacts),
                measures=lambda motion, bodies, time, params: {"x": motion.position.x[0]},
            )
        )
        objective = Objective(simulation, "x", 100)
        found, told = jax.jacfwd(objective.with_status, has_aux=True)(simulation.params, KEY)
        assert told == status
        assert found["x0"] == pytest.approx(slope, abs=1e-6)


FALLING = {"boxes": 0, "spheres": 1, "capsules": 0, "steps": 100, "every": 10, "precision": "float64"}


def test_a_derivative_through_impacts_warns_in_python_and_on_the_command_line(capsys):
    with pytest.warns(UserWarning, match="not those of the physics; take dynamics = Events"):
        value, derivative = simkit.value_and_grad("falling_pile", "gravity", objective="height", **FALLING)
    assert np.isfinite(value) and np.isfinite(derivative["gravity"])
    settings = [word for name, value in FALLING.items() for word in ("--set", f"{name}={value}") if name != "precision"]
    line = ["grad", "falling_pile", "--wrt", "gravity", "--objective", "height", *settings, "--precision", "float64"]
    assert main(line) == 0
    assert "note: falling_pile ran all its steps; its bodies hit each other" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["note"][:12]) == ("stepped_impact", "falling_pile")
    # Still in flight, there is nothing to say.
    assert main(["steps=30" if word == "steps=100" else word for word in line]) == 0
    assert "note" not in capsys.readouterr().out
