"""Assembly of jointed bodies, and their time stepping by RATTLE, with a fixed number of iterations for all joints."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of, part
from simkit.core.pytrees import pytree
from simkit.core.settings import table, whole
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, each, norm
from simkit.rigid.bodies.bodies import Bodies, unless_held
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, momentum_of_rotation
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.forces import ContactForces
from simkit.rigid.integrators import kick, move_freely
from simkit.rigid.joints.constraints import (
    Jacobian,
    Joints,
    check_indices,
    check_joints,
    generalized_inverse,
    jacobian,
    mobility,
    place,
    rates_of,
    row_count,
    rows_of,
    spread_impulse,
    times_vector,
    violations,
)
from simkit.rigid.parts import (
    FORCES,
    FRICTION,
    HELD,
    JOINT_FORCES,
    JOINTS,
    PLANES,
    SHAPES,
    TILTED_DISKS,
    UNEVEN_SPHERES,
)
from simkit.rigid.scene import Memory, Setting

# Keys of the contact; the joints are integrated by RATTLE.
CONTACT = {
    key: setting
    for key, setting in {**declaration_of(Compliant).keys, **declaration_of(Compliant).values}.items()
    if key != "integrator"
}
# Stages of the composition of each order, as fractions of the step.
_SUZUKI = 1 / (4 - 4 ** (1 / 3))
STAGES = {2: (1.0,), 4: (_SUZUKI, _SUZUKI, 1 - 4 * _SUZUKI, _SUZUKI, _SUZUKI)}


@pytree
class JointMemory:
    """Memory of RATTLE, carried from step to step.

    Attributes:
        force: constraint force of every row in the first half of the last step, in N or N m, (rows, ...); the initial
            guess of the next step.
        apart: whether the iterations ever left a joint open, bool.
    """

    force: jax.Array
    apart: jax.Array


@dataclasses.dataclass(frozen=True)
class Jointed:
    """Motion under loads and the joints of a scene, with compliant contact or without contact.

    RATTLE (Andersen, J. Comput. Phys. 52, 24 (1983), doi:10.1016/0021-9991(83)90014-1) for rigid bodies: half a kick
    with impulses ``J(x)^T lambda`` such that the joints are closed after the free motion that follows, then half a kick
    with impulses such that no velocity opens them. Second order, symplectic, reversible. Joints hold to round-off,
    without drift.

    The impulses are iterated, ``lambda <- lambda - (J M^-1 J^T)^+ g / dt``, with the constraint violations g; each
    iteration divides the error by about ``1 / (dt omega)``, omega the angular velocity. The generalized inverse drops
    redundant rows, as of a planar loop of hinges. Derivatives are those of the exact solution, by the implicit function
    theorem, not those of the iterations.

    Order 4 composes five such steps of 0.41, 0.41, -0.66, 0.41 and 0.41 times the length (Suzuki, Phys. Lett. A 146,
    319 (1990), doi:10.1016/0375-9601(90)90962-N), also symplectic and reversible.

    Attributes:
        iterations: number of iterations of the position solve in every step. Good values: 8; more where dt omega is
            above 0.02.
        order: order of the method in the time step, 2 or 4.
        contact: contact of the bodies with each other and with planes, whose force is a load, and whose substeps divide
            the time step; its integrator is not used. Bodies that a joint connects do not touch each other.

    Raises:
        UserError: if iterations is below 1, order is neither 2 nor 4, or 4 with contact.

    Example:
        >>> swing = rigid.Scene(
        ...     params={"gravity": 9.81, "time_step": 0.005},
        ...     bodies=rigid.sphere(1.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (1.0, 0.0, 0.0)),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(rigid.distance(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), length=1.0),),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(swing), steps=100)
        >>> length, energy = np.linalg.norm(run["position"][-1, 0]), float(run["energy"][-1])
        >>> print(f"length {length:.3f} m, change of energy {abs(energy):.2f} J")
        length 1.000 m, change of energy 0.00 J
    """

    iterations: int = 8
    order: int = 2
    contact: Compliant | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range before compilation."""
        check_integer("iterations", self.iterations, 1)
        if self.order not in tuple(STAGES):
            raise UserError(f"order = {self.order!r:.60} is not available; choose 2 or 4")
        if self.contact is not None and self.order == 4:
            raise UserError("order = 4 goes back in time within a step, where contact would gain energy; choose 2")

    @property
    def supports(self) -> frozenset[str]:
        """Return every shape, or those of the contact, and joints; planes and friction with contact only."""
        of_contact = set() if self.contact is None else {PLANES, FRICTION, FORCES}
        shapes = SHAPES if self.contact is None else SHAPES & self.contact.supports
        return shapes | {JOINTS, HELD, UNEVEN_SPHERES, TILTED_DISKS, JOINT_FORCES} | of_contact

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the parameters of the scene that the contact reads."""
        return () if self.contact is None else self.contact.reads

    def start(self, motion: Motion, setting: Setting) -> Memory:
        """Return a memory of zero constraint forces."""
        like = motion.position.x[0]
        check_indices(setting.joints, motion.position.x.shape[0])
        count = row_count(setting.joints)
        memory = JointMemory(force=jnp.zeros((count, *like.shape), like.dtype), apart=jnp.zeros(like.shape, bool))
        return memory if self.contact is None else (memory, self.contact.start(motion, setting))

    def step(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        """Return the motion and the memory one step later."""
        if self.contact is not None:
            return self._with_contact(self.contact, motion, memory, setting, time, time_step)
        if self.order == 2:
            return self._stage(motion, memory, setting, time, time_step)

        def stage(carry, fraction):
            motion, memory, time = carry
            duration = fraction * time_step
            motion, memory = self._stage(motion, memory, setting, time, duration)
            return (motion, memory, time + duration), None

        fractions = jnp.asarray(STAGES[self.order], time_step.dtype)
        return jax.lax.scan(stage, (motion, memory, time), fractions)[0][:2]

    def _with_contact(
        self,
        contact: Compliant,
        motion: Motion,
        memory: Memory,
        setting: Setting,
        time: jax.Array,
        time_step: jax.Array,
    ) -> tuple[Motion, Memory]:
        def load(motion: Motion, time: jax.Array) -> Wrench:
            return setting.load(motion, time) + contact.force(motion, setting)

        touching, substep = dataclasses.replace(setting, load=load), time_step / contact.substeps

        def body(carry: tuple[Motion, Memory], index: jax.Array) -> tuple[tuple[Motion, Memory], None]:
            motion, (joints, durations) = carry
            motion, joints = self._stage(motion, joints, touching, time + index * substep, substep)
            return (motion, (joints, contact.after_substep(durations, motion, setting))), None

        indices = jnp.arange(contact.substeps, dtype=time_step.dtype)
        return jax.lax.scan(body, (motion, memory), indices)[0]

    def _stage(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        bodies, half = setting.bodies, time_step / 2
        pushed = kick(motion, bodies, setting.load(motion, time), half)
        force, rows = memory.force, None
        if setting.joints:
            rows = _rows(setting, motion)
            impulse = self._closing_impulse(motion, pushed, rows, force * half, setting, time_step)
            force = jax.lax.stop_gradient(impulse / half)
            pushed = after_impulse(pushed, bodies, rows, impulse)
        moved = move_freely(pushed, bodies, time_step)
        # For loads that depend on velocity: twice the change of the first half predicts the momenta to second order.
        expected = dataclasses.replace(
            moved,
            velocity=2 * pushed.velocity - motion.velocity,
            angular_momentum=2 * pushed.angular_momentum - motion.angular_momentum,
        )
        ended = kick(moved, bodies, setting.load(expected, time + time_step), half)
        if rows is None:
            return ended, memory
        ended = without_opening(ended, bodies, _rows(setting, ended))
        return ended, JointMemory(force=force, apart=memory.apart | is_apart(setting, ended))

    def diagnose(self, motion: Motion, memory: Memory, setting: Setting) -> dict[str, jax.Array]:
        """Return the largest gap and tilt of joints, the largest rates of both, and the diagnostics of contact."""
        of_contact = {} if self.contact is None else self.contact.diagnose(motion, memory[1], setting)
        zero = jnp.zeros_like(motion.position.x[0])
        largest, growth = {"m": zero, "rad": zero}, {"m": zero, "rad": zero}
        if setting.joints:
            # The values are round-off: without the barriers, programs that fuse this with other code would differ.
            motion, bodies, joints = computed_once((motion, setting.bodies, setting.joints))
            placed = computed_once(place(joints, motion))
            rows = computed_once(jacobian(joints, placed, motion.position.x.shape[0]))
            violation, rate = computed_once((violations(joints, placed), rates_of(rows, motion, bodies)))
            violation, rate = jnp.abs(violation), jnp.abs(rate)
            start = 0
            for row, indices in rows_of(setting.joints):
                unit, rows_of_type = "rad" if 3 <= row < 6 else "m", slice(start, start + len(indices))
                largest[unit] = jnp.maximum(largest[unit], jnp.max(violation[rows_of_type], axis=0))
                growth[unit] = jnp.maximum(growth[unit], jnp.max(rate[rows_of_type], axis=0))
                start += len(indices)
        return {
            "joint_error": largest["m"],
            "joint_tilt": largest["rad"],
            "joint_error_rate": growth["m"],
            "joint_tilt_rate": growth["rad"],
            **of_contact,
        }

    def status(self, memory: Memory) -> jax.Array:
        """Return `JOINTS_APART` if the iterations ever left a joint open, else that of the contact, or `OK`."""
        joints, code = memory, jnp.int32(Status.OK)
        if self.contact is not None:
            joints, durations = memory
            code = self.contact.status(durations)
        return jnp.where(joints.apart, jnp.int32(Status.JOINTS_APART), code)

    def forces(self, motion: Motion, memory: Memory, setting: Setting) -> tuple[ContactForces, ...]:
        """Return the forces of all contacts at this motion."""
        assert self.contact is not None  # without contact, forces are refused
        return self.contact.forces(motion, memory[1], setting)

    def joint_forces(self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array) -> tuple[Vector, ...]:
        """Return the force on the first body of each joint, in N, at this motion.

        It solves ``J M^-1 J^T lambda = -d/dt (J v)`` along the motion without joints. Forces in redundant rows, which
        no law of motion determines, are zero.
        """
        del memory
        bodies, joints, load = setting.bodies, setting.joints, setting.load(motion, time)
        if self.contact is not None:
            load = load + self.contact.force(motion, setting)

        def opening(duration: jax.Array) -> jax.Array:
            moved = move_freely(kick(motion, bodies, load, duration), bodies, duration)
            return rates_of(_rows(setting, moved), moved, bodies)

        rows = _rows(setting, motion)
        _, rate = jax.jvp(opening, (jnp.zeros_like(time),), (jnp.ones_like(time),))
        force = -_solved(mobility(rows, motion, bodies), rate)
        owner = np.concatenate([indices for _, indices in rows_of(joints)])
        of_rows = owner.reshape(-1, *(1,) * (force.ndim - 1))
        return tuple(
            spread_impulse(rows, jnp.where(of_rows == index, force, 0))[0][joint.first]
            for index, joint in enumerate(joints)
        )

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse joints that are open at the start, or whose velocities would open them.

        Raises:
            UserError: naming the first of them.
        """
        check_joints(setting.joints, motion, setting.bodies)
        if self.contact is not None:
            self.contact.check(motion, setting)

    def _closing_impulse(
        self,
        motion: Motion,
        pushed: Motion,
        rows: Jacobian,
        guess: jax.Array,
        setting: Setting,
        time_step: jax.Array,
    ) -> jax.Array:
        """Return the impulses such that all joints are closed after free motion for a step."""
        bodies, joints = setting.bodies, setting.joints
        inverse = generalized_inverse(jax.lax.stop_gradient(mobility(rows, motion, bodies)))
        inverse /= jax.lax.stop_gradient(time_step)

        def violation(impulse: jax.Array) -> jax.Array:
            moved = computed_once(move_freely(after_impulse(pushed, bodies, rows, impulse), bodies, time_step))
            return violations(joints, computed_once(place(joints, moved)))

        def search(violation, guess):
            return jax.lax.fori_loop(
                0, self.iterations, lambda _, impulse: impulse - times_vector(inverse, violation(impulse)), guess
            )

        def solve_linear(matrix, right):
            # The same iteration for the linearized violations, as a scan, which can be transposed.
            def iterate(impulse, _):
                return impulse + times_vector(inverse, right - matrix(impulse)), None

            return jax.lax.scan(iterate, jnp.zeros_like(right), None, length=self.iterations)[0]

        return jax.lax.custom_root(violation, jax.lax.stop_gradient(guess), search, solve_linear)


