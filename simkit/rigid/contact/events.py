"""Event-driven hard contact of balls: find the earliest impact, advance all bodies to it, apply its impulse."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.pytree import pytree
from simkit.core.rematerialization import recomputed, stored
from simkit.core.roots import root_change
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra.stages import with_tangents
from simkit.rigid.algebra.vector import dot, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.overlap import check_apart
from simkit.rigid.contact.timing.balls import Balls, balls_of
from simkit.rigid.contact.timing.candidates import Candidates, candidates, each_ball, pick, places, times
from simkit.rigid.contact.timing.event import after_event, event_of, residual_of
from simkit.rigid.contact.timing.path import path_under
from simkit.rigid.contact.timing.resting import ROUNDINGS, footing, settled
from simkit.rigid.parts import FRICTION, PLANES, RESTITUTION
from simkit.rigid.scene import Planes, Setting

KINDS = ("sphere", "disk")


@pytree
class Standing:
    """What is carried from step to step.

    Attributes:
        support: index of the plane that each ball rests on, -1 for none.
        rolling: whether its contact grips.
        impacts: so far, of balls with planes and with each other.
        overflowed: whether the budget of a step was ever too small.
    """

    support: jax.Array
    rolling: jax.Array
    impacts: jax.Array
    overflowed: jax.Array


@pytree
class Moment:
    """A moment within a step.

    Attributes:
        motion: state of the balls.
        standing: what is carried on.
        left: time to the end of the step in s.
    """

    motion: Motion
    standing: Standing
    left: jax.Array


@dataclasses.dataclass(frozen=True)
class Events:
    """Spheres and disks that hit planes and each other, with restitution and Coulomb friction, at exact times.

    Between events every ball follows a polynomial in time (see `simkit.rigid.contact.timing.path.path_under`), exact
    under gravity. The first event among all pairs and planes is found without stepping over any, all bodies advance to
    it, and its impulse acts with the velocities at that moment. Its time has the derivative of the implicit function
    theorem, so derivatives through impacts are the physical ones: those at a fixed sequence of events. Contacts at the
    same time are followed as a sequence of impacts.

    A ball whose bounce would last no longer than ``reach`` time steps stays on the plane; friction then takes from it
    what it would take during the endless bounces it stands for. With a restitution of 1 bounces have no end, and each
    is followed: in a long step they may overflow the budget. On the plane a ball slips until it rolls, and may be hit,
    lifted, or made to slip again by its load, which is noticed at the next event or step.

    A ball rests on one plane at a time and never on another ball. Where one is pressed into a groove, or two are
    pressed together, bounces follow ever faster and the budget overflows: the scene is held before that step.

    Balls have the same moment of inertia about every axis that they turn about: solid or hollow, not uneven.

    Attributes:
        impacts: events that one step may hold, ends of slipping included. Good values: 4 for a ball or two, 32 for
            the break of a rack.
        reach: longest flight, in time steps, of a bounce that ends in rest; 1 is good.

    Raises:
        UserError: for a budget or reach out of its range.
    """

    impacts: int = 8
    reach: float = 1.0

    def __post_init__(self) -> None:
        """Refuse settings out of range before compilation."""
        if not (isinstance(self.impacts, int) and self.impacts >= 1):
            raise UserError(f"impacts = {self.impacts!r} is not a whole number above 0; choose 4 for a ball or two")
        if not self.reach > 0:
            raise UserError(f"reach = {self.reach!r} is not positive; choose 1, or less to follow smaller bounces")

    @property
    def serves(self) -> frozenset[str]:
        """Return spheres and disks of even density, and all that they touch."""
        return frozenset({*KINDS, PLANES, FRICTION, RESTITUTION})

    def start(self, motion: Motion, setting: Setting) -> Standing:
        """Return the balls at rest on a plane at the start: those that touch it and do not move along its normal."""
        bodies, planes = setting.bodies, setting.planes
        support = jnp.full_like(bodies.mass, -1, dtype=jnp.int32)
        rounding = ROUNDINGS * jnp.finfo(bodies.mass.dtype).eps
        for index in reversed(range(planes.offset.shape[0])):
            gap = gaps(motion, bodies, planes)[0][index]
            touches = jnp.abs(gap) <= rounding * (norm(motion.position) + bodies.radius)
            still = jnp.abs(dot(motion.velocity, planes.normal[index])) <= rounding * norm(motion.velocity)
            support = jnp.where(touches & still, jnp.int32(index), support)
        none = jnp.zeros_like(support[0])
        return Standing(support=support, rolling=support < -1, impacts=none, overflowed=none > 0)

    def step(
        self, motion: Motion, memory: Standing, setting: Setting, time: jax.Array, time_step: jax.Array
    ) -> tuple[Motion, Standing]:
        """Return the motion and the resting contacts one step later."""
        balls, rows = balls_of(setting.bodies), candidates(setting.bodies.mass.shape[0], setting.planes.offset.shape[0])

        def onward(moment: Moment, last: jax.Array) -> tuple[Moment, None]:
            @recomputed
            def go(moment: Moment) -> Moment:
                return self._onward(stored(moment), setting, balls, rows, time, time_step, last)

            # Most steps have no event, and end after the first segment.
            return jax.lax.cond(jnp.any(moment.left > 0), go, lambda moment: moment, moment), None

        moment = with_tangents(Moment(motion=motion, standing=memory, left=time_step))
        moment, _ = jax.lax.scan(onward, moment, jnp.arange(self.impacts + 1) == self.impacts)
        return moment.motion, moment.standing

    def diagnose(self, motion: Motion, memory: Standing, setting: Setting) -> dict[str, jax.Array]:
        """Return ``contacts``, how many balls rest on a plane, ``impacts`` so far, and the largest ``penetration``."""
        overlap = [jnp.max(-gap, initial=0) for gap in gaps(motion, setting.bodies, setting.planes)]
        return {
            "contacts": jnp.sum((memory.support >= 0).astype(jnp.int32), axis=0),
            "impacts": memory.impacts,
            "penetration": jnp.maximum(*overlap),
        }

    def check(self, motion: Motion, setting: Setting) -> None:
        """Refuse balls that overlap at the start.

        Raises:
            UserError: that names them.
        """
        check_apart(setting.bodies, motion, setting.planes)

    def status(self, memory: Standing) -> jax.Array:
        """Return whether the step held more events than its budget."""
        return jnp.where(memory.overflowed, jnp.int32(Status.IMPACT_OVERFLOW), jnp.int32(Status.OK))

    def _onward(
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
        plane = pick(places(planes.offset.shape[0], planes.offset)[:, None] == standing.support, each_ball(planes))
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
        found, exact, rates = times(path, balls, planes, support, stand, left)
        index, earliest = jnp.argmin(found, axis=0).astype(jnp.int32), jnp.min(found, axis=0)
        comes = earliest <= left
        happens = comes & ~last
        chosen = places(len(rows.kind), found) == index
        # An event whose time is not yet known to round-off is approached, not applied.
        event = event_of(rows, index, happens & jnp.any(chosen & exact, axis=0), balls)
        reached = jnp.where(happens, earliest, 0)
        # The result of the search is stored as a residual, so that reverse mode does not repeat the search.
        event, reached, rate, comes, happens = computed_once(
            stored((event, reached, pick(chosen, rates), comes, happens))
        )
        until = jnp.where(happens, reached, left)
        arrived = computed_once(path.shifted(until))

        def remaining(late: jax.Array, given: tuple) -> jax.Array:
            path, arrived, until, event, others = given
            return residual_of(event, path.arrival(arrived, until, late), path.pressing(until + late), *others)

        # Zero, with the derivatives of the time of the event.
        given = (path, arrived, until, event, (balls, planes, stand))
        late = root_change(remaining, jnp.where(rate < 0, rate, 0), given)
        late = computed_once(jnp.where(happens, late, 0))
        motion, support, rolling = after_event(
            event,
            computed_once(path.arrival(arrived, until, late)),
            computed_once(path.acceleration.at(path.of_each(until / time_step))),
            balls,
            planes,
            support,
            stand,
            self.reach * time_step,
        )
        return Moment(
            motion=motion,
            standing=Standing(
                support=support,
                rolling=rolling,
                impacts=standing.impacts + event.is_impact.astype(jnp.int32),
                overflowed=standing.overflowed | (comes & last & (left > 0)),
            ),
            left=jnp.where(happens, left - (until + late), 0),
        )


def gaps(motion: Motion, bodies: Bodies, planes: Planes) -> tuple[jax.Array, jax.Array]:
    """Return the gaps in m of every plane with every ball, (planes, n), and of all pairs of balls.

    Args:
        motion: state of the balls.
        bodies: the balls.
        planes: the fixed planes.
    """
    first, second = np.triu_indices(bodies.mass.shape[0], 1)
    each = each_ball(planes)
    of_planes = dot(motion.position[None], each.normal) - each.offset - bodies.radius
    apart = norm(motion.position[first] - motion.position[second])
    return of_planes, apart - bodies.radius[first] - bodies.radius[second]
