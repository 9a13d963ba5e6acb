"""Every method with every part of a scene: it has an effect, or is refused by name."""

import dataclasses
import functools

import jax.numpy as jnp
import pytest

from simkit.rigid.algebra.vector import vector, zeros
from simkit.rigid.bodies.bodies import repeat
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.joints import loads
from simkit.rigid.joints.joint import hinge
from simkit.rigid.loads import applied, gravity
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.rigid.test_parts import SERVED, WHOLE, change, check_collision, check_effect, ends

pytestmark = pytest.mark.usefixtures("x64")
# Strength of everything that acts, each of which is turned off in turn.
LOADS = {"gravity": 9.81, "wind": 1.0, "drag": 1.0, "field": 1.0, "spring": 50.0, "damper": 5.0}


def link(params):
    return hinge(0, 1, anchor=(0, 0, 0.05), base=(0.02, 0, 0), axis=(0, 1, 0))


def push(motion, bodies, time, params):
    """Return forces that depend on time, on velocity and on position."""
    still = zeros(bodies.mass)
    wind = dataclasses.replace(still, x=still.x + params["wind"] * jnp.cos(time))
    return Wrench(force=wind - params["drag"] * motion.velocity - params["field"] * motion.position, torque=still)


ACTING = (gravity(), applied(push), loads.spring(link, "spring", 0.1), loads.damper(link, "damper"))


def pulled(name):
    """Return the simulation of two spheres in the air with every load."""

    def start(params, bodies, key):
        place, speed = jnp.asarray([[0, 0, 0.3], [0.5, 0, 0.4]]), jnp.asarray([[0.3, 0, 0], [0, 0, 0.2]])
        return motion_of(bodies, vector(place), None, vector(speed), vector(jnp.asarray([[0, 1.0, 0], [0, 2.0, 0]])))

    params = {**LOADS, "stiffness": 1e5, "dissipation": 0.1, "time_step": 5e-3}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=lambda params: repeat(sphere(1.0, 0.1), 2),
            start=start,
            dynamics=WHOLE[name],
            loads=ACTING,
        )
    )


@functools.cache
def loaded(name):
    """Return the final states of bodies under loads, with each load turned off in turn."""
    return ends(pulled(name), dict.fromkeys(LOADS, 0.0))


@pytest.mark.parametrize("method", WHOLE)
@pytest.mark.parametrize("load", LOADS)
def test_every_load_acts_with_every_method(method, load):
    found = loaded(method)
    # The weakest force, 1 N/m over 0.3 m, gives a body of 1 kg 9 mm/s in six steps of 5 ms.
    assert change(found["all"], found[load]) > 5e-3


@pytest.mark.parametrize(("method", "part"), SERVED)
def test_a_part_that_a_method_supports_has_an_effect(method, part):
    check_effect(method, part)


@pytest.mark.parametrize("method", WHOLE)
def test_bodies_collide_in_every_method_with_contact_and_in_no_other(method):
    check_collision(method)
