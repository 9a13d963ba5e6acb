"""Ports (inputs and outputs) of an exported program: the leaves of a simulation's trees as named plain arrays."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Quantity

NUMBER, COMPLEX, KEY = "number", "complex number", "random key"
KINDS = (NUMBER, COMPLEX, KEY)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]")


@dataclasses.dataclass(frozen=True)
class Port:
    """One array that a program takes or returns.

    Attributes:
        name: the same in every runtime and in ``reference.npz``.
        shape: without the batch axis.
        dtype: name of the element type.
        unit: physical unit, ``"1"`` for a pure number; empty if not declared.
        doc: meaning; empty if not declared.
        kind: ``"number"``; ``"complex number"``, with a last axis of real and imaginary part; or ``"random key"``, its
            words as ``uint32``.
        bounds: lowest and highest value allowed, for a parameter that declares them.
        axes: names of the axes of ``shape``, where declared.
        implementation: of random keys, the name of JAX's generator.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    unit: str = ""
    doc: str = ""
    kind: str = NUMBER
    bounds: tuple[float, float] | None = None
    axes: tuple[str, ...] = ()
    implementation: str = ""

    def described(self, batch: "int | str | None") -> dict[str, Any]:
        """Return the entry of this port in ``io.json``.

        Args:
            batch: size of the leading batch axis, ``"symbolic"`` for any, ``None`` without one.
        """
        entry = dataclasses.asdict(self)
        entry["shape"] = [*([] if batch is None else [batch]), *self.shape]
        entry["axes"] = [*([] if batch is None else ["member"]), *self.axes] if self.axes else None
        return {key: value for key, value in entry.items() if value not in (None, "")}


def ports_of(tree: Any, prefix: str, quantities: dict[str, Quantity]) -> list[Port]:
    """Return the ports of a tree's arrays, in the order of its leaves.

    Args:
        tree: of arrays, or of their shapes and types.
        prefix: first word of the names, which are ``PREFIX.PATH``.
        quantities: units and meanings by the last step of a path.
    """
    found: list[Port] = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        steps = [_NOT_IN_NAMES.sub("_", _step(key)) for key in path]
        name = ".".join([prefix, *steps])
        if any(port.name == name for port in found):
            name = f"{name}_{len(found)}"
        known = quantities.get(steps[-1]) if steps else None
        found.append(_port(name, leaf, {} if known is None else {"unit": known.unit, "doc": known.doc}))
    return found


def encoded(leaf: Any) -> Any:
    """Return an array as a plain one: the words of random keys, or real and imaginary parts along a last axis."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        return jnp.stack([leaf.real, leaf.imag], -1)
    return leaf


def decoded(port: Port, array: Any) -> Any:
    """Return the array of which `encoded` returned ``array``.

    Args:
        port: of the array.
        array: encoded.
    """
    if port.kind == KEY:
        return jax.random.wrap_key_data(array, impl=port.implementation)
    return jax.lax.complex(array[..., 0], array[..., 1]) if port.kind == COMPLEX else array


def _port(name: str, leaf: Any, declared: dict[str, Any]) -> Port:

    shape = jax.eval_shape(encoded, leaf)
    kind, names = NUMBER, [""]
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        kind, declared = KEY, {}
        jax.eval_shape(lambda key: names.append(str(jax.random.key_impl(key))), leaf)
    elif np.issubdtype(leaf.dtype, np.complexfloating):
        kind = COMPLEX
    return Port(name, tuple(shape.shape), shape.dtype.name, kind=kind, implementation=names[-1], **declared)


def _step(key: Any) -> str:
    return str(next(getattr(key, kind) for kind in ("name", "idx", "key") if hasattr(key, kind)))
