import jax
import jax.numpy as jnp
import pytest

from simkit.core.compilation import needed_bytes
from simkit.engine.memory import available_bytes, format_bytes, frame_bytes, memory_in_bytes, shapes_of
from simkit.errors import UserError
from tests.core.toys import oscillator
from tests.tables import every


@every(
    ("text", "size"),
    [
        ("1", 1),
        ("123", 123),
        ("8GiB", 8 * 2**30),
        ("8 GiB", 8 * 2**30),
        ("500MB", 500 * 10**6),
        ("500 mb", 500 * 10**6),
        ("1.5KiB", 1536),
        ("2kB", 2000),
        (" 64 B ", 64),
        ("1e3MiB", 1000 * 2**20),
        ("2TiB", 2**41),
    ],
)
def test_memory_sizes_are_parsed(text, size):
    assert memory_in_bytes(text) == size


@every(
    "text",
    ["", " ", "GiB", "eight", "-1GiB", "0", "0.5", "nan", "inf", "1e30", "8XB", "8 GiB 3", "8GiBs", "--", "8,5GB"],
)
def test_invalid_memory_sizes_are_refused(text):
    with pytest.raises(UserError, match=r"not a memory size|no possible memory size"):
        memory_in_bytes(text)


@every(("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**33, "8 GiB")])
def test_sizes_are_formatted_with_units(size, text):
    assert format_bytes(size) == text


def test_free_memory_is_positive():
    assert available_bytes() > 0


def test_compiler_reports_the_memory_of_arguments_and_results():
    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    compiled = jax.jit(lambda x: (x + 1, x * 2)).lower(x).compile()
    # One argument and two results of 4 kB, and at most some pointers beside them.
    assert 12_000 <= needed_bytes(compiled) <= 13_000


def test_frame_counts_what_is_observed_and_diagnosed(x64):
    # Ten positions; time, energy and one position: 8 bytes each.
    assert frame_bytes(shapes_of(oscillator(size=10))[1]) == (80, 24)
