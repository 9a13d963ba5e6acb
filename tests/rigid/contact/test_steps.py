"""Contact by steps: disks and numbers of sweeps."""

import jax
import jax.numpy as jnp
import pytest

from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector, vector, zeros
from simkit.rigid.bodies.bodies import gather, repeat
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.scene import Load, Scene
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.tables import every

KEY = jax.random.key(0)
STILL = {"x": 0.5, "y": 0.0, "vx": 0.0, "vy": 0.0, "spin_z": 0.0, "push_y": 0.0, "twist_x": 0.0, "push_x": 0.0}


def beside(dynamics):
    """Return the simulation of a disk and a sphere."""
    surface = (0.3, 1.0) if isinstance(dynamics, Events | Impulses) else ()

    def bodies(params):
        return gather([disk(1.0, 0.1, *surface), sphere(1.0, 0.1, *surface)])

    def start(params, bodies, key):
        here = jnp.zeros_like(params["x"])
        of_sphere = vector(jnp.array([[0.0], [1.0]])[..., None] * jnp.ones(3))[:, 0]
        return motion_of(
            bodies,
            Vector(of_sphere.x * params["x"], of_sphere.y * params["y"], jnp.full(2, 0.1)),
            velocity=Vector(of_sphere.x * params["vx"], of_sphere.y * params["vy"], here),
            angular_velocity=Vector(here, here, of_sphere.z * params["spin_z"]),
        )

    def push(motion, bodies, time, params):
        still, of_disk = zeros(bodies.mass), jnp.array([1.0, 0.0])
        return Wrench(
            force=still + Vector(of_disk * params["push_x"], of_disk * params["push_y"], 0.0),
            torque=still + Vector(of_disk * params["twist_x"], 0.0, 0.0),
        )

    return simulate(
        Scene(
            params={**STILL, "time_step": 5e-3},
            bodies=bodies,
            start=start,
            dynamics=dynamics,
            loads=(Load(wrench=push),),
        )
    )


@every("dynamics", [Events(), Impulses()])
def test_a_disk_that_starts_tilted_is_refused(dynamics):
    def start(params, bodies, key):
        nothing = jnp.zeros(1)
        return motion_of(bodies, Vector(*jnp.ones((3, 1))), exponential(Vector(nothing + 0.3, nothing, nothing)))

    simulation = simulate(
        Scene(
            params={"time_step": 0.01}, bodies=lambda params: repeat(disk(1.0, 0.1), 1), start=start, dynamics=dynamics
        )
    )
    with pytest.raises(UserError, match="body 0 is a disk whose orientation leaves the x-z plane"):
        simulation.check(simulation.params, KEY)


def test_a_method_that_supports_disks_out_of_the_plane_has_status_ok():
    simulation = beside(Free())
    params = simulation.params | {"push_y": jnp.asarray(1.0)}
    state = jax.jit(segment(simulation, 5))(simulation.init(params, KEY), params)
    assert simulation.status(state, params) == Status.OK
    assert state.motion.velocity.y[0] > 0.01


EPSILON = {"float64": 2.2e-16, "float32": 1.2e-7}


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    with jax.enable_x64(request.param == "float64"):
        yield EPSILON[request.param]
