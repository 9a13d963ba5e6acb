"""Bodies on a floor or a slope: rolling, sliding, stacked, piled up, and bouncing on compliant contacts."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector, dot
from simkit.rigid.bodies.bodies import MAX_BODIES, Bodies, gather, repeat
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor, gather_planes, plane
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Dynamics, Planes, Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate

# Mass of each body in kg; where it is no parameter, it sets energies and forces but cancels from the motion.
MASS = 1.0


def _under_gravity(
    params: dict[str, Parameter],
    bodies: Callable[[Params], Bodies],
    start: Callable[[Params, Bodies, jax.Array], Motion],
    dynamics: Dynamics,
    measures: Callable[[Motion, Bodies, jax.Array, Params], dict[str, jax.Array]],
    planes: Callable[[Params], Planes] = lambda params: floor(),
    **others: Any,
) -> Simulation:
    """Return bodies under gravity, by default on a level floor; arguments as for `Scene`."""
    return simulate(Scene(params, bodies, start, dynamics, planes, loads=(gravity(),), measures=measures, **others))


BOX_STACK = {
    "length": Parameter(0.2, POSITIVE, "m", "edge length of the boxes"),
    "shift": Parameter(0.02, unit="m", doc="shift of every second box along x"),
    "drop": Parameter(0.0, NOT_NEGATIVE, "m", "gap below each box at the start"),
    "push": Parameter(0.0, unit="m/s", doc="velocity of the lowest box along x at the start"),
    "friction": Parameter(0.5, NOT_NEGATIVE, "1", "coefficient of Coulomb friction"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.004, POSITIVE, "s", "time step"),
}


@described(
    RIGID,
    top=("m", "height of the center of the top box"),
    lean=("m", "displacement of the center of the top box along x since the start"),
    distance=("m", "center of the lowest box along x"),
)
@arguments(boxes=whole("number of boxes", low=1, high=MAX_BODIES))
def box_stack(*, boxes: int = 4, sweeps: int = 8) -> Simulation:
    """Return a tower of cubes on a level floor, every second one shifted.

    The tower stands while ``shift`` is below half a length.

    Good values: friction above 0.3; time steps of 1 to 5 ms; more sweeps for a taller tower.

    Args:
        boxes: number of boxes, at least 1.
        sweeps: over all contacts in each step.

    Returns:
        The simulation; it also diagnoses ``top`` (m, height of the center of the top box), ``lean`` (m, displacement of
        that center along x since the start) and ``distance`` (m along x, of the lowest box).

    Raises:
        UserError: if boxes is outside [1, `MAX_BODIES`].

    Example:
        >>> run = simkit.run(rigid.box_stack(boxes=1), steps=50, every=50, length=0.3)
        >>> print(f"top at {float(run['top'][-1]):.3f} m = half a length of 0.3 m")
        top at 0.150 m = half a length of 0.3 m
    """

    def bodies(params: Params) -> Bodies:
        return repeat(box(MASS, (params["length"],) * 3, params["friction"]), boxes)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        index = jnp.arange(boxes, dtype=bodies.mass.dtype)
        zero = jnp.zeros_like(index)
        height = params["length"] * (index + 0.5) + params["drop"] * (index + 1)
        return motion_of(
            bodies,
            Vector(params["shift"] * (index % 2), zero, height),
            velocity=Vector(jnp.where(index == 0, params["push"], zero), zero, zero),
        )

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        x = motion.position.x
        x_at_start = params["shift"] * ((boxes - 1) % 2)
        return {"top": motion.position.z[-1], "lean": x[-1] - x_at_start, "distance": x[0]}

    return _under_gravity(BOX_STACK, bodies, start, Impulses(sweeps=sweeps), measures)


FALLING_PILE = {
    "length": Parameter(
        0.2, POSITIVE, "m", "edge length of the boxes, length of the capsules, and diameter of the balls"
    ),
    "spacing": Parameter(0.35, POSITIVE, "m", "distance of neighbors at the start"),
    "tilt": Parameter(0.4, unit="rad", doc="standard deviation of the random rotation vectors at the start"),
    "throw": Parameter(0.3, NOT_NEGATIVE, "m/s", "standard deviation of the random velocities at the start"),
    "room": Parameter(0.5, POSITIVE, "m", "half the distance of opposite walls"),
    "friction": Parameter(0.5, NOT_NEGATIVE, "1", "coefficient of Coulomb friction"),
    "restitution": Parameter(0.1, SHARE, "1", "coefficient of restitution"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.004, POSITIVE, "s", "time step"),
}
# Bodies per layer at the start, and angle in rad of each layer against the one below, so that bodies land off center.
PER_LAYER = 4
TURN = 0.7


@described(
    RIGID,
    height=("m", "height of the center of mass"),
    speed=("m/s", "root mean square speed"),
    spread=("m", "root mean square distance from the vertical axis of the room"),
)
@arguments(
    boxes=whole("number of boxes", high=MAX_BODIES),
    spheres=whole("number of spheres", high=MAX_BODIES),
    capsules=whole("number of capsules", high=MAX_BODIES),
)
def falling_pile(*, boxes: int = 12, spheres: int = 6, capsules: int = 6, sweeps: int = 12) -> Simulation:
    """Return bodies of three shapes that are dropped between four walls and come to rest on one another.

    A pile is chaotic: small differences grow with every impact, so derivatives are useful over the first impacts only.

    Good values: spacing above sqrt(3) lengths, where no two bodies can overlap at the start; room above 1.3 spacings;
    time steps of 2 to 5 ms; 8 sweeps or more.

    Args:
        boxes: number of boxes.
        spheres: number of spheres.
        capsules: number of capsules.
        sweeps: over all contacts in each step.

    Returns:
        The simulation; it also diagnoses ``height`` (m, of the center of mass), ``speed`` (m/s, root mean square) and
        ``spread`` (m, root mean square distance from the vertical axis through the middle of the room).

    Raises:
        UserError: for a number outside [0, `MAX_BODIES`], or no body at all.

    Example:
        >>> run = simkit.run(rigid.falling_pile(boxes=0, spheres=3, capsules=0), steps=20, every=20)
        >>> print(f"{run.sizes['body']} bodies fall, height {float(run['height'][-1]):.2f} m")
        3 bodies fall, height 0.34 m
    """
    counts = {"box": boxes, "sphere": spheres, "capsule": capsules}
    if not sum(counts.values()):
        raise UserError("boxes, spheres and capsules are all 0; choose at least one body")
    order = _mixed(counts)

    def bodies(params: Params) -> Bodies:
        length = params["length"]
        surface = (params["friction"], params["restitution"])
        shapes = {
            "box": box(MASS, (length,) * 3, *surface),
            "sphere": sphere(MASS, length / 2, *surface),
            "capsule": capsule(MASS, length / 4, length / 2, *surface),
        }
        return gather([shapes[kind] for kind in order])

    def planes(params: Params) -> Planes:
        walls = [plane(normal, -params["room"]) for normal in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))]
        return gather_planes([floor(), *walls])

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        index = jnp.arange(len(order))
        layer = (index // PER_LAYER).astype(bodies.mass.dtype)
        angle = 2 * jnp.pi / PER_LAYER * (index % PER_LAYER) + TURN * layer
        from_axis = params["spacing"] / (2 * math.sin(math.pi / PER_LAYER))
        position = Vector(from_axis * jnp.cos(angle), from_axis * jnp.sin(angle), params["spacing"] * (layer + 1))
        turned, thrown = jax.random.normal(key, (2, 3, len(order)), layer.dtype)
        return motion_of(
            bodies, position, exponential(params["tilt"] * Vector(*turned)), params["throw"] * Vector(*thrown)
        )

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        x, y = motion.position.x, motion.position.y
        return {
            "height": jnp.mean(motion.position.z, axis=0),
            "speed": jnp.sqrt(jnp.mean(dot(motion.velocity, motion.velocity), axis=0)),
            "spread": jnp.sqrt(jnp.mean(x * x + y * y, axis=0)),
        }

    return _under_gravity(FALLING_PILE, bodies, start, Impulses(sweeps=sweeps), measures, planes=planes)


def _mixed(counts: dict[str, int]) -> list[str]:
    """Return the kinds of all bodies, alternating between the kinds that are left."""
    return [kind for turn in range(max(counts.values())) for kind, count in counts.items() if turn < count]


COMPLIANT_BOUNCE = {
    "height": Parameter(
        1.0, NOT_NEGATIVE, "m", "height of the lowest point of the last ball, the highest of all, at the start"
    ),
    "spacing": Parameter(0.35, unit="m", doc="distance of the centers of neighbors"),
    "stiffness": Parameter(2000000.0, POSITIVE, "N/m^(3/2)", "force of a contact over the power 3/2 of its overlap"),
    "dissipation": Parameter(
        0.1, NOT_NEGATIVE, "s/m", "relative loss of speed of a slow ball in an impact, per m/s of its speed"
    ),
    "radius": Parameter(0.1, POSITIVE, "m", "radius of the balls"),
    "mass": Parameter(1.0, POSITIVE, "kg", "mass of each ball"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.004, POSITIVE, "s", "time step, of several substeps; a contact should last 30 substeps"),
}


@described(
    RIGID,
    height=("m", "height of the last ball's lowest point"),
    upward=("m/s", "upward velocity of the last ball"),
    apex=("m", "apex height of the present flight of the last ball"),
    shortest_contact=("1", "substeps of the shortest contact that has ended"),
)
@arguments(balls=whole("number of balls", low=1, high=100))
def compliant_bounce(*, balls: int = 5, substeps: int = 32, integrator: str = "velocity_verlet") -> Simulation:
    """Return balls side by side, each dropped from twice the height of the one before.

    Contact is that of Hunt and Crossley, see `simkit.rigid.contact.compliant.Compliant`: a ball that hits at speed v
    leaves with about ``1 - a v`` of it, so that slow balls have a larger restitution.

    k is the parameter ``stiffness`` and a ``dissipation``.

    It also diagnoses ``height``, of the lowest point of the last ball, ``upward``, its vertical velocity, ``apex``, the
    apex height of its present flight, and ``shortest_contact``, in substeps.

    Args:
        balls: number of balls, 1 to 100.
        substeps: number per time step.
        integrator: as for `simkit.rigid.free.Free`.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> run = simkit.run(rigid.compliant_bounce(balls=1), steps=200, dissipation=0.0, height=0.5)
        >>> print(f"energy {float(run['energy'][-1] / run['energy'][0]):.3f} of that at the start")
        energy 1.000 of that at the start

    Reference: Hunt and Crossley, J. Appl. Mech. 42, 440 (1975), doi:10.1115/1.3423596.
    """

    def bodies(params: Params) -> Bodies:
        return repeat(sphere(params["mass"], params["radius"]), balls)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        index = jnp.arange(balls, dtype=params["height"].dtype) - (balls - 1)
        zero = jnp.zeros_like(index)
        across = params["spacing"] * (index + (balls - 1) / 2)
        return motion_of(bodies, Vector(across, zero, params["radius"] + params["height"] * 2**index))

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        height, upward = motion.position.z[-1] - params["radius"], motion.velocity.z[-1]
        return {"height": height, "upward": upward, "apex": height + upward**2 / (2 * params["gravity"])}

    return _under_gravity(
        COMPLIANT_BOUNCE, bodies, start, Compliant(substeps=substeps, integrator=integrator), measures
    )
