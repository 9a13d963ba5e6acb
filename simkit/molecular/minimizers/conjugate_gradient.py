"""Nonlinear conjugate-gradient method of Polak and Ribiere, with line searches by a safeguarded secant."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number
from simkit.molecular.minimizers.protocol import Descent, Minimizer, Scale, dot, energy_change, largest_norm, quotient

# A line search ends when this fraction of the initial slope remains: conjugacy needs fairly exact searches.
REMAINING_SLOPE = 0.2
# Consecutive rejections after which the line search is restarted along the force.
REJECTIONS_BEFORE_RESET = 4


@pytree
class ConjugateGradientState(Descent):
    """State of the conjugate-gradient method.

    Attributes:
        line_force: the force at the start of the current line, (N, d).
        direction: of the current line, (N, d), in units of force.
        step: step length to the trial along ``direction``, in units of 1 / stiffness; negative after an overshoot.
        rejections: int32, consecutive rejected trials.
    """

    line_force: jax.Array
    direction: jax.Array
    step: jax.Array
    rejections: jax.Array


KEYS = {
    "maximum_displacement": number("longest move of a particle per iteration, in units of the bond", 0.2, (1e-6, 10.0))
}


@part(keys=KEYS)
@arguments(**KEYS)
def conjugate_gradient(*, maximum_displacement: float = 0.2) -> Minimizer:
    """Return the nonlinear conjugate-gradient method of Polak and Ribiere.

    Along a line ``x + step D`` the next trial is at the zero of the secant through the last two slopes, until the slope
    has fallen enough. Then ``D' = F' + beta D`` with ``beta = max(0, F' . (F' - F) / F . F)``, F and F' the forces at
    the start of the old and the new line. A trial that raises the energy is rejected and the step shortened. The energy
    never increases, to the accuracy of `energy_change`.

    Args:
        maximum_displacement: largest displacement of a particle per step, in units of length.

    Example:
        >>> descent = molecular.minimizers.conjugate_gradient()
        >>> scale = molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(40):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]

    Reference: Polak and Ribiere, Rev. Fr. Inform. Rech. Oper. 3, 35 (1969), doi:10.1051/m2an/196903R100351; the
    restart by max(0, beta) after Gilbert and Nocedal, SIAM J. Optim. 2, 21 (1992), doi:10.1137/0802003.
    """

    def aim(state: ConjugateGradientState, scale: Scale) -> ConjugateGradientState:
        longest = largest_norm(state.direction) / (scale.stiffness * scale.length)
        furthest = maximum_displacement / jnp.where(longest > 0, longest, 1)
        step = jnp.clip(state.step, -furthest, furthest)
        return dataclasses.replace(state, step=step, trial=state.position + step / scale.stiffness * state.direction)

    def start(position: jax.Array, energy: jax.Array, force: jax.Array, scale: Scale) -> ConjugateGradientState:
        state = ConjugateGradientState.begun(
            position,
            energy,
            force,
            line_force=force,
            direction=force,
            step=jnp.ones_like(energy),
            rejections=jnp.int32(0),
        )
        return aim(state, scale)

    def advance(
        state: ConjugateGradientState, energy: jax.Array, force: jax.Array, scale: Scale
    ) -> ConjugateGradientState:
        direction, step = state.direction, state.step
        accepted = energy_change(state, energy, force, scale) <= 0
        before, after = dot(state.force, direction), dot(force, direction)
        fall = before - after
        # Not where nothing moves, so that no divisor below is zero.
        curved = fall * jnp.sign(step) > 0
        safe_fall = jnp.where(curved, fall, 1)

        # Next step along the same line: to the zero of the secant, or twice the step if the slope did not fall.
        ahead = jnp.where(curved, jnp.clip(step / safe_fall * after, -jnp.abs(step), 4 * jnp.abs(step)), 2 * step)
        shorter = step * jnp.where(curved, jnp.clip(before / safe_fall, 0.1, 0.5), 0.1)
        searched = jnp.abs(after) <= REMAINING_SLOPE * jnp.abs(dot(state.line_force, direction))

        kept = jnp.where(accepted, force, state.force)
        square = dot(state.line_force, state.line_force)
        beta = jnp.maximum(0, quotient(dot(kept, kept - state.line_force), square, 0))
        turned = kept + beta * direction
        turned = jnp.where(dot(turned, kept) > 0, turned, kept)
        # Guess of the curvature along the new line: the curvature along the old one.
        along = jnp.where(curved, fall / jnp.where(curved, step, 1), 0)
        curvature = quotient(along, dot(direction, direction), 0)
        guess = quotient(dot(turned, kept), jnp.where(curvature > 0, curvature, 1) * dot(turned, turned), 1)
        guess = jnp.where((curvature > 0) & jnp.isfinite(guess), guess, 1)

        rejections = jnp.where(accepted, 0, state.rejections + 1)
        # If no step along the line lowers the energy, restart along the force.
        failed = rejections >= REJECTIONS_BEFORE_RESET
        turn = accepted & searched
        force_norm, direction_norm = largest_norm(kept), largest_norm(direction)
        restart = quotient(jnp.abs(shorter) * direction_norm, force_norm, 1)
        return aim(
            state.tried(
                accepted,
                energy,
                force,
                line_force=jnp.where(turn | failed, kept, state.line_force),
                direction=jnp.where(failed, kept, jnp.where(turn, turned, direction)),
                step=jnp.where(failed, restart, jnp.where(turn, guess, jnp.where(accepted, ahead, shorter))),
                rejections=jnp.where(failed, 0, rejections),
            ),
            scale,
        )

    return Minimizer(start=start, advance=advance, monotone=True, patience=500)
