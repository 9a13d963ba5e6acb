"""Energy of contact by sequential impulses: bounces to the height of their restitution, and no gain anywhere."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid import Impulses, Scene, box, gather, gravity, motion_of, simulate, sphere
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import vector
from simkit.rigid.planes import gather_planes, plane

pytestmark = pytest.mark.usefixtures("x64")

GRAVITY, STEPS = 9.81, 1000
TIME_STEPS = (1 / 60, 4e-3, 1e-3)
SHAPES = {"sphere": lambda *rough: sphere(1.0, 0.1, *rough), "box": lambda *rough: box(1.0, (0.2, 0.24, 0.16), *rough)}


@functools.cache
def thrown(*kinds):
    """Return ``(**params) -> (diagnostics, status)`` of bodies of 1 kg in a box without lid, 1 m wide."""
    walls = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]
    zero = np.zeros((len(kinds), 3))
    simulation = simulate(
        Scene(
            params={"at": zero, "turned": zero, "velocity": zero, "spin": zero}
            | {"restitution": 1.0, "friction": 0.0, "gravity": GRAVITY, "time_step": 0.004},
            bodies=lambda p: gather([SHAPES[kind](p["friction"], p["restitution"]) for kind in kinds]),
            start=lambda p, bodies, key: motion_of(
                bodies, vector(p["at"]), exponential(vector(p["turned"])), vector(p["velocity"]), vector(p["spin"])
            ),
            dynamics=Impulses(),
            planes=lambda p: gather_planes([plane((0, 0, 1)), *(plane(wall, -0.5) for wall in walls)]),
            loads=(gravity(),),
        )
    )
    compiled = jax.jit(trajectory(simulation, STEPS, 1))

    def run(**params):
        values = {name: jnp.asarray(value, dtype=float) for name, value in params.items()}
        state, _, diagnosed = compiled(simulation.params | values, jax.random.key(0))
        return jax.tree.map(np.asarray, diagnosed), Status(int(simulation.status(state, simulation.params)))

    return run


def test_apexes_fall_by_the_square_of_the_restitution_at_any_time_step():
    for time_step in TIME_STEPS:
        for restitution in (1.0, 0.8, 0.5):
            seen, status = thrown("sphere")(at=[[0, 0, 1.1]], restitution=restitution, time_step=time_step)
            # In flight the energy is that of the apex. Slower than 2 g dt, 0.3 m/s at 1/60 s, a ball comes to rest.
            apexes = seen["energy"] / GRAVITY - 0.1
            levels = apexes[np.flatnonzero(np.diff(apexes, prepend=2) < -1e-9)][1:4]
            assert len(levels) >= (0 if restitution == 1 else min(3, round(STEPS * time_step / 0.9)))
            # A thousand roundings of numbers of order one.
            np.testing.assert_allclose(levels, restitution ** (2 * np.arange(1, len(levels) + 1)), rtol=1e-11)
            if restitution == 1:
                np.testing.assert_allclose(apexes, 1, rtol=1e-11)
            assert status == Status.STEPPED_IMPACT


def test_a_body_that_moves_by_more_than_its_thickness_in_the_step_of_an_impact_is_cautioned():
    for speed, status in ((15.0, Status.STEPPED_IMPACT), (30.0, Status.STEP_TOO_LONG)):
        seen = thrown("sphere")(at=[[0, 0, 0.9]], velocity=[[0, 0, -speed]], restitution=0.5, time_step=0.01)
        assert seen[1] == status


def starts(count, seed):
    rng = np.random.default_rng(seed)
    at = np.concatenate([rng.uniform(-0.25, 0.25, (count, 2)), 0.3 + 0.3 * np.arange(count)[:, None]], axis=1)
    return {"at": at} | {name: rng.normal(size=(count, 3)) for name in ("velocity", "spin", "turned")}


def test_energy_never_grows_in_a_passive_scene():
    """Spheres to rounding; boxes to what the splitting of their rotation changes, (omega dt)^2 / 12 at 10 rad/s."""
    for kinds in (("sphere", "sphere", "sphere"), ("box", "sphere", "box")):
        for time_step in TIME_STEPS:
            for restitution, friction in ((1.0, 0.0), (1.0, 0.4), (0.5, 0.4), (0.0, 0.0)):
                seen, _ = thrown(*kinds)(
                    **starts(3, 0), time_step=time_step, restitution=restitution, friction=friction
                )
                energy = seen["energy"]
                swing = 1e-12 if "box" not in kinds else (10 * time_step) ** 2 / 12
                where = f"{kinds}, time_step {time_step}, restitution {restitution}, friction {friction}"
                assert energy.max() < (1 + swing) * energy[0], where
                # A contact that begins or ends is half a step early or late in the velocities at whole steps.
                assert (energy - np.minimum.accumulate(energy)).max() < (swing + 0.2 * time_step) * energy[0], where
                assert restitution == 1 or energy[-1] < 0.9 * energy[0], where
