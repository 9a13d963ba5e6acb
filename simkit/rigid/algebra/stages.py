"""Compiler hints for derivatives: separate passes and materialized tangents; no effect on undifferentiated programs."""

import functools
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from simkit.core.formulation import computed_once


def staged[T](tree: T) -> T:
    """Return arrays unchanged; in a derivative, they and their tangents are computed in a pass of their own.

    A fused loop recomputes shared inputs for each of its outputs: for each component of a vector, and again for each
    tangent. Mark values that three or four components share, such as the sine of an angle. Without a derivative there
    is no barrier, so the rounding and speed of steps do not change.

    Args:
        tree: any pytree of arrays.
    """
    return jax.tree.map(_primitive().bind, tree)


def with_tangents[T](tree: T) -> T:
    """Return arrays unchanged; in a derivative all of them have tangents, as arrays of zeros where there were none.

    JAX finds the carry of a loop that depends on a parameter by differentiating the body again until the set does not
    grow, and repeats this for each enclosing loop. Mark the initial carry where all of it will depend on any parameter:
    the body is then differentiated once.

    Args:
        tree: any pytree of arrays.
    """
    return _with_tangents(tree)


@jax.custom_jvp
def _with_tangents(tree: Any) -> Any:
    return tree


# JAX instantiates symbolic zero tangents for this rule as arrays of zeros.
_with_tangents.defjvp(lambda primals, tangents: (primals[0], tangents[0]))


@functools.cache
def _primitive() -> Any:
    stage = Primitive("stage")
    stage.def_impl(lambda x: x)
    stage.def_abstract_eval(lambda x: x)
    mlir.register_lowering(stage, lambda _, x: [x])

    def differentiate(primals: Any, tangents: Any) -> Any:
        # Two barriers, not one: only that of the tangents is linear and can be transposed.
        return computed_once(primals[0]), computed_once(tangents[0])

    batching.primitive_batchers[stage] = lambda arguments, axes: (stage.bind(arguments[0]), axes[0])
    ad.primitive_jvps[stage] = differentiate
    return stage
