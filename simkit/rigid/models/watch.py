"""Identity that calls a function, for instance to raise an error, when it is differentiated."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

type Notice = Callable[[], None]


def silent() -> None:
    """Do nothing."""


def watched[T](tree: T, *, on_derivative: Notice = silent, on_reverse: Notice = silent) -> T:
    """Return a tree of arrays unchanged, and call a function if it is differentiated.

    Args:
        tree: any pytree of arrays.
        on_derivative: called while a derivative of any kind is traced; may raise.
        on_reverse: called while a derivative in reverse mode is traced; may raise.
    """

    def one(leaf: jax.Array) -> jax.Array:
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        return _primitive().bind(leaf, on_derivative=on_derivative, on_reverse=on_reverse)

    return jax.tree.map(one, tree)


@functools.cache
def _primitive() -> Any:
    identity = Primitive("watched")
    identity.def_impl(lambda x, **_: x)
    identity.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(identity, lambda _, x, **__: [x])

    def batch(arguments: Any, axes: Any, **notices: Notice) -> Any:
        return identity.bind(arguments[0], **notices), axes[0]

    def differentiate(primals: Any, tangents: Any, **notices: Notice) -> Any:
        if isinstance(tangents[0], ad.Zero):
            return identity.bind(primals[0], **notices), tangents[0]
        notices["on_derivative"]()
        return identity.bind(primals[0], **notices), identity.bind(tangents[0], **notices)

    def transpose(cotangent: Any, _: Any, **notices: Notice) -> Any:
        notices["on_reverse"]()
        return [cotangent]

    batching.primitive_batchers[identity] = batch
    ad.primitive_jvps[identity] = differentiate
    ad.primitive_transposes[identity] = transpose
    return identity
