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
from simkit.rigid.bodies.bodies import MAX_BODIES, Bodies, gather
from simkit.rigid.bodies.motion import Motion, motion_of
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