@part(
    keys={
        "iterations": whole("iterations of all joints in every step", 8, low=1),
        "order": whole("order of the method in time, 2 or 4", 2, low=2, high=4, is_even=True),
    },
    values={
        "contact": table("contact of the method 'compliant', with its options; left out, bodies do not touch", CONTACT)
    },
)
def jointed(iterations: int = 8, order: int = 2, contact: Mapping[str, Any] | None = None) -> Jointed:
    """Return the method `Jointed` from the keys of a table.

    Args:
        iterations: see `Jointed`.
        order: likewise.
        contact: options of `simkit.rigid.contact.compliant.Compliant`; None for no contact.
    """
    return Jointed(iterations, order, None if contact is None else Compliant(**contact))


def after_impulse(motion: Motion, bodies: Bodies, rows: Jacobian, impulse: jax.Array) -> Motion:
    """Return bodies after impulses in joints, ``v' = v + M^-1 J^T lambda``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        rows: J.
        impulse: lambda, (rows, ...).
    """
    push, turn = unless_held(bodies, computed_once(spread_impulse(rows, impulse)))
    return dataclasses.replace(
        motion,
        velocity=motion.velocity + push / bodies.mass,
        angular_momentum=motion.angular_momentum + turn,
    )


def without_opening(motion: Motion, bodies: Bodies, rows: Jacobian) -> Motion:
    """Return bodies after the impulses that make the rates of all constraints zero, ``J v = 0``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        rows: J at the positions of ``motion``.
    """
    impulse = _solved(mobility(rows, motion, bodies), rates_of(rows, motion, bodies))
    return after_impulse(motion, bodies, rows, -impulse)


