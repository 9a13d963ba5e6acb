"""Compatibility of jax-cfd 0.2.1 with current JAX: removed functions are supplied while its code is traced."""

import contextlib
import copy
import importlib
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax

from simkit.errors import UserError

# Removed from JAX's top level in version 0.6.
MOVED = ("tree_flatten", "tree_leaves", "tree_map", "tree_structure", "tree_unflatten")

# Functions of jax-cfd 0.2.1 that cannot be traced, the reason, and the replacement.
REASONS = {
    "implicit_evm_solve_with_diffusion": (
        "'implicit_smagorinsky_navier_stokes' multiplies NumPy arrays of objects by traced numbers, which JAX refuses; "
        "use explicit_smagorinsky_navier_stokes"
    ),
    "stable_time_step": (
        "'stable_time_step' and 'dynamic_time_step' compare traced numbers; let the step take params['time_step']"
    ),
}

_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def on_current_jax() -> Iterator[types.ModuleType]:
    """Return a context in which jax-cfd runs, and in it the package `jax_cfd.base`.

    jax-cfd 0.2.1 fails on JAX 0.6 and later for two reasons. It calls functions removed from JAX's top level
    (``jax.tree_map``); its modules are given a JAX that has them. And boundary conditions of fluxes hold None on
    periodic axes, which ``jnp.pad`` refuses; they are padded with zero, a value that is never read.

    Only jax-cfd's modules are patched, only inside the context, by one thread at a time; ``import jax`` elsewhere is
    unaffected. Code that traces jax-cfd's functions must run inside; compiled programs need not.

    Raises:
        UserError: if jax-cfd is not installed.
    """
    base = load("base")
    # Imported here, so that it is among the patched modules even if a step would be the first to import it.
    load("collocated")
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


@contextlib.contextmanager
def told_in_one_line(part: str) -> Iterator[None]:
    """Return a context in which an error inside jax-cfd becomes one line that names the function and the reason.

    Args:
        part: the function being traced, which begins the message.

    Raises:
        UserError: in place of any error that jax-cfd's functions raise.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        root = Path(str(load("base").__file__)).parent.parent
        codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        names = [code.co_name for code in codes if Path(code.co_filename).is_relative_to(root)]
        if not names:
            raise
        reason = next((REASONS[name] for name in reversed(names) if name in REASONS), None)
        if reason is None:
            first = (str(error).splitlines() or [""])[0][:200]
            reason = f"'{names[-1]}' fails with {type(error).__name__}: {first}"
        raise UserError(f"{part} cannot be traced: {reason}") from error


class _JaxWithMovedNames(types.ModuleType):
    """JAX with the removed functions that jax-cfd calls."""

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
