"""Implicit derivatives: linear solvers for symmetric operators (CG, MINRES), and roots of scalar equations."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.flatten_util import ravel_pytree
from jax.interpreters import ad, batching, mlir

from simkit.core.formulation import precise_product


def solve_symmetric(
    matvec: Callable[[Any], Any], b: Any, project: Callable[[Any], Any], *, is_definite: bool = True
) -> Any:
    """Solve ``A x = b`` on the complement of the zero modes that ``project`` removes.

    By conjugate gradients, which need A positive definite on that complement: the solution is NaN if a direction of
    zero or negative curvature occurs, or the residual stays above round-off. An indefinite A, as at a saddle, is solved
    by the minimal residual method: NaN only if A is singular along b. Differentiable, forward and reverse.

    Args:
        matvec: ``x -> A x``, linear and symmetric.
        b: right-hand side, a pytree of float arrays; its component along the zero modes is ignored.
        project: ``x -> x``, orthogonal projection that removes the zero modes.
        is_definite: whether A must be positive definite on the complement.

    Returns:
        x, like ``b``, without a component along the zero modes.
    """

    def regular(x: Any) -> Any:
        inside = project(x)
        # The identity on the zero modes makes the operator definite without changing the rest of the spectrum.
        return jax.tree.map(lambda a, x, i: a + (x - i), project(matvec(inside)), x, inside)

    solve = _conjugate_gradients if is_definite else _minimal_residual
    return jax.lax.custom_linear_solve(regular, project(b), solve, symmetric=True)


def preconditioned(
    matvec: Callable[[jax.Array], jax.Array],
    b: jax.Array,
    precondition: Callable[[jax.Array], jax.Array],
    wanted: jax.Array,
) -> jax.Array:
    """Solve ``A x = b`` by preconditioned conjugate gradients where requested; not differentiable.

    Args:
        matvec: ``x -> A x``, symmetric and positive definite.
        b: (n,).
        precondition: ``r -> x``, approximate inverse of A, symmetric and positive definite.
        wanted: whether to solve; if False, no product with A is computed.

    Returns:
        x, (n,); NaN if the residual stays above round-off; zero if not ``wanted``.

    Reference: Hestenes and Stiefel, J. Res. NBS 49, 409 (1952), doi:10.6028/jres.049.044.
    """
    tolerance = jnp.finfo(b.dtype).eps ** 0.75 * jnp.linalg.norm(b)

    def unfinished(carry: tuple[jax.Array, ...]) -> jax.Array:
        _, residual, _, _, iterations = carry
        return wanted & (jnp.linalg.norm(residual) > tolerance) & (iterations < 10 * b.size)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, residual, direction, product, iterations = carry
        image = matvec(direction)
        alpha = product / precise_product(direction, image)
        x, residual = x + alpha * direction, residual - alpha * image
        improved = precondition(residual)
        next_product = precise_product(residual, improved)
        return x, residual, improved + next_product / product * direction, next_product, iterations + 1

    first = precondition(b)
    start = (jnp.zeros_like(b), b, first, precise_product(b, first), jnp.int32(0))
    x, residual, *_ = jax.lax.while_loop(unfinished, step, start)
    return jnp.where(wanted & ~(jnp.linalg.norm(residual) <= tolerance), jnp.nan, x)


def _conjugate_gradients(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve ``A x = b`` for a positive definite ``A``; NaN if a direction of zero or negative curvature occurs.

    Hestenes and Stiefel, J. Res. NBS 49, 409 (1952), doi:10.6028/jres.049.044.
    """
    flat, unflatten = ravel_pytree(b)
    # Far below the accuracy required of a derivative (1e-5), far above the round-off of the residual.
    tolerance = jnp.finfo(flat.dtype).eps ** 0.75 * jnp.linalg.norm(flat)

    def apply(x: jax.Array) -> jax.Array:
        return ravel_pytree(matvec(unflatten(x)))[0]

    def unfinished(carry: tuple[jax.Array, ...]) -> jax.Array:
        _, _, _, square, iterations, definite = carry
        return (jnp.sqrt(square) > tolerance) & definite & (iterations < 10 * flat.size)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, residual, direction, square, iterations, definite = carry
        image = apply(direction)
        curvature = precise_product(direction, image)
        alpha = square / curvature
        x, residual = x + alpha * direction, residual - alpha * image
        next_square = precise_product(residual, residual)
        direction = residual + next_square / square * direction
        return x, residual, direction, next_square, iterations + 1, definite & (curvature > 0)

    start = (jnp.zeros_like(flat), flat, flat, precise_product(flat, flat), jnp.int32(0), jnp.bool_(True))
    x, _, _, square, _, definite = jax.lax.while_loop(unfinished, step, start)
    # The residual above is updated recursively. If ``project`` leaves a zero mode in, round-off may give it a small
    # positive curvature, and x becomes 1/eps times too large: only the true residual shows that.
    true_residual = jnp.linalg.norm(flat - apply(x))
    exact = true_residual <= jnp.sqrt(jnp.finfo(flat.dtype).eps) * jnp.linalg.norm(flat)
    solved = definite & (jnp.sqrt(square) <= tolerance) & exact
    return unflatten(jnp.where(solved, x, jnp.nan))


