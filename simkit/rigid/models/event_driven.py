"""The engine ``"simkit"`` with ``events``: mechanisms in joint coordinates with impacts at their exact times."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, Parameter
from simkit.core.settings import declared, number, whole, word
from simkit.core.simulation import Arrays, Params
from simkit.core.status import Status
from simkit.rigid.articulated import events
from simkit.rigid.articulated.events import Mechanism, Stance
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, supporting


@dataclasses.dataclass(frozen=True)
class Rules:
    """Rules of contact at exact times, keys of the table ``events``, see `simkit.rigid.articulated.events.Mechanism`.

    Attributes:
        budget: events per time step.
        least_step: distance in m from every standing point within which no other point meets a surface.
        impact_law: ``"newton"`` or ``"poisson"``.
    """

    budget: int = declared(whole("events per time step", 8, low=1))
    least_step: float = declared(
        number(
            "distance in m from every standing point within which no other meets a surface, so that legs without knees "
            "may scuff",
            0.0,
            NOT_NEGATIVE,
        )
    )
    impact_law: str = declared(word("law of restitution", ("newton", "poisson"), "newton"))


def event_driven(engine: Engine, mechanism: Mechanism, description: Description) -> Engine:
    """Return the engine of joint coordinates with events in place of impulses at whole steps.

    Args:
        engine: in joint coordinates.
        mechanism: the same model, with the rules of its events.
        description: of the model.

    Raises:
        UserError: if the model has a part that has no rule at exact times.
    """
    constraints = mechanism.constraints
    lacking = {
        "friction in joints (frictionloss)": len(constraints.rubbing),
        "torsional and rolling friction (condim 4 and 6)": len(constraints.contacts.twisting),
        "cylinders that touch planes": len(constraints.contacts.rim),
        "sensors of accelerations and forces": any(sensor.feels for sensor in engine.sensors),
    }
    with supporting("simkit with events", lacking):
        pass
    idle = jnp.asarray(description.control)

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> Stance:
        control = params.get("control", idle)
        return events.start(mechanism, params, position, velocity, jnp.asarray(control, velocity.dtype))

    def advance(params: Params, memory: Stance, controls: jax.Array) -> Stance:
        def step(now: Stance, control: jax.Array) -> tuple[Stance, None]:
            return events.advance(mechanism, params, now, control), None

        return jax.lax.scan(step, memory, controls)[0]

    def contacts(params: Params, memory: Stance) -> tuple[jax.Array, jax.Array]:
        count = mechanism.constraints.sizes[0]
        gap = events.gaps(mechanism, memory)[:count]
        return jnp.sum(memory.standing[:count], dtype=jnp.int32), jnp.maximum(-jnp.min(gap, initial=0), 0)

    def status(memory: Stance) -> jax.Array:
        code = jnp.where(memory.slipped, jnp.int32(Status.STANCE_SLIPS), jnp.int32(Status.OK))
        code = jnp.where(memory.unsolved, jnp.int32(Status.CONTACT_MISSED), code)
        return jnp.where(memory.overflowed, jnp.int32(Status.IMPACT_OVERFLOW), code)

    def observe(params: Params, memory: Stance) -> Arrays:
        return {"impact_position": memory.struck_position, "impact_velocity": memory.struck_velocity}

    def measures(params: Params, memory: Stance) -> Arrays:
        return {"impacts": memory.impacts, "impact_period": memory.period, "friction_used": memory.friction}

    slope = Parameter(0.0, unit="rad", doc="by which gravity is turned about the axis y, so that x points downhill")
    return dataclasses.replace(
        engine,
        start=start,
        advance=advance,
        coordinates=lambda memory: (memory.position, memory.velocity),
        contacts=contacts,
        touches=False,
        parameters={**engine.parameters, "slope": slope},
        members_last=False,
        status=status,
        residual=None,
        observe=observe,
        measures=measures,
    )
