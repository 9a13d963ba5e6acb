"""The pipelines of brax as engines (spring, positional, generalized), and model features that they lack."""

import copy
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import block_diag

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, Links, like, supporting
from simkit.rigid.models.source import library, quiet

# Angular velocity in rad/s given to a free body at zero, where the generalized pipeline has no derivative.
LEAST_TURNING = 1e-12


def brax_engine(name: str, description: Description) -> Engine:
    """Return a pipeline of brax for a model.

    The spring and positional pipelines integrate every body separately and pull them together at the joints; with the
    custom numbers ``spring_mass_scale`` and ``spring_inertia_scale`` s of the model, they use masses ``m^(1 - s)`` (all
    1 in the models of brax). The generalized pipeline integrates joint coordinates, with the masses of the model.

    Args:
        name: ``"brax-spring"``, ``"brax-positional"`` or ``"brax-generalized"``.
        description: of the model.

    Raises:
        UserError: if brax does not support a feature of the model.
    """
    refuse_what_brax_lacks(name, description.mujoco)
    contact, pipeline = library("brax.contact"), library(f"brax.{name.removeprefix('brax-')}.pipeline")
    with quiet(), supporting(name):
        system = library("brax.io.mjcf").load_model(copy.deepcopy(description.mujoco))
    is_generalized = name == "brax-generalized"
    # Indices of the angular velocities of the F free bodies among the velocities, (F, 3).
    is_free = (description.mujoco.jnt_type == 0) & is_generalized
    rotations = description.mujoco.jnt_dofadr[is_free][:, None] + np.arange(3, 6)
    with supporting(name):
        rest = jnp.asarray(system.init_q), jnp.zeros(system.nv)
        placed = jax.eval_shape(lambda: contact.get(system, pipeline.init(system, *rest).x))

    def system_with(params: Params) -> Any:
        return _with_params(system, description, params)

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> Any:
        state = pipeline.init(system_with(params), position, _moving(velocity, rotations))
        return like(state, state)

    def advance(params: Params, state: Any, controls: jax.Array) -> Any:
        model = system_with(params)

        def step(state: Any, control: jax.Array) -> tuple[Any, None]:
            state = state.replace(qd=_moving(state.qd, rotations))
            return like(pipeline.step(model, state, control), state), None

        return jax.lax.scan(step, state, controls)[0]

    def links(params: Params, state: Any) -> Links:
        if not is_generalized:
            center, velocity, spin = state.x_i.pos, state.xd_i.vel, state.xd_i.ang
        else:
            inertia = system_with(params).link.inertia
            center = state.x.vmap().do(inertia.transform).pos
            spin = state.cd.ang
            velocity = state.cd.vel + jnp.cross(spin, center - state.root_com)
        return Links(
            position=state.x.pos, orientation=state.x.rot, center=center, velocity=velocity, angular_velocity=spin
        )

    def contacts(params: Params, state: Any) -> tuple[jax.Array, jax.Array]:
        if placed is None:
            return jnp.int32(0), jnp.zeros_like(params["time_step"])
        distance = contact.get(system_with(params), state.x).dist
        return jnp.sum(distance < 0, dtype=jnp.int32), jnp.maximum(-jnp.min(distance), 0)

    def masses(params: Params) -> tuple[jax.Array, jax.Array]:
        mass, inertia = description.masses(params)
        if is_generalized:
            return mass, inertia
        return mass ** (1 - system.spring_mass_scale), inertia ** (1 - system.spring_inertia_scale)

    def check(params: Params) -> None:
        if name == "brax-spring":
            mass, inertia = (np.asarray(array, float) for array in masses(params))
            refuse_time_step(system, description, mass, inertia, float(params["time_step"]))

    return Engine(
        start=start,
        advance=advance,
        coordinates=lambda state: (state.q, state.qd),
        links=links,
        contacts=contacts,
        masses=masses,
        rotors=description.rotors if is_generalized else lambda params: 0 * description.rotors(params),
        stiffness=description.stiffness,
        check=check,
        touches=placed is not None,
    )


def _with_params(system: Any, description: Description, params: Params) -> Any:
    mass, _ = description.masses(params)
    inertia = system.link.inertia
    ratio = mass / jnp.asarray(description.mass, mass.dtype)
    inertia = inertia.replace(mass=mass, i=inertia.i * ratio[:, None, None])
    return system.replace(
        link=system.link.replace(inertia=inertia),
        gravity=description.gravity_vector(params),
        geom_friction=system.geom_friction * params["friction_scale"],
        pair_friction=system.pair_friction * params["friction_scale"],
        opt=system.opt.replace(timestep=params["time_step"]),
    )


