"""Additive Runge-Kutta step: explicit for the slow part, implicit for the stiff part."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

type Slopes = tuple[jax.Array, jax.Array]

GAMMA = 1767732205903 / 4055673282236
WEIGHTS = (1471266399579 / 7840856788654, -4482444167858 / 7529755066697, 11266239266428 / 11593286722821, GAMMA)
EXPLICIT = (
    (0.0, 0.0, 0.0, 0.0),
    (2 * GAMMA, 0.0, 0.0, 0.0),
    (5535828885825 / 10492691773637, 788022342437 / 10882634858940, 0.0, 0.0),
    (6485989280629 / 16251701735622, -4246266847089 / 9704473918619, 10755448449292 / 10357097424841, 0.0),
)
IMPLICIT = (
    (0.0, 0.0, 0.0, 0.0),
    (GAMMA, GAMMA, 0.0, 0.0),
    (2746238789719 / 10658868560708, -640167445237 / 6845629431997, GAMMA, 0.0),
    WEIGHTS,
)


def additive_runge_kutta(
    rate: Callable[[jax.Array], jax.Array], values: jax.Array, stiffness: jax.Array, time_step: jax.Array
) -> jax.Array:
    """Return ``values`` one time step later.

        dq/dt = rate(q) - stiffness q

    ``rate`` is evaluated four times, explicitly; the damping is implicit and may be arbitrarily stiff. Of third order
    in both parts; steady solutions are preserved exactly. Stable for oscillations ``rate = i omega q`` up to
    ``omega dt = 2.48``.

    Args:
        rate: the slow part.
        values: q, any shape.
        stiffness: not negative, broadcast to the shape of ``values``.
        time_step: dt.

    Reference: ARK3(2)4L[2]SA of Kennedy and Carpenter, Appl. Numer. Math. 44, 139 (2003),
    doi:10.1016/S0168-9274(02)00138-1.
    """
    explicit, implicit, weights = (np.asarray(table, dtype=values.dtype) for table in (EXPLICIT, IMPLICIT, WEIGHTS))
    known, diagonal = np.tril(implicit, -1), np.diag(implicit)

    def stage(slopes: Slopes, row: tuple[jax.Array, ...]) -> tuple[Slopes, None]:
        slow, damping = slopes
        index, of_slow, of_damping, own = row
        change = _combine(of_slow, slow) + _combine(of_damping, damping)
        here = (values + time_step * change) / (1 + time_step * own * stiffness)
        return (slow.at[index].set(rate(here)), damping.at[index].set(-stiffness * here)), None

    nothing = jnp.zeros((len(weights), *values.shape), values.dtype)
    rows = tuple(jnp.asarray(column) for column in (np.arange(len(weights)), explicit, known, diagonal))
    (slow, damping), _ = jax.lax.scan(stage, (nothing, nothing), rows)
    return values + time_step * _combine(weights, slow + damping)


def _combine(weights: jax.Array | np.ndarray, slopes: jax.Array) -> jax.Array:
    return jnp.tensordot(weights, slopes, 1, precision=jax.lax.Precision.HIGHEST)
