"""Contacts by steps: impulses, disks, and derivatives through impacts."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.core import gradient
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status, failed, status_of
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather, repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses, _persistent
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.rigid.contact.scenes import run, scene
from tests.rigid.contact.test_steps import KEY, STILL, beside
from tests.tables import every


def test_a_row_of_touching_balls_transfers_momentum_to_the_last_one(precision):
    balls = 6
    at = [[0.0, 0, 0], *([0.3 + 0.2 * index, 0, 0] for index in range(balls - 1))]
    speeds = [[1.0, 0, 0]] + [[0.0, 0, 0]] * (balls - 1)
    simulation = scene([sphere(1.0, 0.1, 0.0, 1.0)] * balls, at, speeds, weight=0.0, method=Impulses(impacts=balls - 1))
    observed, _ = run(simulation, 100)
    along = np.asarray(observed["velocity"])[-1, :, 0]
    # Positions such as 0.3 + 0.2 k round to gaps of either sign, which changes nothing but the last bits.
    np.testing.assert_allclose(along, [0] * (balls - 1) + [1], rtol=0, atol=1000 * precision)


def test_collisions_conserve_momentum_and_lose_energy(precision):
    simulation = scene(
        [box(1.0, (0.2, 0.3, 0.25), 0.4, 0.5), sphere(0.5, 0.1, 0.4, 0.5)],
        [[-0.3, 0.02, 0.0], [0.3, 0.05, 0]],
        [[2.0, 0, 0], [-2.0, 0, 0]],
        [[1.0, 2.0, 0], [0, 0, 0]],
        weight=0.0,
    )
    _, diagnosed = run(simulation, 150, 30)
    # 150 steps of rounding, on the scale of m v = 2 kg m/s.
    for quantity in ("momentum", "angular_momentum"):
        np.testing.assert_allclose(diagnosed[quantity], diagnosed[quantity][0], rtol=0, atol=150 * 2 * precision)
    energy = np.asarray(diagnosed["energy"])
    assert energy[-1] < 0.9 * energy[0]  # they did collide
    # The splitting of a free rotation keeps energy to about (omega dt)^2 / 12 = 1e-5 of that of rotation, here below
    # a tenth of the whole; 30 roundings between two records.
    assert np.all(np.diff(energy) <= (1e-6 + 30 * precision) * energy[0])


def test_sweeps_too_few_for_a_heavy_body_on_a_light_one_are_reported(x64):
    simulation = simulate(
        Scene(
            params={"ratio": 1.0, "gravity": 9.81, "time_step": 0.002},
            # A fast body elsewhere hides no stack that sinks.
            bodies=lambda params: gather(
                [box(1.0, (0.2,) * 3, 0.5), box(params["ratio"], (0.2,) * 3, 0.5), sphere(1.0, 0.1)]
            ),
            start=lambda params, bodies, key: motion_of(
                bodies,
                [[0, 0, 0.1], [0.02, 0, 0.3], [50, 0, 1]],
                velocity=[[0, 0, 0], [0, 0, 0], [90, 0, 90]],
            ),
            dynamics=Impulses(),
            planes=lambda params: floor(),
            loads=(gravity(),),
        )
    )
    compiled = jax.jit(trajectory(simulation, 600, 1))
    for ratio in (1.0, 10.0, 100.0, 1000.0):
        params = simulation.params | {"ratio": jnp.asarray(ratio)}
        state, _, seen = compiled(params, jax.random.key(0))
        stands = seen["largest_penetration"][-1] < 5e-4
        assert stands == (ratio < 50)
        assert simulation.status(state, params) == (Status.OK if stands else Status.SWEEPS_TOO_FEW)
        residual, weight = np.asarray(seen["residual"]), 9.81 * 2e-3
        assert residual[-100:].max() < 1e-6 * weight if stands else residual.max() > 10 * weight


@every("dtype", [jnp.float32, jnp.float64])
def test_the_derivative_of_a_vanishing_persistent_force_is_finite(x64, dtype):
    # Impulses of a body that comes to rest shrink by one factor in each sweep, down to the least numbers there are.
    sizes = jnp.asarray([10.0**power for power in range(-300, 3) if 10.0**power > jnp.finfo(dtype).tiny], dtype)
    now, ones = Vector(sizes, 0.3 * sizes, 0 * sizes), Vector(*[jnp.ones_like(sizes)] * 3)
    for factor in (0.5, 1e9):
        found = jax.jit(
            lambda now, factor=factor: jax.jvp(lambda now: _persistent(factor * now, now), (now,), (ones,))
        )(now)
        assert all(np.isfinite(values).all() for values in jax.tree.leaves(found))
        share = min(factor, 1)
        seen = sizes > 1e-9
        np.testing.assert_allclose(found[0].x[seen], share * sizes[seen], rtol=1e-6)


# What a sphere does to a disk at rest at the origin of the plane, or a load.
STAYS = {
    "a push in the plane": {"push_x": 1.0},
    "a hit in the plane": {"x": -0.5, "vx": 3.0},
    "a sphere that passes by": {"x": -0.5, "y": 0.3, "vx": 3.0},
}
LEAVES = {
    "a hit along y": {"x": 0.0, "y": -0.5, "vy": 2.0},
    "a hit beside the plane": {"x": -0.5, "y": 0.1, "vx": 3.0},
    "friction of a sphere that spins about z": {"x": -0.5, "vx": 3.0, "spin_z": 30.0},
    "a load along y": {"push_y": 1e-3},
    "a torque about x": {"twist_x": 1e-3},
}


# Events compile for ten seconds and more.
@pytest.mark.parametrize("dynamics", [pytest.param(Events(impacts=4)), Impulses()])
def test_a_disk_pushed_out_of_the_plane_sets_the_status(dynamics):
    cases = {**STAYS, **LEAVES}
    simulation = beside(dynamics)
    values = {name: jnp.array([(STILL | case)[name] for case in cases.values()]) for name in STILL}
    together = ensemble(simulation, list(STILL))
    params = simulation.params | values
    start = together.init(params, jax.random.split(KEY, len(cases)))
    states = jax.jit(segment(together, 60))(start, params)
    codes = dict(zip(cases, np.asarray(status_of(together)(states, params)), strict=True))
    assert {name: Status(int(codes[name])) for name in LEAVES} == dict.fromkeys(LEAVES, Status.DISK_OUT_OF_PLANE)
    assert not any(failed(codes[name]) for name in STAYS)
    # The step that would leave the plane is not taken.
    for index, name in enumerate(cases):
        moves = states.motion.velocity.y[index, 0], states.motion.angular_momentum.x[index, 0]
        np.testing.assert_allclose(moves, 0, atol=1e-5, err_msg=name)
        assert (states.time[index] < 0.29) == (name in LEAVES)


KEY_OF_IMPACTS = jax.random.key(0)
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
    state = jax.jit(segment(simulation, steps))(simulation.init(params, KEY_OF_IMPACTS), params)
    return Status(int(simulation.status(state, params)))


@pytest.mark.usefixtures("x64")
def test_a_derivative_through_a_bounce_is_not_physical_and_sets_the_status():
    simulation = dropped()
    objective = Objective(simulation, "height", 200)
    checked = gradient.check_gradient(objective, simulation.params, KEY_OF_IMPACTS, ["z0"])
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
        return motion_of(bodies, place, velocity=[[1, 0, 0], [0, 0, 0]])

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
        found, told = jax.jacfwd(objective.with_status, has_aux=True)(simulation.params, KEY_OF_IMPACTS)
        assert told == status
        assert found["x0"] == pytest.approx(slope, abs=1e-6)


FALLING = {"steps": 100, "every": 10, "precision": "float64"} | {
    f"config.bodies.{kind}.grid.counts": [1, 1, 1] for kind in range(3)
}


def test_a_derivative_through_impacts_warns_in_python_and_on_the_command_line(capsys):
    with pytest.warns(UserWarning, match="not those of the physics; take the method events"):
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
