"""What jax-cfd 0.2.1 needs to run on today's JAX, lent to it for as long as it is being traced."""

import contextlib
import copy
import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jax

from simkit.errors import UserError

# Taken out of JAX's top level in version 0.6.
MOVED = ("tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten")

_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def on_current_jax() -> Iterator[types.ModuleType]:
    """Return a context in which jax-cfd runs, and in it the package `jax_cfd.base`.

    Two things stop jax-cfd 0.2.1 on JAX 0.6 and later. It calls functions that have left JAX's top level
    (``jax.tree_map``); here its own modules see a JAX that still has them. And the fluxes of a walled flow carry no
    value on periodic axes, which ``jnp.pad`` refuses; here they are padded as if it were zero, which nothing reads.

    Only jax-cfd's modules are touched, only inside the context, by one thread at a time: ``import jax`` gives the same
    JAX as ever. Whatever traces jax-cfd's functions must run inside; what is compiled needs it no more.

    Raises:
        UserError: if jax-cfd is not installed.
    """
    base = load("base")
    with _one_at_a_time, contextlib.ExitStack() as stack:
        lent = _JaxWithMovedNames(jax.__name__)
        for name, module in list(sys.modules.items()):
            if name.startswith("jax_cfd.") and getattr(module, "jax", None) is jax:
                stack.enter_context(mock.patch.object(module, "jax", lent))
        conditions = base.boundaries.ConstantBoundaryConditions
        stack.enter_context(mock.patch.object(conditions, "_pad", _with_numbers(conditions._pad)))
        yield base


def load(name: str) -> types.ModuleType:
    """Return the subpackage of jax-cfd of that name, such as ``"spectral"``.

    Raises:
        UserError: if jax-cfd is not installed.
    """
    try:
        return importlib.import_module(f"jax_cfd.{name}")
    except ImportError as error:
        raise UserError(f"jax-cfd cannot be imported ({error}); install it with: pip install jax-cfd") from error


class _JaxWithMovedNames(types.ModuleType):
    """JAX, and the functions that jax-cfd still looks for in it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.tree_util if name in MOVED else jax, name)


def _with_numbers(pad: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``ConstantBoundaryConditions._pad`` with zero where a periodic axis has no boundary value."""

    def padded(conditions: Any, *arguments: Any, **keywords: Any) -> Any:
        values = tuple(tuple(0.0 if value is None else value for value in pair) for pair in conditions.bc_values)
        conditions = copy.copy(conditions)
        object.__setattr__(conditions, "bc_values", values)
        return pad(conditions, *arguments, **keywords)

    return padded
