"""Whether a program is traced for what computes array by array, such as a GPU or an ONNX runtime, or for loops."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

_ASKED = ContextVar("simkit_whole_arrays", default=False)


def prefers_whole_arrays() -> bool:
    """Return whether few operations on whole arrays are faster than loops over their rows.

    So it is everywhere but where XLA compiles for a CPU, which makes one function of a loop. Elsewhere each operation
    of each turn is a program of its own. Methods that give the same numbers but for rounding are chosen by this while
    they are traced.
    """
    return _ASKED.get() or jax.default_backend() != "cpu"


@contextmanager
def whole_arrays() -> Iterator[None]:
    """Trace programs inside the block for a runtime that computes one operation after the other.

    JAX keeps what it has traced; metadata of the block tell it that these programs are others.
    """
    token = _ASKED.set(True)
    try:
        with set_xla_metadata(simkit_whole_arrays="1"):
            yield
    finally:
        _ASKED.reset(token)
