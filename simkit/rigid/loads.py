"""Loads on bodies: gravity, drag, user-defined forces, torques and energies, and their sum."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.parameter import NOT_NEGATIVE
from simkit.core.parts import part
from simkit.core.settings import formula, several
from simkit.core.simulation import Params
from simkit.rigid.algebra.vector import Vector, dot, each, norm, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.scene import Load, parameter_of_load

type Number = jax.Array | float
type Quantity = Number | Callable[[Params], Number]
type Acceleration = str | Callable[[Params], Number | Sequence[Number]] | Sequence[Number]
# A number for each body, (bodies,).
type OfBodies = Callable[[Motion, Bodies, jax.Array, Params], jax.Array]

# Names that formulas of a load take: position, velocity and angular velocity of each body, and the time.
PLACE = ("x", "y", "z")
BODY = (*PLACE, "vx", "vy", "vz", "wx", "wy", "wz", "time")
ON_BODIES = {"joint": "which acts on bodies"}


def gravity(acceleration: Acceleration = "gravity") -> Load:
    """Return the weight ``m g``, by default along -z.

    Args:
        acceleration: name of the parameter g, in m/s^2, or a function of the parameters that returns it; or the vector
            of the acceleration, three numbers or a function that returns them.

    Example:
        >>> weight = rigid.gravity()
        >>> ball = rigid.repeat(rigid.sphere(2.0, 0.1), 1)
        >>> motion = rigid.motion_of(ball, (0.0, 0.0, 3.0))
        >>> params = {"gravity": jnp.array(9.81)}
        >>> print(f"{weight.wrench(motion, ball, 0.0, params).force.z[0]:.2f} N")
        -19.62 N
        >>> print(f"{weight.energy(motion, ball, params).sum():.2f} J")
        58.86 J
        >>> aside = rigid.gravity((6.0, 0.0, -8.0))
        >>> aside.wrench(motion, ball, 0.0, {}).force.x.tolist()
        [12.0]
    """

    def at(params: Params) -> Any:
        """Return the strength along -z, or the three components of the acceleration."""
        if isinstance(acceleration, str):
            return parameter_of_load(acceleration, params)
        return acceleration(params) if callable(acceleration) else acceleration

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del motion, time
        zero, along = zeros(bodies.mass), at(params)
        if _is_vector(along):
            return Wrench(force=Vector(*(bodies.mass * component for component in along)), torque=zero)
        return Wrench(force=Vector(zero.x, zero.y, -bodies.mass * along), torque=zero)

    def energy(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        along = at(params)
        if _is_vector(along):
            return -jnp.sum(bodies.mass * dot(Vector(*along), motion.position), axis=0)
        return jnp.sum(bodies.mass * along * motion.position.z, axis=0)

    return Load(wrench=wrench, energy=energy)


def _is_vector(acceleration: Any) -> bool:
    return isinstance(acceleration, list | tuple) or jnp.ndim(acceleration) > 0


def applied(function: Callable[[Motion, Bodies, jax.Array, Params], Wrench]) -> Load:
    """Return the load that a pure function of the state of one scene computes.

    Args:
        function: ``(motion, bodies, time, params) -> Wrench``, every array (bodies,); may depend on time in any way,
            and differentiably on the other arguments.

    Example:
        >>> def wind(motion, bodies, time, params):
        ...     return rigid.Wrench(force=-params["drag"] * motion.velocity, torque=rigid.zeros(bodies.mass))
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> motion = rigid.motion_of(ball, (0.0, 0.0, 1.0), velocity=(4.0, 0.0, 0.0))
        >>> rigid.applied(wind).wrench(motion, ball, 0.0, {"drag": 0.5}).force.x.tolist()
        [-2.0]
    """
    return Load(wrench=function)


@part(
    values={
        "linear": formula("force over velocity", None, unit="kg/s", bounds=NOT_NEGATIVE),
        "quadratic": formula("force over the square of the velocity", None, unit="kg/m", bounds=NOT_NEGATIVE),
        "angular": formula("torque over angular velocity", None, unit="kg m^2/s", bounds=NOT_NEGATIVE),
    },
    excludes=ON_BODIES,
)
def drag(
    linear: Quantity | None = None,
    quadratic: Quantity | None = None,
    angular: Quantity | None = None,
    on: np.ndarray | None = None,
) -> Load:
    """Return the drag ``F = -(c + q |v|) v``, ``N = -c_r omega`` of a medium at rest.

    Args:
        linear: c in kg/s, a number or a function of the parameters.
        quadratic: q in kg/m, likewise.
        angular: c_r in kg m^2/s, likewise.
        on: (bodies,) booleans, the bodies that it acts on; all by default.

    Example:
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> motion = rigid.motion_of(ball, (0.0, 0.0, 1.0), velocity=(4.0, 0.0, 0.0))
        >>> rigid.drag(linear=0.5, quadratic=0.25).wrench(motion, ball, 0.0, {}).force.x.tolist()
        [-6.0]
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        def value(quantity: Quantity) -> Number:
            return quantity(params) if callable(quantity) else quantity

        force = torque = zeros(bodies.mass)
        if linear is not None:
            force = force - value(linear) * motion.velocity
        if quadratic is not None:
            force = force - (value(quadratic) * norm(motion.velocity)) * motion.velocity
        if angular is not None:
            torque = torque - value(angular) * angular_velocity(motion, bodies)
        return _only(on, Wrench(force=force, torque=torque))

    return Load(wrench=wrench)