# Solves by MINRES: the second, for the residual of the first, removes what lost orthogonality leaves.
REFINEMENTS = 2


def _minimal_residual(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve ``A x = b`` for a symmetric ``A`` of any signature; NaN if the residual stays above round-off.

    Paige and Saunders, SIAM J. Numer. Anal. 12, 617 (1975), doi:10.1137/0712047 (MINRES).
    """
    flat, unflatten = ravel_pytree(b)
    epsilon = jnp.finfo(flat.dtype).eps
    # As for conjugate gradients.
    tolerance = epsilon**0.75 * jnp.linalg.norm(flat)

    def apply(x: jax.Array) -> jax.Array:
        return ravel_pytree(matvec(unflatten(x)))[0]

    def unfinished(carry: tuple[jax.Array, ...]) -> jax.Array:
        *_, residual, iterations = carry
        return (residual > tolerance) & (iterations < 5 * flat.size)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, before, now, norms, directions, rotation, residual, iterations = carry
        # Lanczos: the next vector that is orthogonal to both before it, and the entries of the tridiagonal matrix.
        unit = now / norms[1]
        image = apply(unit) - jnp.where(iterations > 0, norms[1] / norms[0], 0) * before
        diagonal = precise_product(unit, image)
        image = image - diagonal / norms[1] * now
        norm = jnp.linalg.norm(image)
        # Givens rotation that keeps the matrix triangular; the residual shrinks by its sine.
        cosine, sine, carried, far = rotation
        second, last = cosine * carried + sine * diagonal, sine * carried - cosine * diagonal
        pivot = jnp.maximum(jnp.hypot(last, norm), jnp.finfo(flat.dtype).tiny)
        direction = (unit - far * directions[0] - second * directions[1]) / pivot
        turned = last / pivot, norm / pivot
        x = x + turned[0] * residual * direction
        return (
            x,
            now,
            image,
            jnp.stack([norms[1], norm]),
            jnp.stack([directions[1], direction]),
            jnp.stack([*turned, -cosine * norm, sine * norm]),
            turned[1] * residual,
            iterations + 1,
        )

    def refined(_: int, x: jax.Array) -> jax.Array:
        left = flat - apply(x)
        norm, zero = jnp.linalg.norm(left), jnp.zeros_like(flat)
        rotation = jnp.asarray([-1, 0, 0, 0], flat.dtype)
        start = zero, zero, left, jnp.stack([norm, norm]), jnp.stack([zero, zero]), rotation, norm, jnp.int32(0)
        return x + jax.lax.while_loop(unfinished, step, start)[0]

    x = jax.lax.fori_loop(0, REFINEMENTS, refined, jnp.zeros_like(flat))
    solved = jnp.linalg.norm(flat - apply(x)) <= jnp.sqrt(epsilon) * jnp.linalg.norm(flat)
    return unflatten(jnp.where(solved, x, jnp.nan))


def root_change[T](gap: Callable[[jax.Array, T], jax.Array], rate: jax.Array, surroundings: T) -> jax.Array:
    """Return z = 0 with the derivatives of the root of ``gap(z, surroundings) = 0`` with respect to ``surroundings``.

    A root t of g(t) = 0 is found by any search, without derivatives; t + z has its derivatives if
    ``gap(z) = g(t + z)``. A program without derivatives evaluates neither ``gap`` nor its rate.

        dz = -dgap / gap'(z), where z has its derivatives in turn

    Args:
        gap: elementwise; zero at z = 0 up to round-off. It depends on no other arrays than its arguments.
        rate: gap'(0) from the search, which may be more accurate than evaluating it again; zero where the derivative
            shall be zero, such as at a double root.
        surroundings: pytree of all arrays that ``gap`` depends on.
    """
    arrays, tree = jax.tree.flatten(surroundings)
    return _change().bind(rate, *arrays, gap=lambda z, *arrays: gap(z, jax.tree.unflatten(tree, arrays)))


@functools.cache
def _change() -> Any:
    """Return the JAX primitive; `jax.custom_jvp` fails for an unbatched z with batched derivatives (JAX 0.12)."""

    def zero(rate: jax.Array, *arrays: jax.Array, gap: Any) -> jax.Array:
        return jnp.zeros_like(rate)

    def differentiate(primals: Any, tangents: Any, *, gap: Any) -> tuple[jax.Array, jax.Array]:
        rate, *arrays = primals
        z = change.bind(rate, *arrays, gap=gap)
        varying = {n: tangent for n, tangent in enumerate(tangents[1:]) if not isinstance(tangent, ad.Zero)}

        def gap_of(values: list[jax.Array]) -> jax.Array:
            replaced = dict(zip(varying, values, strict=True))
            return gap(z, *(replaced.get(n, array) for n, array in enumerate(arrays)))

        _, gap_tangent = jax.jvp(gap_of, ([arrays[n] for n in varying],), (list(varying.values()),))
        _, slope = jax.jvp(lambda z: gap(z, *arrays), (z,), (jnp.ones_like(z),))
        slope = jnp.where(rate != 0, rate, 1) + _zero_with_derivatives(slope)
        return z, jnp.where(rate != 0, -gap_tangent / slope, 0)

    def batch(values: Any, axes: Any, *, gap: Any) -> tuple[jax.Array, int]:
        count = next(value.shape[axis] for value, axis in zip(values, axes, strict=True) if axis is not None)
        rate, *arrays = (
            value if axis is None else jnp.moveaxis(value, axis, 0) for value, axis in zip(values, axes, strict=True)
        )
        if axes[0] is None:
            rate = jnp.broadcast_to(rate, (count, *rate.shape))
        gap_of_batch = jax.vmap(gap, (0, *(None if axis is None else 0 for axis in axes[1:])))
        return change.bind(rate, *arrays, gap=gap_of_batch), 0

    change = Primitive("root_change")
    change.def_impl(zero)
    change.def_abstract_eval(lambda rate, *arrays, gap: rate)
    mlir.register_lowering(change, mlir.lower_fun(zero, multiple_results=False))
    ad.primitive_jvps[change] = differentiate
    batching.primitive_batchers[change] = batch
    return change


@jax.custom_jvp
def _zero_with_derivatives(value: jax.Array) -> jax.Array:
    """Return zero, with the derivatives of a value."""
    # The zeros depend on the value so that they are batched with it: batched derivatives of an unbatched zero fail
    # (JAX 0.12).
    return jnp.where(value == 0, 0, jnp.zeros_like(value))


_zero_with_derivatives.defjvp(lambda values, tangents: (_zero_with_derivatives(values[0]), tangents[0]))
