"""Bodies held together by joints: RATTLE, with all joints solved at once by a fixed number of iterations."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.pytree import pytree
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra.vector import norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.integrators.kick import kick
from simkit.rigid.integrators.velocity_verlet import rotate_freely
from simkit.rigid.joints.checks import check_indices, check_joints
from simkit.rigid.joints.constraints import (
    Jacobian,
    jacobian,
    mobility,
    place,
    rates_of,
    row_count,
    rows_of,
    spread_impulse,
    violations,
)
from simkit.rigid.joints.inverse import generalized_inverse, times_vector
from simkit.rigid.parts import JOINTS, SHAPES, TILTED_DISKS, UNEVEN_SPHERES
from simkit.rigid.scene import Memory, Setting

# What composes a method of some order, as fractions of the step.
_SUZUKI = 1 / (4 - 4 ** (1 / 3))
STAGES = {2: (1.0,), 4: (_SUZUKI, _SUZUKI, 1 - 4 * _SUZUKI, _SUZUKI, _SUZUKI)}


@pytree
class JointMemory:
    """What RATTLE carries from step to step.

    Attributes:
        force: of every row in the first half of the last step, where the next search starts, in N or N m.
        apart: whether the iterations ever ended before the joints were closed.
    """

    force: jax.Array
    apart: jax.Array


@dataclasses.dataclass(frozen=True)
class Jointed:
    """Motion under loads and the joints of a scene, without contact.

    RATTLE (Andersen, J. Comput. Phys. 52, 24 (1983), doi:10.1016/0021-9991(83)90014-1) for rigid bodies: half a kick
    with impulses ``J(x)^T lambda`` such that the joints are closed after the free motion that follows, then half a kick
    with impulses such that no velocity opens them. Second order, symplectic, reversible. Joints hold to round-off,
    so nothing drifts.

    The impulses come from ``lambda <- lambda - (J M^-1 J^T)^+ g / dt``, where g is what the joints lack; each iteration
    divides the error by about ``1 / (dt omega)``, omega the angular velocity. Rows that others imply, as in a planar
    loop of hinges, drop out of the generalized inverse. Derivatives are those of the exact solution, by the
    implicit function theorem, whatever the iterations that led there.

    Order 4 composes five such steps of 0.41, 0.41, -0.66, 0.41 and 0.41 times the length (Suzuki, Phys. Lett. A 146,
    319 (1990), doi:10.1016/0375-9601(90)90962-N), as symplectic and reversible.

    Attributes:
        iterations: of the position solve in every step. Good values: 8; more where dt omega is above 0.02.
        order: 2 or 4, of the error in the time step.

    Raises:
        UserError: if there is not at least one iteration, or no method of that order.
    """

    iterations: int = 8
    order: int = 2

    def __post_init__(self) -> None:
        """Refuse a number of iterations that could not close a joint."""
        if self.iterations < 1:
            raise UserError(f"iterations = {self.iterations} cannot close joints; choose at least 1, 8 say")
        if self.order not in STAGES:
            raise UserError(f"order = {self.order} is not one of a method here; choose 2 or 4")

    @property
    def serves(self) -> frozenset[str]:
        """Return every shape and joint, and nothing that they could touch."""
        return SHAPES | {JOINTS, UNEVEN_SPHERES, TILTED_DISKS}

    def start(self, motion: Motion, setting: Setting) -> Memory:
        """Return that no joint has carried anything yet."""
        like = motion.position.x[0]
        check_indices(setting.joints, motion.position.x.shape[0])
        count = row_count(setting.joints)
        return JointMemory(force=jnp.zeros((count, *like.shape), like.dtype), apart=jnp.zeros(like.shape, bool))

    def step(
        self, motion: Motion, memory: Memory, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Memory]:
        """Return the motion one step later, and the forces that held the joints."""
        if self.order == 2:
            return self._stage(motion, memory, setting, time, time_step)

        def stage(carry, fraction):
            motion, memory, time = carry
            duration = fraction * time_step
            motion, memory = self._stage(motion, memory, setting, time, duration)
            return (motion, memory, time + duration), None

        fractions = jnp.asarray(STAGES[self.order], time_step.dtype)
        return jax.lax.scan(stage, (motion, memory, time), fractions)[0][:2]

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
            pushed = struck(pushed, bodies, rows, impulse)
        moved = drift(pushed, bodies, time_step)
        # A load may depend on velocity. Twice what the first half added gives it to second order.
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
        """Return the largest separation and tilt of joints, and how fast they grow; there are no contacts."""
        del memory
        zero = jnp.zeros_like(motion.position.x[0])
        lacks, growth = {"m": zero, "rad": zero}, {"m": zero, "rad": zero}
        if setting.joints:
            # What is left is round-off, so every program must round alike: nothing is merged with what is around it.
            motion, bodies, joints = computed_once((motion, setting.bodies, setting.joints))
            placed = computed_once(place(joints, motion))
            rows = computed_once(jacobian(joints, placed, motion.position.x.shape[0]))
            lack, rate = computed_once((violations(joints, placed), rates_of(rows, motion, bodies)))
            lack, rate = jnp.abs(lack), jnp.abs(rate)
            start = 0
            for row, places in rows_of(setting.joints):
                unit, some = "rad" if 3 <= row < 6 else "m", slice(start, start + len(places))
                lacks[unit] = jnp.maximum(lacks[unit], jnp.max(lack[some], axis=0))
                growth[unit] = jnp.maximum(growth[unit], jnp.max(rate[some], axis=0))
                start += len(places)
        return {
            "joint_error": lacks["m"],
            "joint_tilt": lacks["rad"],
            "joint_error_rate": growth["m"],
            "joint_tilt_rate": growth["rad"],
        }

    def status(self, memory: Memory) -> jax.Array:
        """Return whether the iterations ever ended before the joints were closed."""
        return jnp.where(memory.apart, jnp.int32(Status.JOINTS_APART), jnp.int32(Status.OK))

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse joints that do not hold at the start.

        Raises:
            UserError: that names the first of them.
        """
        check_joints(setting.joints, motion, setting.bodies)

    def _closing_impulse(
        self,
        motion: Motion,
        pushed: Motion,
        rows: Jacobian,
        guess: jax.Array,
        setting: Setting,
        time_step: jax.Array,
    ) -> jax.Array:
        """Return the impulses after which free motion for a step closes all joints."""
        bodies, joints = setting.bodies, setting.joints
        inverse = generalized_inverse(jax.lax.stop_gradient(mobility(rows, motion, bodies)))
        inverse /= jax.lax.stop_gradient(time_step)

        def lack(impulse: jax.Array) -> jax.Array:
            moved = computed_once(drift(struck(pushed, bodies, rows, impulse), bodies, time_step))
            return violations(joints, computed_once(place(joints, moved)))

        def search(lack, guess):
            return jax.lax.fori_loop(
                0, self.iterations, lambda _, impulse: impulse - times_vector(inverse, lack(impulse)), guess
            )

        def solve_linear(matrix, right):
            # The same iteration, on the derivative of what the joints lack; a scan, which can be transposed.
            def better(impulse, _):
                return impulse + times_vector(inverse, right - matrix(impulse)), None

            return jax.lax.scan(better, jnp.zeros_like(right), None, length=self.iterations)[0]

        return jax.lax.custom_root(lack, jax.lax.stop_gradient(guess), search, solve_linear)


