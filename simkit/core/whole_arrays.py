"""Context for tracing programs for runtimes that do not fuse operations, such as those of ONNX."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jax.experimental.xla_metadata import set_xla_metadata

_IS_ACTIVE = ContextVar("simkit_whole_arrays", default=False)


def prefers_whole_arrays() -> bool:
    """Return whether few operations on whole arrays are faster than loops over their rows.

    True in programs traced inside `whole_arrays`: their runtime dispatches every operation of every loop iteration
    separately, while XLA fuses them. Used at trace time to choose between methods that differ in round-off only.
    """
    return _IS_ACTIVE.get()


@contextmanager
def whole_arrays() -> Iterator[None]:
    """Trace programs inside the block for a runtime that executes one operation after the other.

    JAX caches traced programs; the metadata set here keep these apart from those traced outside.
    """
    token = _IS_ACTIVE.set(True)
    try:
        with set_xla_metadata(simkit_whole_arrays="1"):
            yield
    finally:
        _IS_ACTIVE.reset(token)