@part(
    values={
        "force": several(formula("a component", takes=BODY), "force on the center of each body, in N", (3,), [0, 0, 0]),
        "torque": several(formula("a component", takes=BODY), "torque on each body, in N m", (3,), [0, 0, 0]),
    },
    excludes=ON_BODIES,
)
def force(force: Sequence[OfBodies], torque: Sequence[OfBodies], on: np.ndarray | None = None) -> Load:
    """Return a load by the components of force and torque on each body, functions of its state and the time.

    Args:
        force: three functions ``(motion, bodies, time, params) -> N``, (bodies,).
        torque: three functions that return N m, likewise.
        on: (bodies,) booleans, the bodies that it acts on; all by default.
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        pushed, turned = (
            Vector(*(of(motion, bodies, time, params) + jnp.zeros_like(bodies.mass) for of in components))
            for components in (force, torque)
        )
        return _only(on, Wrench(force=pushed, torque=turned))

    return Load(wrench=wrench)


@part(
    values={"energy": formula("potential energy of each body, of its position x, y, z", unit="J", takes=PLACE)},
    excludes=ON_BODIES,
)
def energy(energy: Callable[[Motion, Bodies, Params], jax.Array], on: np.ndarray | None = None) -> Load:
    """Return the force ``F = -grad U`` of a potential energy of position.

    Args:
        energy: U, ``(motion, bodies, params) -> J``, (bodies,).
        on: (bodies,) booleans, the bodies that it acts on; all by default.
    """

    def total(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        each_body = energy(motion, bodies, params) + jnp.zeros_like(bodies.mass)
        return jnp.sum(each_body if on is None else jnp.where(on, each_body, 0))

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        def at(position: Vector) -> jax.Array:
            return total(dataclasses.replace(motion, position=position), bodies, params)

        return Wrench(force=-jax.grad(at)(motion.position), torque=zeros(bodies.mass))

    return Load(wrench=wrench, energy=total)


def _only(on: np.ndarray | None, wrench: Wrench) -> Wrench:
    """Return forces and torques on some bodies, and none on the others."""
    return wrench if on is None else each(lambda values: jnp.where(on, values, 0), wrench)


def wrench_of(loads: Sequence[Load], motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    """Return the sum of loads, of one scene or of members of an ensemble along the last axis of every array.

    A load is a function of one scene, with parameters of any shape; only here is it mapped over the members.

    Args:
        loads: the loads, possibly none.
        motion: state of the bodies.
        bodies: constants of the bodies.
        time: in s, a number or (members,).
        params: of the scene.
    """

    def of_scene(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        zero = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
        each = (load.wrench(motion, bodies, time, params) for load in loads)
        # Fused with each other and with the step, several loads take minutes to compile (ten of them, with hinge
        # angles: 55 s of CPU instead of 5); one is left to the step.
        return sum(map(computed_once, each) if len(loads) > 1 else each, zero)

    mapped = of_scene if jnp.ndim(time) == 0 else jax.vmap(of_scene, in_axes=-1, out_axes=-1)
    return mapped(motion, bodies, time, params)
