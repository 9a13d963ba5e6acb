"""Marks for derivatives: where they are cut into passes, and what they follow; plain programs are as without."""

import functools
from typing import Any

import jax

from simkit.core.barrier import computed_once


def staged[T](tree: T) -> T:
    """Return arrays as they are; in a derivative, they and their tangents are computed in a pass of their own.

    A compiled loop computes all that an array follows from anew for each array that it makes: for each component of a
    vector, and again for each tangent. What three or four components share, such as the sine of an angle, is marked so
    once it is computed. Steps themselves stay one loop: their rounding and speed do not change.

    Args:
        tree: of arrays.
    """
    return jax.tree.map(_primitive().bind, tree)


def with_tangents[T](tree: T) -> T:
    """Return arrays as they are; in a derivative all of them have tangents, zero where there were none.

    Which numbers of a loop depend on a parameter is found by differentiating its body again for each number found to,
    and so many times as often for each loop around it. What a loop starts from is marked so where all of it will
    depend on any parameter anyhow: its body is then differentiated once.

    Args:
        tree: of arrays.
    """
    return _with_tangents(tree)


@jax.custom_jvp
def _with_tangents(tree: Any) -> Any:
    return tree


# What was zero by its kind alone arrives here as an array of zeros.
_with_tangents.defjvp(lambda primals, tangents: (primals[0], tangents[0]))


@functools.cache
def _primitive() -> Any:
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    stage = Primitive("stage")
    stage.def_impl(lambda x: x)
    stage.def_abstract_eval(lambda x: x)
    mlir.register_lowering(stage, lambda _, x: [x])

    def differentiate(primals: Any, tangents: Any) -> Any:
        # Apart from each other, since only the second is linear and can be transposed.
        return computed_once(primals[0]), computed_once(tangents[0])

    batching.primitive_batchers[stage] = lambda arguments, axes: (stage.bind(arguments[0]), axes[0])
    ad.primitive_jvps[stage] = differentiate
    return stage
