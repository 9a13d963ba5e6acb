"""Every method with every part of a scene: it has an effect, or is refused by name."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.status import FAILURES, Status
from simkit.errors import UserError
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import KINDS, gather, held, repeat, with_inertia
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.joints.joint import HOLDS, hinge, joint
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.parts import PARTS
from simkit.rigid.planes import floor, plane
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.compound import compound
from simkit.rigid.shapes.cylinder import cylinder
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.ellipsoid import ellipsoid
from simkit.rigid.shapes.mesh import mesh
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import METHODS, simulate
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

WHOLE = {
    "Free": Free(),
    "Events": Events(impacts=6),
    "Impulses": Impulses(sweeps=2, impacts=2),
    "Compliant": Compliant(substeps=16),
    "Jointed": Jointed(iterations=2),
}
# Parts that each method supports, as in the documentation.
CONTACT = {"planes", "friction", "restitution"}
ANYWHERE = {"spheres with unequal moments of inertia", "disks out of the x-z plane"}
TABLE = {
    "Free": {*KINDS, *ANYWHERE, "held bodies"},
    "Events": {"sphere", "disk", *CONTACT, "times of impacts"},
    "Impulses": {*KINDS, *CONTACT, "held bodies", "contact forces"},
    "Compliant": {*KINDS, *ANYWHERE, *CONTACT, "held bodies", "contact forces"} - {"restitution", "cylinder", "mesh"},
    "Jointed": {*KINDS, *ANYWHERE, "joints", "held bodies", "joint forces"},
}
CELLS = [(method, part) for method in TABLE for part in PARTS]
SERVED = [(method, part) for method, part in CELLS if part in TABLE[method]]
# A cube with its sides along the axes.
CUBE = "\n".join(
    [f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    + ["f 1 2 4 3", "f 5 7 8 6", "f 1 5 6 2", "f 3 4 8 7", "f 1 3 7 5", "f 2 6 8 4"]
)
SHAPES = {
    "sphere": sphere(1.0, 0.1),
    "disk": disk(1.0, 0.1),
    "capsule": capsule(1.0, 0.1, 0.2),
    "box": box(1.0, (0.2, 0.2, 0.2)),
    "cylinder": cylinder(1.0, 0.1, 0.2),
    "ellipsoid": ellipsoid(1.0, (0.15, 0.12, 0.1)),
    "mesh": mesh(1.0, CUBE, 0.2),
    "compound": compound([sphere(0.5, 0.1)] * 2, [(0.0, -0.05, 0.0), (0.0, 0.05, 0.0)]),
}
# The lowest point of each upright shape is so far below its center.
EXTENT = dict.fromkeys(SHAPES, 0.1) | {"capsule": 0.2}
GAP = 2e-3

STEPS = 6
SURFACE = ("friction", "restitution", "plane_friction", "plane_restitution")


def contacts(name):
    """Return the simulation of two spheres that collide in the air, and each shape that slides and falls to a floor."""
    shapes = [kind for kind in KINDS if kind in TABLE[name]]
    surface = [part for part in ("friction", "restitution") if part in TABLE[name]]

    def bodies(params):
        alike = gather([sphere(1.0, 0.1), sphere(1.0, 0.1), *(SHAPES[kind] for kind in shapes)])
        return dataclasses.replace(alike, **{part: params[part] * jnp.ones_like(alike.mass) for part in surface})

    def start(params, bodies, key):
        places = [(0, 0, 20), (0.201, 0, 20)]
        places += [(2 * index, 0, EXTENT[kind] + GAP) for index, kind in enumerate(shapes)]
        speeds = [(1, 0, 0), (-1, 0, 0), *((1.0, 0, -1.0) for _ in shapes)]
        spin = [(0, 1.0 + index, 0) for index in range(len(speeds))]
        place, speed, spin = (vector(jnp.asarray(rows, dtype=float)) for rows in (places, speeds, spin))
        return motion_of(bodies, place, None, speed, spin)

    def planes(params):
        given = [params[f"plane_{part}"] if part in surface else 0.0 for part in ("friction", "restitution")]
        return plane((0, 0, 1), params["floor"], *given)

    strengths = {"friction": 0.3, "restitution": 0.3, "plane_restitution": 0.5, "plane_friction": 0.4, "floor": 0.0}
    names = [*surface, *(f"plane_{part}" for part in surface), "floor"]
    params = {"stiffness": 1e5, "dissipation": 0.1, "time_step": 5e-3} | {name: strengths[name] for name in names}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=bodies,
            start=start,
            dynamics=WHOLE[name],
            planes=planes if "planes" in TABLE[name] else None,
        )
    ), shapes


def ends(simulation, off):
    """Return the state after some steps with everything on ("all"), and with each thing turned off, {name: value}."""
    step, cases = jax.jit(simulation.step), {"all": {}}
    for part in (part for part in off if part in simulation.params):
        # Of two coefficients the larger counts, so that of the bodies is turned off with that of the plane.
        both = (part, part.removeprefix("plane_")) if part in SURFACE else (part,)
        cases[part] = {name: jnp.asarray(off[name]) for name in both}
    found = {}
    for case, changed in cases.items():
        params = {**simulation.params, **changed}
        state = simulation.init(params, jax.random.key(0))
        for _ in range(STEPS):
            state = step(state, params)
        assert Status(int(simulation.status(state, params))) not in FAILURES
        found[case] = jax.tree.map(np.asarray, state)
    return found


@functools.cache
def touched(name):
    """Return the final states of bodies after contact, with each part turned off in turn; and their shapes."""
    simulation, shapes = contacts(name)
    return ends(simulation, {**dict.fromkeys(SURFACE, 0.0), "floor": -50.0}), shapes


def change(one, other):
    """Return the largest change of a velocity or of an angular momentum, in units of that of the scene."""
    leaves = [(getattr(state.motion, part)) for state in (one, other) for part in ("velocity", "angular_momentum")]
    both = [np.stack([leaf.x, leaf.y, leaf.z]) for leaf in leaves]
    return max(np.abs(both[0] - both[2]).max(), np.abs(both[1] - both[3]).max())


def scene_with(name, part):
    """Return the scene of a method with one part that it does not support."""
    bodies = repeat(sphere(1.0, 0.1), 2)
    if part in KINDS:
        bodies = gather([sphere(1.0, 0.1), SHAPES[part]])
    elif part in ("friction", "restitution"):
        bodies = repeat(sphere(1.0, 0.1, **{part: 0.5}), 2)
    elif part == "spheres with unequal moments of inertia":
        bodies = repeat(with_inertia(sphere(1.0, 0.1), (0.004, 0.004, 0.005)), 2)
    elif part == "disks out of the x-z plane":
        bodies = repeat(disk(1.0, 0.1), 2)
    elif part == "held bodies":
        bodies = held(bodies)

    def start(params, bodies, key):
        # Along y, which disks must not leave.
        return motion_of(bodies, vector(jnp.asarray([[0.0, 0, 1], [3, 0, 1]])), None, vector(jnp.eye(3)[1:]))

    return Scene(
        params={name: jnp.asarray(0.01) for name in ("time_step", "stiffness", "dissipation")},
        bodies=lambda params: bodies,
        start=start,
        dynamics=WHOLE[name],
        planes=(lambda params: floor()) if part == "planes" else None,
        joints=(lambda params: (hinge(0, 1, anchor=(3, 0, 0), base=(0, 0, 0), axis=(0, 1, 0)),))
        if part in ("joints", "joint forces")
        else None,
        measures_of_contact=(lambda contacts: {}) if part == "contact forces" else None,
        measures_of_joints=(lambda forces: {}) if part == "joint forces" else None,
    )


def test_the_table_is_what_the_methods_declare():
    assert {type(method).__name__: set(method.supports) for method in METHODS} == TABLE
    assert Impulses(impacts=0).supports == TABLE["Impulses"] - {"restitution"}
    assert Jointed(contact=Compliant()).supports == (TABLE["Jointed"] | TABLE["Compliant"]) - {"cylinder", "mesh"}


# Times of impacts are options of their method.
@every("method, part", [cell for cell in CELLS if cell[1] not in TABLE[cell[0]] and cell[1] != "times of impacts"])
def test_a_part_that_a_method_does_not_support_is_refused_by_name(method, part):
    with pytest.raises(UserError, match=f"{method.lower()} does not support {part}") as caught:
        simulation = simulate(scene_with(method, part))
        simulation.check(simulation.params, jax.random.key(0))
    # The remedy is another method that does.
    remedy = str(caught.value).split("choose the method ")[1]
    assert [name for name in TABLE if name.lower() in remedy] == [name for name in TABLE if part in TABLE[name]]


@every("method", [name for name in TABLE if "joints" not in TABLE[name]])
@every("kind", HOLDS)
def test_every_kind_of_joint_is_refused_by_methods_without_joints(method, kind):
    scene = scene_with(method, None)
    held = joint(kind, 0, 1, anchor=(3, 0, 0), length=1.0)
    with pytest.raises(
        UserError, match=f"joint 0 \\({kind} of body 0 with body 1\\); {method.lower()} does not support joints"
    ):
        simulate(dataclasses.replace(scene, joints=lambda params: (held,)))


def check_effect(method, part):
    if part == "joints":
        return jointed_bodies_do_not_fall_freely()
    found, shapes = touched(method)
    if part in KINDS:
        body = 2 + shapes.index(part)
        if "planes" in TABLE[method]:
            # It met the floor where its surface is, and bounced.
            assert found["all"].motion.velocity.z[body] > 0.1
            assert found["floor"].motion.velocity.z[body] <= -1
        else:
            # It turns as its own moments have it: no two shapes alike.
            momentum = found["all"].motion.angular_momentum.y
            moments = {kind: float(SHAPES[kind].inertia.y) for kind in shapes}
            np.testing.assert_allclose(momentum[body], moments[part] * (1.0 + body), rtol=1e-9)
    elif part == "planes":
        assert change(found["all"], found["floor"]) > 0.5
    elif part in ("friction", "restitution"):
        # The least of these: the balls that collide slip at 0.3 m/s, of which friction gives each one 1/7.
        assert change(found["all"], found[part]) > 0.04
        assert change(found["all"], found[f"plane_{part}"]) > 0.04
    else:
        simulation = simulate(scene_with(method, part))
        simulation.check(simulation.params, jax.random.key(0))
    return None


def check_collision(method):
    found, _ = touched(method)
    before, after = (1.0, -1.0), found["all"].motion.velocity.x[:2]
    collided = after[0] < 0 < after[1]
    assert collided == ("planes" in TABLE[method]), (before, after)


def jointed_bodies_do_not_fall_freely():
    """Check that each kind of joint holds a body that would fall without it."""
    kinds = [kind for kind in HOLDS if HOLDS[kind]]

    def joints(params):
        return tuple(
            joint(
                kind,
                i,
                anchor=(0.3, 0, 0),
                base=(2 * i + 0.3, 0, 0.5 * (kind == "distance")),
                axis=(1, 0, 0.1),
                length=0.5,
            )
            for i, kind in enumerate(kinds)
        )

    def start(params, bodies, key):
        return motion_of(bodies, vector(jnp.asarray([[2.0 * i, 0, 0] for i in range(len(kinds))])))

    scene = Scene(
        params={"gravity": jnp.asarray(9.81), "time_step": jnp.asarray(5e-3)},
        bodies=lambda params: repeat(box(1.0, (0.2, 0.3, 0.4)), len(kinds)),
        start=start,
        dynamics=Jointed(),
        joints=joints,
        loads=(gravity(),),
    )
    simulation = simulate(scene)
    simulation.check(simulation.params, jax.random.key(0))
    state = simulation.init(simulation.params, jax.random.key(0))
    state = jax.jit(lambda state: jax.lax.fori_loop(0, 10, lambda _, s: simulation.step(s, simulation.params), state))(
        state
    )
    assert (np.asarray(state.motion.velocity.z) > -9.81 * 0.05 * 0.99).all()