def _solved(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Return a solution of a linear system, with zeros for redundant rows."""
    inverse = generalized_inverse(jax.lax.stop_gradient(matrix))

    def solve(apply, right):
        first = times_vector(inverse, right)
        # One step of iterative refinement: the residual is then round-off of the rates, not of the inverse.
        return first + times_vector(inverse, right - apply(first))

    return jax.lax.custom_linear_solve(lambda x: times_vector(matrix, x), right, solve, symmetric=True)


def is_apart(setting: Setting, motion: Motion) -> jax.Array:
    """Return whether a constraint is violated by more than sqrt(eps), half the digits, relative to 1 + its levers."""
    placed = jax.lax.stop_gradient(place(setting.joints, motion))
    violation = jnp.max(jnp.abs(violations(setting.joints, placed)), axis=0)
    size = jnp.max(norm(placed.lever) + norm(placed.base_lever), axis=0)
    return ~(violation <= jnp.finfo(violation.dtype).eps ** 0.5 * (1 + size))


def _rows(setting: Setting, motion: Motion) -> Jacobian:
    return jacobian(setting.joints, place(setting.joints, motion), motion.position.x.shape[0])


def assemble(motion: Motion, bodies: Bodies, joints: Joints, iterations: int = 10) -> Motion:
    """Return bodies displaced the least, in the norm of their inertia, so that all joints are closed and stay so.

    Newton's method, ``x <- x - M^-1 J^T (J M^-1 J^T)^+ g``, with a new Jacobian in each iteration; then one impulse
    ends the velocities that would open a joint.

    Args:
        motion: state near a placement with closed joints; angular velocities are kept while bodies turn.
        bodies: constants of the bodies.
        joints: of the scene.
        iterations: of Newton's method; 10 is enough for gaps up to half the size of a body.
    """
    if not joints:
        return motion
    count = motion.position.x.shape[0]
    spin = angular_velocity(motion, bodies)
    still = dataclasses.replace(motion, angular_momentum=each(jnp.zeros_like, spin))

    def newton(_: int, motion: Motion) -> Motion:
        placed = place(joints, motion)
        rows = jacobian(joints, placed, count)
        inverse = generalized_inverse(mobility(rows, motion, bodies))
        push, twist = spread_impulse(rows, -times_vector(inverse, violations(joints, placed)))
        twist = unless_held(bodies, twist)
        turned = dataclasses.replace(still, orientation=motion.orientation, angular_momentum=twist)
        return dataclasses.replace(
            motion,
            position=motion.position + unless_held(bodies, push / bodies.mass),
            orientation=turn(motion.orientation, angular_velocity(turned, bodies)),
        )

    motion = jax.lax.fori_loop(0, iterations, newton, still)
    motion = dataclasses.replace(motion, angular_momentum=momentum_of_rotation(bodies, motion.orientation, spin))
    return without_opening(motion, bodies, jacobian(joints, place(joints, motion), count))
