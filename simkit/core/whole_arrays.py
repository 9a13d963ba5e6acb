"""Context that marks programs traced for runtimes without fusion of operations, such as those of ONNX."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jax.experimental.xla_metadata import set_xla_metadata

_ASKED = ContextVar("simkit_whole_arrays", default=False)


def prefers_whole_arrays() -> bool:
    """Return whether few operations on whole arrays are faster than loops over their rows.

    So it is in programs that are traced inside `whole_arrays`: their runtime takes each operation of each turn of a
    loop for itself, where XLA makes one function of them. Methods that give the same numbers but for rounding are
    chosen by this while they are traced.
    """
    return _ASKED.get()


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
