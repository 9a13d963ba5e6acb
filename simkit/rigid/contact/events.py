"""Event-driven hard contact of balls: find the earliest impact, advance all bodies to it, apply its impulse."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_number
from simkit.core.formulation import by_device, computed_once
from simkit.core.implicit import root_change
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.rollout import recomputed, stored
from simkit.core.settings import number, whole
from simkit.core.status import Status
from simkit.rigid.algebra.stages import with_tangents
from simkit.rigid.algebra.vector import dot, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.pairs import check_apart
from simkit.rigid.contact.forces import Impact
from simkit.rigid.contact.timing.candidates import Candidates, candidates, each_ball, index_axis, pick, times
from simkit.rigid.contact.timing.event import after_event, event_of, residual_of
from simkit.rigid.contact.timing.path import path_under
from simkit.rigid.contact.timing.resting import ROUNDINGS, Balls, balls_of, footing, settled
from simkit.rigid.parts import FRICTION, PLANES, RESTITUTION, TIMES
from simkit.rigid.scene import Planes, Setting

KINDS = ("sphere", "disk")


@pytree
class Standing:
    """Memory of `Events`: the resting contacts, and counts.

    Attributes:
        support: index of the plane that each ball rests on, int32 (balls,); -1 for none.
        rolling: whether that contact grips, bool (balls,).
        impacts: number of impacts so far, of balls with planes and with each other, int32.
        overflowed: whether a step ever had more events than its budget, bool.
        counts: number so far of each of the recorded impacts, int32 (recorded,).
        times: of the wanted one of each, in s, (recorded,); zero before.
    """

    support: jax.Array
    rolling: jax.Array
    impacts: jax.Array
    overflowed: jax.Array
    counts: jax.Array
    times: jax.Array


@pytree
class Moment:
    """State at an instant within a step.

    Attributes:
        motion: state of the balls.
        standing: resting contacts and counts.
        left: time to the end of the step in s.
    """

    motion: Motion
    standing: Standing
    left: jax.Array


@part(
    keys={
        "impacts": whole("budget of events per step, ends of slipping included", 8, low=1),
        "reach": number("longest flight, in time steps, of a bounce that is replaced by rest", 1.0, POSITIVE),
    }
)
@dataclasses.dataclass(frozen=True)
class Events:
    """Impacts of spheres and disks with planes and each other, with restitution and Coulomb friction, at exact times.

    Between events every ball follows a polynomial in time (see `simkit.rigid.contact.timing.path.path_under`), exact
    under gravity. The earliest event among all pairs and planes is found without missing any, all bodies advance to
    it, and its impulse acts with the velocities at that time. The time has the derivative of the implicit function
    theorem, so derivatives through impacts are the physical ones, at a fixed sequence of events. Simultaneous contacts
    are resolved as a sequence of impacts.

    A ball whose bounce would last no longer than ``reach`` time steps stays on the plane; friction then takes as much
    from it as during the infinite series of bounces that this replaces. With a restitution of 1 bounces do not decay,
    and each is an event: in a long step they may overflow the budget. On the plane a ball slips until it rolls; a load
    that lifts it or makes it slip again does so from the next event or step on.

    A ball rests on one plane at a time and never on another ball. For a ball pressed into a groove, or two pressed
    together, the times between bounces tend to zero and the budget overflows: that step is not taken.

    Balls must have equal moments of inertia about all axes that they turn about.

    Attributes:
        impacts: budget of events per step, ends of slipping included. Good values: 4 for a ball or two, 32 for the
            break of a rack.
        reach: longest flight, in time steps, of a bounce that is replaced by rest; 1 is good.
        recorded: impacts whose number and time are diagnosed. The time has the derivative of the physics.

    Raises:
        UserError: for a budget or reach out of its range.

    Example:
        >>> drop = rigid.Scene(
        ...     params={"gravity": 10.0, "height": 1.0, "time_step": 0.01},
        ...     bodies=rigid.sphere(1.0, 0.1, restitution=0.8),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, params["height"] * jnp.array([0, 0, 1])),
        ...     dynamics=rigid.Events(impacts=4),
        ...     planes=rigid.floor(),
        ...     loads=(rigid.gravity(),),
        ...     measures=lambda motion, bodies, time, params: {"height": motion.position.z[0]},
        ... )
        >>> height, slope = simkit.value_and_grad(rigid.simulate(drop), "height", objective="height", steps=60)
        >>> print(f"{height:.3f} m, d/dheight {slope['height']:.3f} through the impact")
        0.542 m, d/dheight -0.054 through the impact
    """

    impacts: int = 8
    reach: float = 1.0
    recorded: tuple[Impact, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings out of range before compilation."""
        check_integer("impacts", self.impacts, 1)
        check_number("reach", self.reach)

    @property
    def supports(self) -> frozenset[str]:
        """Return spheres and disks with equal moments of inertia, planes, friction and restitution."""
        return frozenset({*KINDS, PLANES, FRICTION, RESTITUTION, TIMES})

    def start(self, motion: Motion, setting: Setting) -> Standing:
        """Return the resting contacts at the start: balls that touch a plane and do not move along its normal."""
        bodies, planes = setting.bodies, setting.planes
        support = jnp.full_like(bodies.mass, -1, dtype=jnp.int32)
        rounding = ROUNDINGS * jnp.finfo(bodies.mass.dtype).eps
        for index in reversed(range(planes.offset.shape[0])):
            gap = gaps(motion, bodies, planes)[0][index]
            touches = jnp.abs(gap) <= rounding * (norm(motion.position) + bodies.radius)
            still = jnp.abs(dot(motion.velocity, planes.normal[index])) <= rounding * norm(motion.velocity)
            support = jnp.where(touches & still, jnp.int32(index), support)
        zero = jnp.zeros_like(support[0])
        recorded = jnp.zeros((len(self.recorded), *zero.shape), bodies.mass.dtype)
        return Standing(
            support=support,
            rolling=jnp.zeros_like(support, bool),
            impacts=zero,
            overflowed=zero > 0,
            counts=recorded.astype(jnp.int32),
            times=recorded,
        )

    def step(
        self, motion: Motion, memory: Standing, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Standing]:
        """Return the motion and the resting contacts one step later."""
        balls, rows = balls_of(setting.bodies), candidates(setting.bodies.mass.shape[0], setting.planes.offset.shape[0])

        def one_event(moment: Moment, last: jax.Array) -> tuple[Moment, None]:
            @recomputed
            def to_next_event(moment: Moment) -> Moment:
                return self._to_next_event(stored(moment), setting, balls, rows, time, time_step, last)

            # Most steps have no event and end after the first iteration.
            return jax.lax.cond(jnp.any(moment.left > 0), to_next_event, lambda moment: moment, moment), None

        moment = with_tangents(Moment(motion=motion, standing=memory, left=time_step))
        moment, _ = jax.lax.scan(one_event, moment, jnp.arange(self.impacts + 1) == self.impacts)
        return moment.motion, moment.standing

    def diagnose(self, motion: Motion, memory: Standing, setting: Setting) -> dict[str, jax.Array]:
        """Return ``contacts`` (balls that rest on a plane), ``impacts`` so far, and the largest ``penetration``."""
        overlap = [jnp.max(-gap, initial=0) for gap in gaps(motion, setting.bodies, setting.planes)]
        return {
            "contacts": jnp.sum((memory.support >= 0).astype(jnp.int32), axis=0),
            "impacts": memory.impacts,
            "penetration": jnp.maximum(*overlap),
            **{f"{impact.name}.impacts": memory.counts[k] for k, impact in enumerate(self.recorded)},
            **{
                f"{impact.name}.time": jnp.where(memory.counts[k] >= impact.number, memory.times[k], jnp.nan)
                for k, impact in enumerate(self.recorded)
            },
        }

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse balls that overlap at the start.

        Raises:
            UserError: naming the two that overlap most.
        """
        check_apart(setting.bodies, motion, setting.planes)

    def status(self, memory: Standing) -> jax.Array:
        """Return `IMPACT_OVERFLOW` if a step had more events than its budget, else `OK`."""
        return jnp.where(memory.overflowed, jnp.int32(Status.IMPACT_OVERFLOW), jnp.int32(Status.OK))

    def _to_next_event(
        self,
        moment: Moment,
        setting: Setting,
        balls: Balls,
        rows: Candidates,
        time: jax.Array,
        time_step: jax.Array,
        last: jax.Array,
    ) -> Moment:
        """Advance to the next event and apply it, or to the end of the step."""
        planes, standing, left = setting.planes, moment.standing, moment.left
        now = time + (time_step - left)
        plane = pick(index_axis(planes.offset.shape[0], planes.offset)[:, None] == standing.support, each_ball(planes))
        stand = footing(
            moment.motion,
            balls,
            setting.load(moment.motion, now),
            standing.support >= 0,
            standing.rolling,
            plane.normal,
            jnp.maximum(balls.friction, plane.friction),
        )
        # Without the barriers, loops fused across the stages of an event repeat work and take minutes to compile.
        motion, stand = computed_once((settled(moment.motion, balls, stand, plane.offset), stand))
        support = jnp.where(stand.held, standing.support, -1)

        path = computed_once(path_under(setting.load, motion, balls, stand, now, time_step))
        arrivals, exact, rates = by_device(*(path, balls, planes, support, stand, left), cpu=times, accelerator=times)
        index, earliest = jnp.argmin(arrivals, axis=0).astype(jnp.int32), jnp.min(arrivals, axis=0)
        occurs = earliest <= left
        applies = occurs & ~last
        chosen = index_axis(len(rows.kind), arrivals) == index
        # Bodies advance to an event whose time has not converged to round-off, but it is not applied yet.
        event = event_of(rows, index, applies & jnp.any(chosen & exact, axis=0), balls)
        reached = jnp.where(applies, earliest, 0)
        # Stored as residuals: reverse mode does not repeat the search.
        event, reached, rate, occurs, applies = computed_once(
            stored((event, reached, pick(chosen, rates), occurs, applies))
        )
        until = jnp.where(applies, reached, left)
        arrived = computed_once(path.shifted(until))

        def residual(correction: jax.Array, constants: tuple) -> jax.Array:
            path, arrived, until, event, others = constants
            return residual_of(
                event, path.arrival(arrived, until, correction), path.pressing(until + correction), *others
            )

        # The value is zero; its derivatives are those of the time of the event.
        constants = (path, arrived, until, event, (balls, planes, stand))
        correction = root_change(residual, jnp.where(rate < 0, rate, 0), constants)
        correction = computed_once(jnp.where(applies, correction, 0))
        motion, support, rolling = after_event(
            event,
            computed_once(path.arrival(arrived, until, correction)),
            computed_once(path.acceleration.at(path.of_each(until / time_step))),
            balls,
            planes,
            support,
            stand,
            self.reach * time_step,
        )
        counts, times_of = standing.counts, standing.times
        if self.recorded:
            happens = jnp.stack([impact.happens(event) for impact in self.recorded])
            counts = counts + happens.astype(jnp.int32)
            numbers = np.array([impact.number for impact in self.recorded], np.int32)
            wanted = happens & (counts == numbers.reshape(-1, *(1,) * (counts.ndim - 1)))
            times_of = jnp.where(wanted, now + (until + correction), times_of)
        return Moment(
            motion=motion,
            standing=Standing(
                support=support,
                rolling=rolling,
                impacts=standing.impacts + event.is_impact.astype(jnp.int32),
                overflowed=standing.overflowed | (occurs & last & (left > 0)),
                counts=counts,
                times=times_of,
            ),
            left=jnp.where(applies, left - (until + correction), 0),
        )


def gaps(motion: Motion, bodies: Bodies, planes: Planes) -> tuple[jax.Array, jax.Array]:
    """Return the gaps in m of every plane with every ball, (planes, n), and of all pairs of balls, (pairs,).

    Args:
        motion: state of the balls.
        bodies: constants of the n balls.
        planes: the fixed planes.
    """
    first, second = np.triu_indices(bodies.mass.shape[0], 1)
    each = each_ball(planes)
    of_planes = dot(motion.position[None], each.normal) - each.offset - bodies.radius
    apart = norm(motion.position[first] - motion.position[second])
    return of_planes, apart - bodies.radius[first] - bodies.radius[second]
