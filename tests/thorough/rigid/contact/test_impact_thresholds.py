"""Distinction of impact and rest by `Impulses`, which does not depend on loads on other bodies."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import vector, zeros
from simkit.rigid.bodies.bodies import box, capsule, gather, sphere
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import applied, gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")

SHAPES = {
    "cube": lambda *surface: box(1.0, (0.2, 0.2, 0.2), *surface),
    "slab": lambda *surface: box(1.0, (0.6, 0.4, 0.1), *surface),
    "plank": lambda *surface: box(1.0, (1.0, 0.1, 0.05), *surface),
    "capsule": lambda *surface: capsule(1.0, 0.05, 0.4, *surface),
}
HEIGHTS = {"cube": 0.1, "slab": 0.05, "plank": 0.025, "capsule": 0.05}


@functools.cache
def thrown(kinds, steps, planes=None, push=None, every=None, method=None):
    """Return the compiled run of bodies; positions, rotation vectors and velocities are parameters, (n, 3) each."""
    count = len(kinds)

    def load(motion, bodies, time, params):
        nothing = zeros(bodies.mass)
        force = vector(params["force"])
        return Wrench(force=dataclasses.replace(nothing, x=force.x, y=force.y, z=force.z), torque=nothing)

    params = {name: jnp.zeros((count, 3)) for name in ("at", "turned", "velocity", "spin", "force")}
    params |= {"gravity": 0.0, "time_step": 1e-3, "restitution": 0.0, "friction": 0.0}
    simulation = simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=lambda p: gather(
                [
                    sphere(1.0, 0.1, p["friction"], p["restitution"])
                    if kind == "sphere"
                    else SHAPES[kind](p["friction"], p["restitution"])
                    for kind in kinds
                ]
            ),
            start=lambda p, bodies, key: motion_of(
                bodies, vector(p["at"]), exponential(vector(p["turned"])), vector(p["velocity"]), vector(p["spin"])
            ),
            dynamics=method or Impulses(),
            planes=None if planes is None else lambda p: planes(),
            loads=(gravity(), applied(load)),
        )
    )
    compiled = jax.jit(trajectory(simulation, steps, every or steps))

    def run(**values):
        given = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
        state, observed, diagnosed = compiled({**simulation.params, **given}, jax.random.key(0))
        found = {name: np.asarray(value) for name, value in {**observed, **diagnosed}.items()}
        return found, Status(int(simulation.status(state, simulation.params)))

    return run


def test_a_bounce_does_not_depend_on_forces_on_a_distant_ball():
    run = thrown(("sphere", "sphere"), 420, floor, every=1)
    for force in (0.0, 1e4):
        found, status = run(
            at=[[0, 0, 1.1], [50, 0, 5]],
            force=[[0, 0, 0], [0, force, 0]],
            gravity=9.81,
            time_step=2e-3,
            restitution=0.8,
        )
        # Between two frames the apex is missed by g dt^2 / 8 at most.
        assert abs(found["position"][250:, 0, 2].max() - 0.1 - 0.64) < 9.81 * 4e-6 / 8 + 1e-12
        assert status == Status.STEPPED_IMPACT


def test_correction_of_an_overlap_does_not_depend_on_forces_on_another_body():
    run = thrown(("sphere", "sphere"), 420, floor, every=1)
    left = [
        run(at=[[0, 0, 0.09], [50, 0, 5]], force=[[0, 0, 0], [0, force, 0]], gravity=9.81, time_step=2e-3)[0]
        for force in (0.0, 1e4)
    ]
    # 2 g dt^2 = 0.08 mm is left.
    assert all(found["position"][-1, 0, 2] > 0.1 - 1e-4 for found in left)


def test_balls_pressed_together_by_loads_rest():
    """A row between a wall and a force, whose middle ball has no load, and two balls under opposite forces."""
    run = thrown(("sphere", "sphere", "sphere"), 400, floor, every=1)
    row = {"at": [[0, 0, 0.1], [0, 0, 0.3], [9, 0, 9]], "time_step": 2e-3, "restitution": 0.8}
    found, status = run(**row, force=[[0, 0, 0], [0, 0, -20.0], [0, 0, 0]])
    np.testing.assert_allclose(found["position"][-1, :2, 2], [0.1, 0.3], rtol=0, atol=2e-4)
    assert np.abs(found["velocity"][-1]).max() < 1e-6
    assert status == Status.OK
    row["at"] = [[0, 0, 5.1], [0, 0, 5.3], [9, 0, 9]]
    found, status = run(**row, force=[[0, 0, 20.0], [0, 0, -20.0], [0, 0, 0]])
    assert np.abs(found["velocity"][-1]).max() < 1e-6
    assert status == Status.OK