def drift(motion: Motion, bodies: Bodies, time_step: jax.Array) -> Motion:
    """Return bodies after free motion for a time.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        time_step: in s.
    """
    return dataclasses.replace(
        motion,
        position=motion.position + time_step * motion.velocity,
        orientation=rotate_freely(motion.orientation, motion.angular_momentum, bodies.inertia, time_step),
    )


def struck(motion: Motion, bodies: Bodies, rows: Jacobian, impulse: jax.Array) -> Motion:
    """Return bodies after impulses in joints, ``v' = v + M^-1 J^T lambda``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        rows: J.
        impulse: lambda, (rows, ...).
    """
    push, turn = computed_once(spread_impulse(rows, impulse))
    return dataclasses.replace(
        motion,
        velocity=motion.velocity + push / bodies.mass,
        angular_momentum=motion.angular_momentum + turn,
    )


def without_opening(motion: Motion, bodies: Bodies, rows: Jacobian) -> Motion:
    """Return bodies after the impulses that end every velocity in which joints would open.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        rows: J at its positions.
    """
    matrix = mobility(rows, motion, bodies)
    inverse = generalized_inverse(jax.lax.stop_gradient(matrix))

    def solve(apply, right):
        first = times_vector(inverse, right)
        # Once more, so that what is left is round-off of the rates and not of the inverse.
        return first + times_vector(inverse, right - apply(first))

    opening = rates_of(rows, motion, bodies)
    impulse = jax.lax.custom_linear_solve(lambda x: times_vector(matrix, x), opening, solve, symmetric=True)
    return struck(motion, bodies, rows, -impulse)


def is_apart(setting: Setting, motion: Motion) -> jax.Array:
    """Return whether any joint is open by more than half the digits of its place."""
    placed = jax.lax.stop_gradient(place(setting.joints, motion))
    lack = jnp.max(jnp.abs(violations(setting.joints, placed)), axis=0)
    size = jnp.max(norm(placed.lever) + norm(placed.base_lever), axis=0)
    return ~(lack <= jnp.finfo(lack.dtype).eps ** 0.5 * (1 + size))


def _rows(setting: Setting, motion: Motion) -> Jacobian:
    return jacobian(setting.joints, place(setting.joints, motion), motion.position.x.shape[0])
