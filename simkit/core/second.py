"""Second derivatives of objectives: Hessians, and Hessian-vector products without the matrix."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from simkit.core import paths
from simkit.core.arguments import check_shape
from simkit.core.bounded import Bounds
from simkit.core.gradient import (
    Difference,
    Function,
    Mode,
    check_mode,
    chosen_of,
    differences,
    goes_forward,
    with_derivative,
)
from simkit.core.simulation import Arrays, Params
from simkit.errors import UserError


def hessian_vector_product(
    objective: Function, wrt: str | Sequence[str]
) -> Callable[[Params, jax.Array, Arrays], tuple[jax.Array, Arrays, Arrays]]:
    """Return ``(params, key, vector) -> (value, derivative, product)``, the product H v of the Hessian with a vector.

    Forward over reverse mode: about the time of three derivatives, independent of the number of parameters.

        H v = d/de grad f(p + e v) at e = 0

    Args:
        objective: ``(params, key) -> scalar``, a `simkit.core.objective.Objective` or any such function.
        wrt: paths of parameters; a branch stands for all below it. ``vector`` is ``{path: array}`` of the parameters'
            shapes.

    Raises:
        UserError: when called, if a name is not a parameter, or the vector has other names or shapes.

    Example:
        >>> quadratic = lambda params, key: params["x"] @ jnp.array([[2.0, 1.0], [1.0, 3.0]]) @ params["x"] / 2
        >>> product = core.hessian_vector_product(quadratic, "x")
        >>> value, derivative, curved = product({"x": jnp.ones(2)}, jax.random.key(0), {"x": jnp.array([1.0, 0.0])})
        >>> value.item(), derivative["x"].tolist(), curved["x"].tolist()
        (3.5, [3.0, 4.0], [2.0, 1.0])

    Reference: Pearlmutter, Neural Computation 6, 147 (1994), doi:10.1162/neco.1994.6.1.147.
    """

    def run(params: Params, key: jax.Array, vector: Arrays) -> tuple[jax.Array, Arrays, Arrays]:
        chosen = chosen_of(params, wrt)
        tangent = _like(vector, chosen)

        def derive(chosen: Arrays) -> tuple[jax.Array, Arrays]:
            return jax.value_and_grad(lambda chosen: objective(paths.replaced(params, chosen), key))(chosen)

        (value, derivative), (_, product) = jax.jvp(derive, (chosen,), (tangent,))
        return value, derivative, product

    return run


def gauss_newton_product(
    residuals: Callable[[Params, jax.Array], jax.Array], wrt: str | Sequence[str]
) -> Callable[[Params, jax.Array, Arrays], tuple[jax.Array, Arrays, Arrays]]:
    """Return ``(params, key, vector) -> (value, derivative, product)`` of half a sum of squares, f = |r(p)|^2 / 2.

    The product is J^T J v with J = dr/dp, the Hessian without the second derivatives of the residuals: positive
    semidefinite, and equal to the Hessian where the residuals vanish.

    Args:
        residuals: ``(params, key) -> array``.
        wrt: as for `hessian_vector_product`.

    Raises:
        UserError: as `hessian_vector_product`.

    Reference: Schraudolph, Neural Computation 14, 1723 (2002), doi:10.1162/08997660260028683.
    """

    def run(params: Params, key: jax.Array, vector: Arrays) -> tuple[jax.Array, Arrays, Arrays]:
        chosen = chosen_of(params, wrt)
        tangent = _like(vector, chosen)

        def residual(chosen: Arrays) -> jax.Array:
            return residuals(paths.replaced(params, chosen), key)

        # The same transpose J^T gives the derivative J^T r and the product J^T J v.
        _, change = jax.jvp(residual, (chosen,), (tangent,))
        r, transpose = jax.vjp(residual, chosen)
        (derivative,), (product,) = transpose(r), transpose(change)
        return 0.5 * jnp.sum(r**2), derivative, product

    return run


def hessian(
    objective: Callable[[Params, jax.Array], tuple[jax.Array, jax.Array]],
    wrt: str | Sequence[str],
    mode: Mode = "shortest",
) -> Callable[[Params, jax.Array], tuple[jax.Array, jax.Array, Arrays, jax.Array]]:
    """Return ``(params, key) -> (value, status, derivative, matrix)``, the symmetric matrix of second derivatives.

    Args:
        objective: ``(params, key) -> (scalar, code)``, such as `simkit.core.objective.Objective.with_status`.
        wrt: paths of parameters; a branch stands for all below it. The matrix is (n, n), n numbers in the order of
            `entries`.
        mode: ``"forward"`` costs about n * n runs and stores no states, ``"reverse"`` n Hessian-vector products of
            about three derivatives each; ``"shortest"`` is forward mode for up to three numbers.

    Raises:
        UserError: if the mode is unknown; when called, if a name is not a parameter.
    """
    check_mode(mode)

    def run(params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array, Arrays, jax.Array]:
        flat, unravel = ravel_pytree(chosen_of(params, wrt))

        def measure(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            value, status = objective(paths.replaced(params, unravel(flat)), key)
            return value, (value, status)

        derive = (jax.jacfwd if goes_forward(mode, flat.size) else jax.jacrev)(measure, has_aux=True)

        def twice(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
            derivative, (value, status) = derive(flat)
            return derivative, (value, status, derivative)

        matrix, (value, status, derivative) = jax.jacfwd(twice, has_aux=True)(flat)
        return value, status, unravel(derivative), matrix

    return run


def entries(params: Params, wrt: str | Sequence[str]) -> list[str]:
    """Return the names of the rows of a Hessian: ``"gravity"``, or ``"force[0, 1]"`` for an entry of an array.

    Args:
        params: parameters.
        wrt: as for `hessian`.
    """
    return [f"{name}[{', '.join(map(str, entry))}]" if entry else name for name, entry in _rows(params, wrt)]


def _rows(params: Params, wrt: str | Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    # In the order of `ravel_pytree`, which sorts the keys of a dictionary.
    chosen = sorted(chosen_of(params, wrt).items())
    return [(name, entry) for name, array in chosen for entry in np.ndindex(jnp.shape(array))]


def hessian_differences(
    objective: Function, params: Params, key: jax.Array, wrt: str | Sequence[str], bounds: Bounds | None = None
) -> Difference:
    """Return the Hessian by central differences of the derivative by automatic differentiation, with its error.

    Args:
        objective: ``(params, key) -> scalar``.
        params: parameters at which to differentiate.
        key: random key of the initial state.
        wrt: as for `hessian`.
        bounds: ``{path: (low, high)}``, where known.
    """
    derive = with_derivative(objective, wrt)
    rows = [
        differences(lambda params, name=name, entry=entry: derive(params, key)[1][name][entry], params, wrt, bounds)
        for name, entry in _rows(params, wrt)
    ]
    order = sorted(chosen_of(params, wrt))
    values, errors = ([np.concatenate([row[name][part].ravel() for name in order]) for row in rows] for part in (0, 1))
    return Difference(np.stack(values), np.stack(errors))


def _like(vector: Arrays, chosen: Arrays) -> Arrays:
    if set(vector) != set(chosen):
        raise UserError(f"the vector is of {', '.join(sorted(vector))}; give an array for {', '.join(sorted(chosen))}")
    for name, array in chosen.items():
        check_shape(f"the vector's '{name}'", vector[name], "that of its parameter", jnp.shape(array))
    return {name: jnp.asarray(vector[name], array.dtype) for name, array in chosen.items()}
