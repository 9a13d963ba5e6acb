"""Monotone gradient descent with the step length of Barzilai and Borwein."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number
from simkit.molecular.minimizers.protocol import Descent, Minimizer, Scale, clip, dot, energy_change, parabola_minimum


@pytree
class GradientDescentState(Descent):
    """State of gradient descent.

    Attributes:
        rate: displacement per force, in units of 1 / stiffness.
    """

    rate: jax.Array


KEYS = {
    "maximum_displacement": number("longest move of a particle per iteration, in units of the bond", 0.1, (1e-6, 10.0))
}


@part(keys=KEYS)
@arguments(**KEYS)
def gradient_descent(*, maximum_displacement: float = 0.1) -> Minimizer:
    """Return gradient descent, ``x += rate F``.

    With s the last move and y the decrease of the force along it, ``rate = s . s / s . y``, the inverse of the measured
    curvature; if that is negative the rate doubles. A step that raises the energy is rejected and the rate reduced to
    the minimum of the parabola through both energies and the slope. The energy never increases, to the accuracy of
    `energy_change`.

    Args:
        maximum_displacement: largest displacement of a particle per step, in units of length.

    Example:
        >>> descent = molecular.minimizers.gradient_descent()
        >>> scale = molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(80):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]

    Reference: Barzilai and Borwein, IMA J. Numer. Anal. 8, 141 (1988), doi:10.1093/imanum/8.1.141.
    """

    def aim(state: GradientDescentState, scale: Scale) -> GradientDescentState:
        move = clip(state.rate / scale.stiffness * state.force, maximum_displacement * scale.length)
        return dataclasses.replace(state, trial=state.position + move)

    def start(position: jax.Array, energy: jax.Array, force: jax.Array, scale: Scale) -> GradientDescentState:
        return aim(GradientDescentState.begun(position, energy, force, rate=jnp.ones_like(energy)), scale)

    def advance(state: GradientDescentState, energy: jax.Array, force: jax.Array, scale: Scale) -> GradientDescentState:
        move, pull = state.trial - state.position, state.force - force
        change = energy_change(state, energy, force, scale)
        accepted = change <= 0
        work, slope, square = dot(move, pull), dot(state.force, move), dot(move, move)

        # Clipping may have made the move shorter than the rate.
        previous = scale.stiffness * square / jnp.where(slope > 0, slope, 1)
        measured = scale.stiffness * square / jnp.where(work > 0, work, 1)
        rate = jnp.where(
            accepted, jnp.where(work > 0, measured, 2 * previous), parabola_minimum(slope, change) * previous
        )
        # Without a measurable move there is no estimate of the curvature.
        rate = jnp.where((square > 0) & (slope > 0), rate, state.rate / 2)
        return aim(state.tried(accepted, energy, force, rate=rate), scale)

    return Minimizer(start=start, advance=advance, monotone=True, patience=2000)
