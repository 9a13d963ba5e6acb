"""Kernels and memory traffic of flow steps on a GPU that need not be there: XLA's compiler runs without one.

Run by hand, where a CUDA plugin of JAX and ptxas are installed, with a description of the card, such as those in
``xla/backends/gpu/target_config/specs`` of XLA's repository:
``PYTHONPATH=. python tests/benchmarks/count_kernels.py h200.txtpb``. Products are not tuned, which needs the card.
"""

import collections
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp
from jax.experimental import topologies

from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step

BYTES = {"pred": 1, "s8": 1, "u8": 1, "f64": 8, "s64": 8, "c64": 8, "c128": 16}
FREE = ("parameter", "get-tuple-element", "tuple", "bitcast", "constant")
LINE = re.compile(r"\s+(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)")


def size(shape: str) -> int:
    """Return the bytes of an array or a tuple of arrays."""
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(BYTES.get(kind, 4) * math.prod(int(n) for n in lengths.split(",") if n) for kind, lengths in arrays)


def operations(computation: str) -> Iterator[tuple[str, str, str, list[str], str]]:
    """Yield name, shape, kind, operands and text of each operation."""
    for line in computation.splitlines():
        if match := LINE.match(line):
            name, shape, kind, rest = match.groups()
            yield name, shape, kind, re.findall(r"%([\w.\-]+)", rest.split("), ")[0]), rest


def read(computation: str) -> int:
    """Return the bytes that a fused computation reads; of an argument that is only sliced, the slices."""
    sizes, uses = {}, collections.defaultdict(list)
    for name, shape, kind, operands, _ in operations(computation):
        if kind == "parameter":
            sizes[name] = size(shape)
        for operand in set(operands):
            uses[operand].append(size(shape) if kind == "slice" else math.inf)
    return int(sum(min(whole, sum(uses[name])) for name, whole in sizes.items()))


def traffic(program: str) -> list[int]:
    """Return the bytes that each kernel of a compiled program reads and writes."""
    texts = re.split(r"\n(?=(?:ENTRY )?%[\w.\-]+ \()", program)
    computations = {match[2]: text for text in texts if (match := re.match(r"(ENTRY )?%([\w.\-]+) \(", text))}
    entry = next(text for text in texts if text.startswith("ENTRY"))
    sizes, kernels = {}, []
    for name, shape, kind, operands, rest in operations(entry):
        sizes[name] = size(shape)
        if kind not in FREE:
            fused = re.search(r"calls=%([\w.\-]+)", rest)
            inputs = read(computations[fused[1]]) if fused else sum(sizes.get(operand, 0) for operand in set(operands))
            kernels.append(inputs + sizes[name])
    return kernels


def step_of(cells: tuple[int, ...], implicit: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return an Adams-Bashforth step of a channel, and the shapes of its state and parameters."""
    axes = [periodic_axis(n, 6.0) for n in cells]
    axes[1] = bounded_axis(cells[1], 2.0, -1.0)
    place = domain(tuple(axes), (None, ("wall", "wall"), None)[: len(cells)])
    rules = {"method": "adams_bashforth", "implicit": implicit}
    start, step = stepper(Equations(place, "viscosity", fixed_time_step, **rules))
    number = jax.ShapeDtypeStruct((), jnp.float32)
    velocity = tuple(jax.ShapeDtypeStruct(place.grid.shape(i), jnp.float32) for i in range(len(cells)))
    params = {"viscosity": number, "time_step": number}
    return step, jax.eval_shape(start, velocity, params), params


def main() -> None:
    """Print a line for each grid and treatment of friction."""
    card = topologies.get_topology_desc("", "cuda", target_config=Path(sys.argv[1]).read_text(), topology="1x1x1")
    place = jax.sharding.SingleDeviceSharding(card.devices[0])
    for cells in ((256, 128), (256, 256, 256)):
        for implicit in ((), (1,), tuple(range(len(cells)))):
            step, *arguments = step_of(cells, implicit)
            lowered = jax.jit(step, in_shardings=place, out_shardings=place).trace(*arguments).lower()
            began = time.perf_counter()
            kernels = traffic(lowered.compile().as_text() or "")
            text = f"implicit {implicit}: {len(kernels)} kernels, {sum(kernels) / 1e6:.1f} MB"
            print(f"{' x '.join(map(str, cells))}, {text}, compiled in {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
