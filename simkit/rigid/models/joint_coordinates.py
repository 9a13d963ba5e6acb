"""The engine ``"simkit"``: equations of motion in joint coordinates, with exact derivatives in both modes.

Forces, damping and integrators are those of MuJoCo, so that trajectories of models without constraints agree with it
to round-off. Contacts, limits, friction of joints and equalities are hard: impulses by `contact_solver` in place of
MuJoCo's ``solref`` and ``solimp``, and a leapfrog in place of its methods Euler, whose energy drifts, and RK4.
"""

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once_on_cpu
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, UNBOUNDED, Parameter
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.core.status import Status
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.articulated.constraints import Situation, forces_of, rows_of, situation
from simkit.rigid.articulated.contact_laws import Impulses, Rows, pulled, rates
from simkit.rigid.articulated.contact_solver import displacement, row_stiffness, solve_contacts
from simkit.rigid.articulated.dynamics import (
    Inertia,
    acceleration,
    bias_at,
    equations,
    forward_kinematics,
    velocities,
)
from simkit.rigid.articulated.events import Mechanism
from simkit.rigid.articulated.linear import inverse, largest, solve, solve_by
from simkit.rigid.articulated.tree import KINDS, integrate, kinematic_tree, like, vectors_like
from simkit.rigid.models.constraints_of_model import (
    MOST_CORNERS,
    constraints_of,
    pair_without_rule,
    pairs_that_may_touch,
)
from simkit.rigid.models.description import Description, names
from simkit.rigid.models.engine import Engine, Links, supporting
from simkit.rigid.models.event_driven import Rules, event_driven
from simkit.rigid.models.mujoco_c import has_other_state
from simkit.rigid.models.sensors import KINDS as SENSORS
from simkit.rigid.models.sensors import Contacts as Touching
from simkit.rigid.models.sensors import Reading, kind_of, reading, sensors_of
from simkit.rigid.models.source import library

# Weights and times of the stages of the classical Runge-Kutta method.
STAGES, WEIGHTS = (0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)
# Fraction of an overlap of shapes, or of a joint beyond its limit, that a step removes.
CORRECTION = 0.2
# Steps over which the error of the laws is averaged for the status, and fraction of the velocities in its unit.
LAG_STEPS, SLOW = 30, 0.01
LEAPFROG = (
    "the integrator RK4 has no effect beside contacts, limits, friction of joints and equalities, with which models "
    "advance by a leapfrog; write integrator = 'Euler' in the model"
)
# What closes slower than in this many steps of its acceleration rests and does not bounce.
RESTING_STEPS = 3


@pytree
class JointMemory:
    """State in joint coordinates.

    Attributes:
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        impulses: of the constraints in the last step.
        misfit: largest error of the laws of contact so far, as a speed in m/s.
        lag: running mean over `LAG_STEPS` of that of each step, in units of the change of velocities by the forces of
            the step, and a hundredth of the velocities.
        longest_lag: so far.
    """

    position: jax.Array
    velocity: jax.Array
    impulses: Impulses
    misfit: jax.Array
    lag: jax.Array
    longest_lag: jax.Array


@dataclasses.dataclass(frozen=True)
class _Actuators:
    """Forces linear in control, length and velocity of what an actuator moves, between limits.

    Attributes:
        moves: change of each actuator's length per velocity, without its gear, (nu, nv).
        reads: the same per coordinate, (nu, nq).
        controls: limits of the controls, (nu, 2).
        forces: limits of the forces, (nu, 2).
        joints: limits of the sum of forces on each degree of freedom, (nv, 2).
        gain: force per control, and its change with length and velocity, (nu, 3).
        bias: force without a control, and its change with length and velocity, (nu, 3).
        gear: of each actuator, (nu,).
    """

    moves: np.ndarray
    reads: np.ndarray
    controls: np.ndarray
    forces: np.ndarray
    joints: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    gear: np.ndarray