def _moving(velocity: jax.Array, rotations: np.ndarray) -> jax.Array:
    """Return velocities with `LEAST_TURNING` added to free bodies of zero angular velocity."""
    if not rotations.size:
        return velocity
    spin = velocity[rotations]
    still = jnp.all(spin == 0, axis=1)
    return velocity.at[rotations[:, 0]].add(jnp.where(still, LEAST_TURNING, 0).astype(velocity.dtype))


# Largest growth factor of a stable mode: 1 for a neutral mode, plus the rounding of defective eigenvalues.
GROWTH = 1 + 1e-4
# Bisections for the longest stable time step, to a thousandth of the given one.
BISECTIONS = 10
# Flags of options that brax does not read: it treats them as enabled.
FLAGS = ("constraint", "limit", "contact", "spring", "damper", "gravity", "clampctrl", "filterparent", "actuation")
# The condim of contact with sliding friction in two directions, without torsional or rolling friction.
CONDIM = 3


def refuse_what_brax_lacks(name: str, model: Any) -> None:
    """Refuse a model with a feature that brax ignores.

    Args:
        name: of the engine.
        model: a `mujoco.MjModel`.

    Raises:
        UserError: naming the feature. Ignored features that the models of brax itself have cause a warning.
    """
    ball = int(library("mujoco").mjtJoint.mjJNT_BALL)
    maximal = name != "brax-generalized"
    without_joint = np.flatnonzero(model.body_jntnum[1:] == 0)
    lacking = {
        "density or viscosity of the medium (brax fails on it with this version of JAX)": model.opt.density > 0
        or model.opt.viscosity > 0,
        "ball joints (three hinges in one place are equivalent)": (model.jnt_type == ball).any(),
        "equality constraints": model.neq > 0,
        "tendons": model.ntendon > 0,
        "actuators with a state of their own": model.na > 0,
        "friction in joints (frictionloss)": (model.dof_frictionloss > 0).any(),
        "gravity compensation": (model.body_gravcomp != 0).any(),
        "bodies moved by hand (mocap)": model.nmocap > 0,
        "flexible bodies": model.nflex > 0,
        "bodies without a joint that something refers to": without_joint.size > 0,
        "springs in joints (stiffness)": maximal and (model.jnt_stiffness > 0).any(),
        "springs in joints with a rest position (springref)": _springs_off_zero(model),
        "margin of joint limits": ((model.jnt_margin != 0) & (model.jnt_limited != 0)).any(),
        "bounds of forces on joints (actuatorfrcrange)": (model.jnt_actfrclimited != 0).any(),
        "constant force of actuators (the first of biasprm)": (model.actuator_biasprm[:, 0] != 0).any(),
        "groups of actuators that are off (actuatorgroupdisable)": model.opt.disableactuator != 0,
        "noslip_iterations": model.opt.noslip_iterations > 0,
        **{f'<flag {flag}="disable"/>': _is_disabled(model, flag) for flag in FLAGS},
    }
    with supporting(name, lacking):
        library("brax.io.mjcf").validate_model(model)
    touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    ignored = {
        "damping of joints": maximal and (model.dof_damping > 0).any(),
        "armature of joints": maximal and (model.dof_armature > 0).any(),
        "margin and gap of geoms": ((model.geom_margin != 0) | (model.geom_gap != 0))[touching].any(),
        f"condim of geoms (friction is that of condim = {CONDIM})": (model.geom_condim != CONDIM)[touching].any(),
    }
    if ignored_parts := [part for part, is_present in ignored.items() if is_present]:
        warnings.warn(f"{name} ignores what this model says of the {' and the '.join(ignored_parts)}", stacklevel=2)


def _is_disabled(model: Any, flag: str) -> bool:
    return bool(model.opt.disableflags & int(getattr(library("mujoco").mjtDisableBit, f"mjDSBL_{flag.upper()}")))


def _springs_off_zero(model: Any) -> bool:
    """Return whether a spring of a hinge or a slide has a rest position other than 0, that of brax."""
    places = model.jnt_qposadr[(model.jnt_stiffness > 0) & (model.jnt_type >= 2)]
    return bool((model.qpos_spring[places] != 0).any())


