"""Functions of a simulation traced once, and its compiled programs, kept as long as the simulation."""

import collections
import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any

import jax
from jax.core import Tracer

from simkit.core.formulation import prefers_whole_arrays

# Programs of one simulation that are kept; those used longest ago are dropped first.
MOST_PROGRAMS = 32
# The operations of a function become those of the program that calls it, when that is lowered: until then a call is one
# equation, which is not traced again wherever the caller is.
INLINE: Any = jax.Inline.JAX_LATE if hasattr(jax, "Inline") else True


class Traced:
    """A pure function of arrays whose Python code runs once per shapes, types and precision.

    Its program is found again wherever the function is called with the same shapes: in `jax.eval_shape`, inside other
    programs, which contain its operations as if it had been traced there, and under transformations. Called with
    concrete arrays it runs as one compiled program.

    Attributes:
        function: the function.
        alone: of a step of many members, the step that it stands for; else None.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Wrap a function; nothing is traced yet."""
        self.function = function
        self.alone: Traced | None = None
        last: list[Any] = [None]
        self._last = last

        # Refers to no `Traced`, so that programs and constants end with the simulation, not with a later collection.
        @functools.wraps(function, updated=())
        def trace(*arguments: Any, **keywords: Any) -> Any:
            result = function(*arguments, **keywords)
            last[0] = jax.tree.map(_shape, result)
            return result

        self._program = jax.jit(trace, inline=INLINE)
        functools.update_wrapper(self, function, updated=())

    @property
    def returned(self) -> Any:
        """Result of the last trace: shapes in place of arrays, anything else as returned; ``None`` before."""
        return self._last[0]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the result of the function."""
        if prefers_whole_arrays():
            # Reports of other runtimes name the source line of an operation, which inlining loses.
            return _precisely(self.function, *arguments, **keywords)
        return _precisely(self._program, *arguments, **keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the function without its traces."""
        return Traced, (self.function,)


def _precisely(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Return the result of a function whose products, also those of other libraries, have full precision.

    JAX keeps a trace for each precision: a program that is called inside and outside of others needs the same at both.
    """
    with jax.default_matmul_precision("highest"):
        return function(*arguments, **keywords)


def _shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf


def traced_once(function: Callable[..., Any] | None) -> Any:
    """Return a function that is traced once, see `Traced`; ``None`` and one that already is are returned unchanged."""
    return function if function is None or isinstance(function, Traced) else Traced(function)


def kernel[**P, R](function: Callable[P, R], static: str = "") -> Callable[P, R]:
    """Return a function of arrays that is traced and lowered once for all its calls with the same shapes.

    A kernel called at several sites, as the energy by start, steps and diagnostics, costs Python's time once instead of
    once per site. Its operations become those of the program that calls it, as those of `Traced`, and its products have
    full precision, as there. Called with concrete arrays it is the plain function, whose checks then see their values.

    Args:
        function: of arrays, pure.
        static: name of an argument that is no array.
    """
    program = jax.jit(function, inline=INLINE, static_argnames=static or None)

    @functools.wraps(function, updated=())
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        leaves = jax.tree.leaves((arguments, keywords))
        if prefers_whole_arrays() or not any(isinstance(leaf, Tracer) for leaf in leaves):
            return function(*arguments, **keywords)
        return _precisely(program, *arguments, **keywords)

    return call


class Programs:
    """Compiled programs and other results of tracing, found again by a key as long as they are kept."""

    def __init__(self, most: int = MOST_PROGRAMS) -> None:
        """Keep nothing yet, and later at most ``most`` entries."""
        self._most = most
        self._kept: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle nothing of what is kept."""
        return Programs, (self._most,)

    def cached[T](self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key in the present precision of JAX; it is made if there is nothing.

        Args:
            key: all on which the result depends; nothing is kept under one that has no hash.
            make: makes the result; if it raises an error, nothing is kept.
        """
        try:
            kept = self.kept(key)
        except TypeError:
            return make()
        return self.keep(key, make()) if kept is None else kept

    def kept(self, key: Hashable) -> Any:
        """Return what is kept under a key in the present precision of JAX, or ``None``."""
        key = (bool(jax.config.jax_enable_x64), key)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep[T](self, key: Hashable, value: T) -> T:
        """Keep a value under a key in the present precision of JAX, and return it."""
        with self._lock:
            self._kept[bool(jax.config.jax_enable_x64), key] = value
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return value


def shapes_and_types(tree: Any) -> Hashable:
    """Return the structure of a pytree with the shapes and types of its arrays, as part of a key of `Programs`.

    Args:
        tree: pytree of arrays or of their shapes.
    """
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
