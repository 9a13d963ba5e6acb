"""Monotone L-BFGS (limited-memory quasi-Newton) with a trust length."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, number, whole
from simkit.molecular.minimizers.protocol import (
    Descent,
    Minimizer,
    Scale,
    clip,
    dot,
    energy_change,
    largest_norm,
    parabola_minimum,
    quotient,
)

# Consecutive rejections after which the memory is cleared.
REJECTIONS_BEFORE_RESET = 4


@pytree
class LbfgsState(Descent):
    """State of L-BFGS.

    Attributes:
        moves: the last accepted moves, newest first, (memory, N, d).
        pulls: decrease of the force along each move, (memory, N, d).
        move_pull: products of every move with every pull, (memory, memory); zero for unused entries.
        pull_pull: products of every pull with every pull, (memory, memory).
        trust: largest displacement of a particle in the next step, in units of length.
        rejections: int32, consecutive rejected trials.
    """

    moves: jax.Array
    pulls: jax.Array
    move_pull: jax.Array
    pull_pull: jax.Array
    trust: jax.Array
    rejections: jax.Array


KEYS = {
    "memory": whole("pairs of moves and changes of force kept", 8, low=1, high=100),
    "maximum_displacement": number("longest move of a particle per iteration, in units of the bond", 0.2, (1e-6, 10.0)),
}


@part(keys=KEYS)
@arguments(**KEYS)
def lbfgs(*, memory: int = 8, maximum_displacement: float = 0.2) -> Minimizer:
    """Return the limited-memory BFGS method.

    The step is ``H F``, with H the inverse Hessian estimated from the last ``memory`` moves, shortened so that no
    particle moves further than the trust length. A step that raises the energy is rejected and the trust length reduced
    to the minimum of the parabola through both energies and the slope; it doubles after accepted steps. After several
    consecutive rejections the memory is cleared. The energy never increases, to the accuracy of `energy_change`.

    Args:
        memory: number of stored moves. Good values: 4 to 20; more costs time, and saves few evaluations.
        maximum_displacement: largest displacement of a particle per step, in units of length.

    Example:
        >>> descent = molecular.minimizers.lbfgs(memory=4)
        >>> scale = molecular.minimizers.Scale(length=1.0, stiffness=1.0)
        >>> evaluate = lambda x: (jnp.sum((x - 3) ** 2) / 2, 3 - x)
        >>> state = molecular.minimizers.start(descent, jnp.zeros((1, 2)), evaluate, scale)
        >>> for _ in range(25):
        ...     state = molecular.minimizers.step(descent, state, evaluate, scale)
        >>> print(np.round(state.position, 2))
        [[3. 3.]]

    Reference: Liu and Nocedal, Math. Program. 45, 503 (1989), doi:10.1007/BF01589116; step control after Asenjo,
    Stevenson, Wales, Frenkel, J. Phys. Chem. B 117, 12717 (2013), doi:10.1021/jp312457a.
    """

    def aim(state: LbfgsState, scale: Scale) -> LbfgsState:
        direction = _direction(state, scale)
        # An indefinite H may give an uphill direction; the opposite one is downhill.
        direction = jnp.where(dot(direction, state.force) < 0, -direction, direction)
        return dataclasses.replace(state, trial=state.position + clip(direction, state.trust * scale.length))

    def start(position: jax.Array, energy: jax.Array, force: jax.Array, scale: Scale) -> LbfgsState:
        state = LbfgsState.begun(
            position,
            energy,
            force,
            moves=jnp.zeros((memory, *position.shape), position.dtype),
            pulls=jnp.zeros((memory, *position.shape), position.dtype),
            move_pull=jnp.zeros((memory, memory), position.dtype),
            pull_pull=jnp.zeros((memory, memory), position.dtype),
            trust=jnp.asarray(maximum_displacement, position.dtype),
            rejections=jnp.int32(0),
        )
        return aim(state, scale)

    def advance(state: LbfgsState, energy: jax.Array, force: jax.Array, scale: Scale) -> LbfgsState:
        move, pull = state.trial - state.position, state.force - force
        change = energy_change(state, energy, force, scale)
        accepted = change <= 0
        longest = largest_norm(move) / scale.length

        fraction = parabola_minimum(dot(state.force, move), change)
        rejections = jnp.where(accepted, 0, state.rejections + 1)
        recovered = jnp.minimum(2 * jnp.maximum(state.trust, longest), maximum_displacement)
        is_reset = rejections >= REJECTIONS_BEFORE_RESET

        work = dot(move, pull)
        is_stored = accepted & (work > 0)

        moves = jnp.where(is_stored, jnp.concatenate([move[None], state.moves[:-1]]), state.moves)
        pulls = jnp.where(is_stored, jnp.concatenate([pull[None], state.pulls[:-1]]), state.pulls)

        def push(old: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
            rest = jnp.concatenate([column[1:, None], old[:-1, :-1]], axis=1)
            pushed = jnp.where(is_stored, jnp.concatenate([row[None], rest]), old)
            return jnp.where(is_reset, 0, pushed)

        with_pull = _dots(pulls, pull)
        return aim(
            state.tried(
                accepted,
                energy,
                force,
                moves=moves,
                pulls=pulls,
                move_pull=push(state.move_pull, _dots(pulls, move), _dots(moves, pull)),
                pull_pull=push(state.pull_pull, with_pull, with_pull),
                trust=jnp.where(accepted, recovered, fraction * longest),
                rejections=jnp.where(is_reset, 0, rejections),
            ),
            scale,
        )

    return Minimizer(start=start, advance=advance, monotone=True, patience=100)


def _direction(state: LbfgsState, scale: Scale) -> jax.Array:
    """Return the product of the estimated inverse Hessian and the force, (N, d).

    The two-loop recursion of Nocedal, Math. Comput. 35, 773 (1980), doi:10.1090/S0025-5718-1980-0572855-7, on the
    products of the stored vectors instead of on the vectors.
    """
    memory = len(state.moves)
    work = jnp.diagonal(state.move_pull)
    inverse_work = quotient(1, work, 0)
    # Initial Hessian of the recursion: a multiple of the identity, the curvature along the newest move.
    newest = inverse_work[0] * state.pull_pull[0, 0]
    stiffness = jnp.where(newest > 0, newest, scale.stiffness)

    along_moves = _dots(state.moves, state.force)
    fallen = jnp.zeros(memory, state.force.dtype)
    for new in range(memory):
        left = along_moves[new] - jnp.sum(state.move_pull[new] * fallen)
        fallen = fallen.at[new].set(inverse_work[new] * left)
    along_pulls = (_dots(state.pulls, state.force) - jnp.sum(state.pull_pull * fallen, axis=1)) / stiffness
    gained = jnp.zeros(memory, state.force.dtype)
    for old in reversed(range(memory)):
        left = along_pulls[old] + jnp.sum(state.move_pull[:, old] * gained)
        gained = gained.at[old].set(fallen[old] - inverse_work[old] * left)
    return state.force / stiffness + _sum(gained, state.moves) - _sum(fallen / stiffness, state.pulls)


def _dots(vectors: jax.Array, vector: jax.Array) -> jax.Array:
    """Return the products of (memory, N, d) vectors with one (N, d) vector, (memory,)."""
    return jnp.einsum("mnd,nd->m", vectors, vector, precision="highest")


def _sum(weights: jax.Array, vectors: jax.Array) -> jax.Array:
    """Return the weighted sum, (N, d), of (memory, N, d) vectors."""
    return jnp.einsum("m,mnd->nd", weights, vectors, precision="highest")