def refuse_time_step(
    system: Any, description: Description, mass: np.ndarray, moments: np.ndarray, time_step: float
) -> None:
    """Refuse a time step at which the joint springs of brax are unstable.

    At the start of the model ``M x'' = -K x - C x'`` for small displacements x of all bodies, and a step of brax is
    ``v <- v - dt M^-1 (K x + C v), x <- x + dt v``: stable if no eigenvalue of that map exceeds 1. Limits of joints
    count as springs that always act.

    Args:
        system: system of brax.
        description: of the model.
        mass: masses in brax in kg, (B,).
        moments: principal moments in brax in kg m^2, (B, 3).
        time_step: dt in s.

    Raises:
        UserError: with the longest stable time step.
    """
    mujoco = library("mujoco")
    data = mujoco.MjData(description.mujoco)
    data.qpos[:] = description.position
    mujoco.mj_kinematics(description.mujoco, data)
    axes = data.ximat[1:].reshape(-1, 3, 3)
    inertia = axes / moments[:, None] @ axes.transpose(0, 2, 1)
    blocks = zip(np.eye(3) / mass[:, None, None], inertia, strict=True)
    inverse = block_diag(*(block for of_body in blocks for block in of_body))
    stiffness, drag = (inverse @ matrix for matrix in _joint_matrices(system, description.mujoco, data))
    unity = np.eye(len(stiffness))

    def is_unstable(time_step: float) -> bool:
        kick = unity - time_step * drag
        step = np.block([[unity - time_step**2 * stiffness, time_step * kick], [-time_step * stiffness, kick]])
        return bool(np.abs(np.linalg.eigvals(step)).max() > GROWTH)

    if not is_unstable(time_step):
        return
    stable, unstable = 0.0, time_step
    for _ in range(BISECTIONS):
        middle = (stable + unstable) / 2
        stable, unstable = (stable, middle) if is_unstable(middle) else (middle, unstable)
    raise UserError(
        f"time_step = {time_step:g} s is too long for the joint springs of brax-spring, which are unstable above "
        f"{stable:.2g} s; choose {_round_down(0.8 * stable):g} s or less"
    )


def _joint_matrices(system: Any, model: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the stiffness and damping matrices, (6B, 6B); each body has 3 displacements, then 3 rotations."""
    link, bodies = system.link, model.nbody - 1
    stiffness, damping = np.zeros((6 * bodies, 6 * bodies)), np.zeros((6 * bodies, 6 * bodies))
    for body in range(1, model.nbody):
        joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        kinds = model.jnt_type[list(joints)]
        if 0 in kinds:
            continue
        hinges = [data.xaxis[joint] for joint, kind in zip(joints, kinds, strict=True) if kind == 3]
        slides = [data.xaxis[joint] for joint, kind in zip(joints, kinds, strict=True) if kind == 2]
        limits = [data.xaxis[joint] for joint in joints if model.jnt_limited[joint] and model.jnt_type[joint] == 3]
        spring, limit_spring, drag, turning_drag = (
            float(value[body - 1])
            for value in (
                link.constraint_stiffness,
                link.constraint_limit_stiffness,
                link.constraint_vel_damping,
                link.constraint_ang_damping,
            )
        )
        held = np.eye(3) - _along(slides)
        rotational = {0: spring * np.eye(3), 1: spring * (np.eye(3) - _along(hinges))}
        turned = rotational.get(len(hinges), np.zeros((3, 3)))
        if len(hinges) == 2:
            turned = limit_spring * _along([np.cross(*hinges)])
        turned = turned + limit_spring * _along(limits)
        relative = _relative(data, body, model.body_parentid[body], data.xanchor[joints[0]])
        zero = np.zeros((3, 3))
        stiffness += relative.T @ np.block([[spring * held, zero], [zero, turned]]) @ relative
        damping += relative.T @ np.block([[drag * held, zero], [zero, turning_drag * np.eye(3)]]) @ relative
    return stiffness, damping


def _relative(data: Any, body: int, parent: int, anchor: np.ndarray) -> np.ndarray:
    """Return the Jacobian of the separation and rotation of a joint in the coordinates of all bodies, (6, 6B)."""
    bodies = len(data.xipos) - 1
    relative = np.zeros((6, 6 * bodies))
    for which, sign in ((body, 1.0), (parent, -1.0)):
        if which:
            first = 6 * (which - 1)
            x, y, z = anchor - data.xipos[which]
            lever = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
            relative[:3, first : first + 3] = sign * np.eye(3)
            relative[:3, first + 3 : first + 6] = sign * lever
            relative[3:, first + 3 : first + 6] = sign * np.eye(3)
    return relative


def _along(axes: list[np.ndarray]) -> np.ndarray:
    """Return the projection matrix onto the span of orthonormal axes, (3, 3)."""
    return sum((np.outer(axis, axis) for axis in axes), np.zeros((3, 3)))


def _round_down(value: float) -> float:
    """Return a value rounded down to one significant digit."""
    digit = 10.0 ** np.floor(np.log10(value))
    return float(np.floor(value / digit) * digit)
