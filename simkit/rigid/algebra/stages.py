"""Stages of a derivative: where a compiled derivative is cut into passes, and plain programs are not."""

import functools
from typing import Any

import jax


def staged[T](tree: T) -> T:
    """Return arrays as they are; in a derivative, they and their tangents are computed in a pass of their own.

    A compiled loop computes all that an array follows from anew for each array that it makes: for each component of a
    vector, and again for each tangent. What three or four components share, such as the sine of an angle, is marked so
    once it is computed. Steps themselves stay one loop: their rounding and speed do not change.

    Args:
        tree: of arrays.
    """
    return jax.tree.map(_primitive().bind, tree)


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
        return jax.lax.optimization_barrier(primals[0]), jax.lax.optimization_barrier(tangents[0])

    batching.primitive_batchers[stage] = lambda arguments, axes: (stage.bind(arguments[0]), axes[0])
    ad.primitive_jvps[stage] = differentiate
    return stage