def simkit_engine(description: Description, events: Rules | None = None) -> Engine:
    """Return simkit's own equations of motion as an engine for a model.

    Args:
        description: of the model.
        events: rules of contact at exact times, in place of impulses at whole steps.

    Raises:
        UserError: if the model has a part that the engine does not have, by name.
    """
    model = description.mujoco
    with supporting("simkit", _lacking(description)):
        tree, constraints = kinematic_tree(model), constraints_of(model)
    joints, actuators = names(model, "joint"), names(model, "actuator")
    mujoco = library("mujoco")
    off, method = mujoco.mjtDisableBit, mujoco.mjtIntegrator(int(model.opt.integrator))
    is_constrained, bounces = any(constraints.sizes), number(model, "restitution") is not None
    if is_constrained and method == mujoco.mjtIntegrator.mjINT_RK4 and events is None:
        warnings.warn(LEAPFROG, stacklevel=2)
        method = mujoco.mjtIntegrator.mjINT_EULER
    driven, is_off = _actuators(model), lambda bit: bool(model.opt.disableflags & int(bit))
    spring = model.jnt_qposadr, model.jnt_dofadr
    elastic = np.flatnonzero(model.jnt_type >= KINDS.index("slide"))
    sprung = 0.0 if is_off(off.mjDSBL_SPRING) else 1.0
    rest = model.qpos_spring[spring[0][elastic]]
    damped = 0.0 if is_off(off.mjDSBL_DAMPER) else 1.0

    def by_name(parts: Sequence[str], values: Params) -> jax.Array:
        return jnp.stack([values[name] for name in parts])

    def rotors(params: Params) -> jax.Array:
        return by_name(joints, params["armature"])[model.dof_jntid]

    def stiffness(params: Params) -> jax.Array:
        parts = [joints[each] for each in elastic]
        return sprung * by_name(parts, params["stiffness"]) if parts else params["time_step"][None][:0]

    def inertia(params: Params) -> Inertia:
        mass, moments = description.masses(params)
        turned = description.inertia_frame
        return Inertia(
            mass=mass,
            moments=vector.Vector(*(moments[:, n] for n in range(3))),
            center=vectors_like(model.body_ipos[1:], mass),
            orientation=quaternion.Quaternion(like(turned[:, 0], mass), vectors_like(turned[:, 1:], mass)),
            armature=rotors(params),
        )

    def damping(params: Params) -> jax.Array:
        return by_name(joints, params["damping"])[model.dof_jntid] * damped

    acts = model.nu > 0 and not is_off(off.mjDSBL_ACTUATION)
    # Of velocities, taken at the end of a step.
    feeds_back = acts and method == mujoco.mjtIntegrator.mjINT_IMPLICITFAST and driven.bias[:, 2].any()
    ends_late = method != mujoco.mjtIntegrator.mjINT_RK4 and not (is_off(off.mjDSBL_EULERDAMP) and method == 0)

    def driven_by(
        params: Params, position: jax.Array, velocity: jax.Array, control: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return lengths, velocities and forces of the actuators, (nu, ...) each, without limits of the forces."""
        gear, gain = by_name(actuators, params["gear"]), by_name(actuators, params["gain"])
        length = gear * _product(driven.reads, position)
        rate = gear * _product(driven.moves, velocity)

        def linear(coefficients: np.ndarray) -> jax.Array:
            of_one, of_length, of_rate = (like(column, length) for column in coefficients.T)
            return of_one + of_length * length + of_rate * rate

        wanted = gain * (linear(driven.gain) * _limited(control, driven.controls) + linear(driven.bias))
        return length, rate, wanted

    def pushed_by(params: Params, wanted: jax.Array) -> jax.Array:
        """Return the forces on the velocities, (nv, ...), of those of actuators without limits."""
        push = by_name(actuators, params["gear"]) * _limited(wanted, driven.forces)
        return _limited(_product(driven.moves.T, push), driven.joints)

    def forces(
        params: Params, position: jax.Array, velocity: jax.Array, control: jax.Array
    ) -> tuple[jax.Array, jax.Array | None]:
        """Return the forces of springs, dampers and actuators, (nv, ...), and what is taken at the end of a step.

        The latter is the time step times the matrix of damping and feedback, (nv, nv, ...). An actuator at a limit of
        its force has no feedback.
        """
        damps, stretch = damping(params), position[spring[0][elastic]] - like(rest, position)
        force = _scattered(spring[1][elastic], -stiffness(params) * stretch, model.nv) - damps * velocity
        matrix = like(np.eye(model.nv), damps[None]) * damps
        if acts:
            gear, gain = by_name(actuators, params["gear"]), by_name(actuators, params["gain"])
            _, _, wanted = driven_by(params, position, velocity, control)
            force = force + pushed_by(params, wanted)
            if feeds_back:
                low, high = (like(end, wanted) for end in driven.forces.T)
                feedback = gain * gear**2 * like(driven.bias[:, 2], gear) * ((wanted > low) & (wanted < high))
                pairs = driven.moves[:, :, None] * driven.moves[:, None, :]
                matrix = matrix - jnp.tensordot(
                    jnp.asarray(pairs, gear.dtype), feedback, ((0,), (0,)), precision="highest"
                )
        return force, params["time_step"] * matrix if ends_late else None

    equal = constraints.sizes[1] - constraints.equalities
    rubbing = model.dof_jntid[constraints.rubbing]

    def rows(params: Params, now: Situation) -> Rows:
        friction = like(constraints.contacts.friction, now.normal) * params["friction_scale"]
        loss = by_name([joints[each] for each in rubbing], params["friction_loss"]) if len(rubbing) else now.error[:0]
        return rows_of(constraints, now, friction, loss, params["time_step"])

    def constrained(params: Params, now: JointMemory, control: jax.Array) -> JointMemory:
        """Return the state after a step by the forces, the impulses of the constraints, and then the velocities."""
        h = params["time_step"]
        pushed, late = forces(params, now.position, now.velocity, control)
        gravity = description.gravity_vector(params)
        bodies = inertia(params)
        kinematics, matrix, bias = equations(tree, bodies, now.position, now.velocity, gravity)
        matrix = computed_once_on_cpu(matrix if late is None else matrix + late)
        mobility = computed_once_on_cpu(inverse(jax.lax.stop_gradient(matrix)))
        # With the velocities of the middle of the step the method is a leapfrog, whose energy does not drift.
        middle = now.velocity + h / 2 * solve_by(mobility, matrix, pushed - bias)
        bias = bias_at(tree, bodies, kinematics, middle, gravity)
        change = computed_once_on_cpu(h * solve_by(mobility, matrix, pushed - bias))
        middle = now.velocity + change / 2
        here = situation(constraints, tree, kinematics, now.position)
        held = rows(params, here)
        stiffness = computed_once_on_cpu(row_stiffness(held, mobility))
        start = now.impulses
        free = now.velocity + change
        if bounces:
            # An impact in the middle of the change, so that it keeps the energy of the leapfrog.
            after, struck = bounced(params, matrix, mobility, now, change, held, stiffness)
            bias = bias_at(tree, bodies, kinematics, after, gravity)
            free = jnp.where(struck, after + h / 2 * solve_by(mobility, matrix, pushed - bias), free)
        velocity, impulses, misfit = solve_contacts(matrix, mobility, free, held, stiffness, start)
        overlap = CORRECTION * jnp.maximum(-here.gap, 0)
        beyond = CORRECTION * jnp.maximum(-here.error[: 2 * len(constraints.limited)], 0)
        rest = here.error[len(beyond) : equal]
        # A twist has no displacement.
        closed = jnp.concatenate([beyond, rest, -here.error[equal:]])
        wanted = Impulses(contact=overlap, twist=0 * impulses.twist, scalar=closed)
        moved = velocity + displacement(matrix, held, stiffness, wanted) / h
        unit = largest(jnp.abs(change)) + SLOW * largest(jnp.abs(velocity))
        misfit, unit = jax.lax.stop_gradient((misfit, unit))
        # Bounded, so that one hard impact alone does not raise the mean above 1.
        excess = jnp.minimum(misfit / jnp.where(unit > 0, unit, 1), LAG_STEPS / 3)
        lag = now.lag + (excess - now.lag) / LAG_STEPS
        return JointMemory(
            position=integrate(tree, now.position, moved, h),
            velocity=velocity,
            impulses=impulses,
            misfit=jnp.maximum(now.misfit, misfit),
            lag=lag,
            longest_lag=jnp.maximum(now.longest_lag, lag),
        )

    def bounced(
        params: Params,
        matrix: jax.Array,
        mobility: jax.Array,
        now: JointMemory,
        change: jax.Array,
        held: Rows,
        stiffness: Impulses,
    ) -> tuple[jax.Array, jax.Array]:
        """Return velocities in the middle of a change, after the impacts of a step by Poisson's law, if there are any.

        Impulses of compression stop what closes, and those of expansion are the restitution times the former.
        """
        limits, middle = 2 * len(constraints.limited), now.velocity + change / 2

        def closing(velocity: jax.Array) -> tuple[jax.Array, jax.Array]:
            moved = rates(held, velocity)
            return jnp.sum(held.normal * moved.contact, axis=1), moved.scalar[:limits]

        before, after, changed = closing(now.velocity), closing(now.velocity + change), closing(change)
        room = held.closing, held.offset[:limits]
        strikes = [
            (speed < -RESTING_STEPS * jnp.abs(by)) & (end < -left)
            for speed, end, by, left in zip(before, after, changed, room, strict=True)
        ]
        contact = jnp.where(strikes[0], 0, held.closing)
        offset = jnp.concatenate([jnp.where(strikes[1], 0, held.offset[:limits]), held.offset[limits:]])
        compressing = dataclasses.replace(held, closing=contact, offset=offset)
        stopped, _, _ = solve_contacts(matrix, mobility, middle, compressing, stiffness, now.impulses)
        any_strike = jnp.any(strikes[0], axis=0) | jnp.any(strikes[1], axis=0)
        return jnp.where(any_strike, stopped + params["restitution"] * (stopped - middle), middle), any_strike

    def advance(params: Params, memory: JointMemory, controls: jax.Array) -> JointMemory:
        bodies, gravity, h = inertia(params), description.gravity_vector(params), params["time_step"]

        def rate(position: jax.Array, velocity: jax.Array, control: jax.Array) -> jax.Array:
            pushed, matrix = forces(params, position, velocity, control)
            return acceleration(tree, bodies, position, velocity, pushed, gravity, implicit=matrix)

        def step(now: JointMemory, control: jax.Array) -> tuple[JointMemory, None]:
            if is_constrained:
                return constrained(params, now, control), None
            if method != mujoco.mjtIntegrator.mjINT_RK4:
                velocity = now.velocity + h * rate(now.position, now.velocity, control)
                return dataclasses.replace(
                    now, position=integrate(tree, now.position, velocity, h), velocity=velocity
                ), None
            speeds, changes = [now.velocity], [rate(now.position, now.velocity, control)]
            for share in STAGES:
                position = integrate(tree, now.position, speeds[-1], share * h)
                speeds.append(now.velocity + share * h * changes[-1])
                changes.append(rate(position, speeds[-1], control))
            mean = functools.partial(_mean, dtype=h.dtype)
            position = integrate(tree, now.position, mean(speeds), h)
            return dataclasses.replace(now, position=position, velocity=now.velocity + h * mean(changes)), None

        return jax.lax.scan(step, memory, controls)[0]

    def links(params: Params, memory: JointMemory) -> Links:
        kinematics = forward_kinematics(tree, memory.position)
        center = kinematics.position + quaternion.rotate(kinematics.orientation, inertia(params).center)
        spin, linear = velocities(tree, kinematics, memory.velocity, center)
        return Links(
            position=vector.stacked(kinematics.position),
            orientation=quaternion.stacked(kinematics.orientation),
            center=vector.stacked(center),
            velocity=vector.stacked(linear),
            angular_velocity=vector.stacked(spin),
        )

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> JointMemory:
        contacts, scalars = constraints.sizes
        contact, scalar = jnp.zeros((contacts, 3), velocity.dtype), jnp.zeros(scalars, velocity.dtype)
        twist = jnp.zeros((len(constraints.contacts.twisting), 3), velocity.dtype)
        none = jnp.zeros_like(params["time_step"])
        return JointMemory(
            position=position,
            velocity=velocity,
            impulses=Impulses(contact=contact, twist=twist, scalar=scalar),
            misfit=none,
            lag=none,
            longest_lag=none,
        )

    def contacts(params: Params, memory: JointMemory) -> tuple[jax.Array, jax.Array]:
        if not constraints.sizes[0]:
            return jnp.int32(0), jnp.zeros_like(params["time_step"])
        here = situation(constraints, tree, forward_kinematics(tree, memory.position), memory.position)
        pressed = jnp.any(memory.impulses.contact != 0, axis=1)
        return jnp.sum(pressed, dtype=jnp.int32), jnp.maximum(-jnp.min(here.gap), 0)

    def sense(params: Params, memory: JointMemory, control: jax.Array, time: jax.Array) -> Reading:
        """Return what sensors read, with the forces of what touches those of the step before."""
        h, position, velocity = params["time_step"], memory.position, memory.velocity
        bodies, gravity = inertia(params), description.gravity_vector(params)
        pushed, _ = forces(params, position, velocity, control)
        kinematics, matrix, bias = equations(tree, bodies, position, velocity, gravity)
        here = situation(constraints, tree, kinematics, position)
        acting = jax.tree.map(lambda p: p / h, memory.impulses)
        held = pulled(rows(params, here), acting)
        change = solve(matrix, pushed - bias + held)
        driving = jnp.zeros((3, model.nu), h.dtype)
        on_joints = jnp.zeros_like(velocity)
        if acts:
            length, rate, wanted = driven_by(params, position, velocity, control)
            driving = jnp.stack([length, rate, _limited(wanted, driven.forces)])
            on_joints = pushed_by(params, wanted)
        return reading(
            tree,
            bodies,
            kinematics,
            (position, velocity, change),
            gravity,
            driving,
            on_joints,
            Touching(place=here.place, normal=here.normal, force=acting.contact),
            forces_of(constraints, tree, kinematics, position, acting),
            time,
        )

    def status(memory: JointMemory) -> jax.Array:
        return jnp.where(memory.longest_lag > 1, jnp.int32(Status.SWEEPS_TOO_FEW), jnp.int32(Status.OK))

    engine = Engine(
        start=start,
        advance=advance,
        coordinates=lambda memory: (memory.position, memory.velocity),
        links=links,
        contacts=contacts,
        masses=description.masses,
        rotors=rotors,
        stiffness=stiffness,
        check=lambda params: None,
        touches=is_constrained,
        parameters=_parameters(model),
        members_last=True,
        status=status,
        residual=(lambda memory: memory.misfit) if is_constrained else None,
        sensors=sensors_of(description, constraints.contacts.bodies + 1),
        sense=sense,
    )
    if events is None:
        return engine
    coefficients = constraints.contacts.friction[:, 0]
    mechanism = Mechanism(
        tree=tree,
        constraints=constraints,
        inertia=inertia,
        force=lambda params, position, velocity, control: forces(params, position, velocity, control)[0],
        gravity=description.gravity_vector,
        friction=lambda params: like(coefficients, params["friction_scale"][None]) * params["friction_scale"],
        restitution=lambda params: params["restitution"] if bounces else jnp.zeros_like(params["time_step"]),
        **dataclasses.asdict(events),
    )
    return event_driven(engine, mechanism, description)


def _mean(stages: Sequence[jax.Array], dtype: Any) -> jax.Array:
    return functools.reduce(jnp.add, (jnp.asarray(w, dtype) * a for w, a in zip(WEIGHTS, stages, strict=True)))


def _limited(values: jax.Array, limits: np.ndarray) -> jax.Array:
    """Return values between limits, (n, 2)."""
    return jnp.clip(values, *(like(end, values) for end in limits.T)) if np.isfinite(limits).any() else values


def _product(matrix: np.ndarray, values: jax.Array) -> jax.Array:
    """Return the product of a constant matrix (m, n) with values (n, ...), (m, ...)."""
    return jnp.tensordot(jnp.asarray(matrix, values.dtype), values, 1, precision="highest")


def _scattered(where: np.ndarray, values: jax.Array, size: int) -> jax.Array:
    """Return values (n, ...) at their places in an array of zeros, (size, ...)."""
    return _product(np.eye(size)[:, where], values)


def _parameters(model: Any) -> dict[str, Parameter]:
    def of(parts: Any, values: Any, *rest: Any) -> Parameter:
        return Parameter({str(name): float(value) for name, value in zip(parts, values, strict=True)}, *rest)

    first = model.jnt_dofadr
    linear = model.jnt_stiffness.reshape(model.njnt, -1)[:, 0]
    scalar, loss = model.jnt_type >= KINDS.index("slide"), model.dof_frictionloss[first]
    bodies, joints, actuators = names(model, "body")[1:], names(model, "joint"), names(model, "actuator")
    parameters = {
        "mass": of(bodies, model.body_mass[1:], POSITIVE, "kg", "mass of each body; its moments scale with it"),
        "damping": of(joints, model.dof_damping[first], NOT_NEGATIVE, "1", "of each joint, in N s/m or N m s/rad"),
        "stiffness": of(
            np.array(joints)[scalar], linear[scalar], NOT_NEGATIVE, "1", "of each joint's spring, in N/m or N m/rad"
        ),
        "armature": of(joints, model.dof_armature[first], NOT_NEGATIVE, "1", "inertia of each rotor, in kg or kg m^2"),
    }
    if loss.any():
        about = "Coulomb friction of joints that have it, in N or N m"
        parameters["friction_loss"] = of(np.array(joints)[loss > 0], loss[loss > 0], NOT_NEGATIVE, "1", about)
    restitution = number(model, "restitution")
    if restitution is not None:
        about = "of all contacts and limits: impulse of expansion over that of compression"
        parameters["restitution"] = Parameter(restitution, SHARE, "1", about)
    if not model.nu:
        return parameters
    gear = "force or torque on the joint per force of each actuator"
    gain = "factor on the force of each actuator, feedback included"
    return parameters | {
        "gear": of(actuators, model.actuator_gear[:, 0], UNBOUNDED, "1", gear),
        "gain": of(actuators, np.ones(model.nu), UNBOUNDED, "1", gain),
    }


def _actuators(model: Any) -> _Actuators:
    mujoco = library("mujoco")
    moves, reads = np.zeros((model.nu, model.nv)), np.zeros((model.nu, model.nq))
    for index, (kind, target) in enumerate(zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)):
        moved = [(target, 1.0)]
        if kind == int(mujoco.mjtTrn.mjTRN_TENDON):
            first, count = model.tendon_adr[target], model.tendon_num[target]
            moved = [(model.wrap_objid[n], model.wrap_prm[n]) for n in range(first, first + count)]
        for joint, share in moved:
            moves[index, model.jnt_dofadr[joint]] += share
            reads[index, model.jnt_qposadr[joint]] += share

    def limits(is_limited: Any, ends: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(is_limited, bool)[:, None], ends, [-np.inf, np.inf])

    unclamped = model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    affine = model.actuator_gaintype[:, None] == int(mujoco.mjtGain.mjGAIN_AFFINE)
    biased = model.actuator_biastype[:, None] == int(mujoco.mjtBias.mjBIAS_AFFINE)
    gain, bias = model.actuator_gainprm[:, :3], model.actuator_biasprm[:, :3]
    return _Actuators(
        moves=moves,
        reads=reads,
        controls=limits(model.actuator_ctrllimited * (not unclamped), model.actuator_ctrlrange),
        forces=limits(model.actuator_forcelimited, model.actuator_forcerange),
        joints=limits(model.jnt_actfrclimited, model.jnt_actfrcrange)[model.dof_jntid],
        gain=np.where(affine, gain, gain * [1, 0, 0]),
        bias=np.where(biased, bias, 0.0),
        gear=model.actuator_gear[:, 0],
    )


def _lacking(description: Description) -> dict[str, Any]:
    """Return whether, or where, a model has each of the parts that the engine lacks."""
    mujoco, model, where = library("mujoco"), description.mujoco, description.place_of
    off, trn = mujoco.mjtDisableBit, mujoco.mjtTrn
    flags = int(model.opt.disableflags)
    unconstrained = flags & int(off.mjDSBL_CONSTRAINT)
    scalar = model.jnt_type >= KINDS.index("slide")
    on_joint = np.isin(model.actuator_trntype, [int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)])
    on_tendon = model.actuator_trntype == int(trn.mjTRN_TENDON)
    targets = model.actuator_trnid[:, 0]
    several = on_joint & ~scalar[np.where(on_joint, targets, 0)]
    integrators = (int(getattr(mujoco.mjtIntegrator, f"mjINT_{name}")) for name in ("EULER", "RK4", "IMPLICITFAST"))
    implicit = int(model.opt.integrator) == int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    simple = [int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)]
    biases = [int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)]
    pairs = [] if flags & int(off.mjDSBL_CONTACT) or unconstrained else pairs_that_may_touch(model)
    pair = pair_without_rule(model, pairs)
    touching = pair and " and ".join(where("geom", np.arange(model.ngeom) == geom) for geom in pair)
    limited = np.zeros(model.njnt) if flags & int(off.mjDSBL_LIMIT) or unconstrained else model.jnt_limited
    is_off = flags & int(off.mjDSBL_EQUALITY) or unconstrained
    equal = np.zeros(model.neq) if is_off else model.eq_active0
    uneven = (model.pair_friction[:, [0, 3]] != model.pair_friction[:, [1, 4]]).any(axis=1)
    curved = np.zeros(model.ntendon, bool)
    for tendon, (first, count) in enumerate(zip(model.tendon_adr, model.tendon_num, strict=True)):
        curved[tendon] = (model.wrap_type[first : first + count] != 1).any()
    elastic = _is_any(
        model, ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "limited", "frictionloss"), "tendon"
    ) | _is_any(model, ("actfrclimited", "armature"), "tendon")
    kinds = [kind_of(model, sensor) for sensor in range(model.nsensor)]
    unread = np.array([kind not in SENSORS for kind in kinds], bool)
    other = kinds[int(np.argmax(unread))].lower() if unread.any() else ""
    bent = _is_any(model, ("stiffnesspoly",), "jnt") | _is_any(model, ("dampingpoly",), "dof")[model.jnt_dofadr]
    return {
        f"contact of {touching} (planes with balls, capsules, ellipsoids, cylinders, boxes and meshes of up to "
        f"{MOST_CORNERS} corners, and balls and capsules with each other; switch it off by contype and "
        "conaffinity)": pair,
        "friction of a pair that differs between two directions": where("pair", uneven),
        "limits of ball joints (limited='false')": where("joint", (limited > 0) & ~scalar),
        "equality constraints but connect, weld and joint": where("equality", (equal > 0) & (model.eq_type > 2)),
        "tendons that pass sites or geoms": where("tendon", curved),
        "springs, limits, friction, bounds of forces and rotors of tendons": where("tendon", elastic),
        "springs of free and ball joints": where(
            "joint", ~scalar & (model.jnt_stiffness.reshape(model.njnt, -1) != 0).any(axis=1)
        ),
        "springs and dampers that are not linear": where("joint", bent)
        or where("actuator", _is_any(model, ("damping", "armature"), "actuator")),
        "fluid forces": model.opt.density > 0 or model.opt.viscosity > 0,
        "compensation of gravity": where("body", model.body_gravcomp),
        "actuators of sites, bodies, free and ball joints": where("actuator", ~(on_joint | on_tendon) | several),
        "gains of actuators that depend on velocity with the integrator implicitfast": where(
            "actuator", (model.actuator_gainprm[:, 2] != 0) & implicit
        ),
        "actuators with a state": where("actuator", model.actuator_dyntype),
        "muscles and other actuators that are not linear": where(
            "actuator", ~(np.isin(model.actuator_gaintype, simple) & np.isin(model.actuator_biastype, biases))
        ),
        "integrators but Euler, implicitfast and RK4": int(model.opt.integrator) not in set(integrators),
        "bodies without mass that are not welded to another": where(
            "body", (model.body_mass <= 0) & (np.arange(model.nbody) > 0)
        ),
        "disabled groups of actuators": model.opt.disableactuator,
        "plug-ins and delays (nsample)": model.nplugin or has_other_state(model),
        "bodies that sleep": model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_SLEEP),
        f"sensors of the kind {other}": where("sensor", unread),
        "mocap bodies": where("body", model.body_mocapid >= 0),
        "flexible bodies": model.nflex,
    }


def _is_any(model: Any, attributes: Sequence[str], kind: str) -> np.ndarray:
    """Return for each part of a kind whether an attribute is not zero; one that this MuJoCo does not know is."""
    count = {"tendon": model.ntendon, "jnt": model.njnt, "dof": model.nv, "actuator": model.nu}[kind]
    found = [np.asarray(getattr(model, f"{kind}_{name}", np.zeros(count))) for name in attributes]
    return np.stack([(each.reshape(count, -1 if count else 1) != 0).any(axis=1) for each in found]).any(axis=0)


def number(model: Any, name: str) -> float | None:
    """Return a custom number of a model, or None.

    Args:
        model: a `mujoco.MjModel`.
        name: of the number.
    """
    mujoco = library("mujoco")
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    return None if index < 0 else float(model.numeric_data[model.numeric_adr[index]])
