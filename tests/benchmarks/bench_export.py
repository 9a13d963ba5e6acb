"""ONNX models of this project beside those of jax2onnx: converted or not, size, error, and time in onnxruntime.

Run with ``python tests/benchmarks/bench_export.py``. jax2onnx brings its own versions of packages: install it in an
environment of its own with ``pip install jax2onnx`` and pass its interpreter by ``--jax2onnx /path/to/bin/python``.
Times are CPU times in single precision, of onnxruntime on one core and of the program compiled by XLA, in turn in one
process. `run` is the model alone, `call` with the hand-over of arrays between JAX and onnxruntime.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# As long as a turn lasts at least, s.
TURN = 0.2
ROOT = Path(__file__).parents[2]


def advanced(name: str, steps: int, **settings: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function that advances a scenario by some steps, and its arguments."""
    import simkit
    from simkit.core.rollout import segment

    simulation = simkit.build(simkit.load(name, settings | {"precision": "float32"}))
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    state = jax.jit(simulation.step)(state, simulation.params)
    return simulation.step if steps == 1 else segment(simulation, steps), (state, simulation.params)


def lennard_jones() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the gradient of the energy of 64 particles, all pairs, and positions on a disturbed lattice."""

    def energy(position: jax.Array) -> jax.Array:
        apart = position[:, None] - position
        apart = apart - 5.0 * jnp.round(apart / 5.0)
        squared = (apart**2).sum(-1) + jnp.eye(len(position))
        sixth = 1 / squared**3
        return 2 * jnp.where(jnp.eye(len(position), dtype=bool), 0, sixth**2 - sixth).sum()

    lattice = np.stack(np.meshgrid(*[np.arange(4) * 1.25] * 3), -1).reshape(-1, 3)
    disturbed = lattice + np.random.default_rng(0).uniform(-0.05, 0.05, lattice.shape)
    return jax.grad(energy), (jnp.asarray(disturbed, jnp.float32),)


def network() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a network of two hidden layers for a batch of 32 images of 8 x 8 points."""
    draw = np.random.default_rng(0).normal
    layers = [(draw(size=(n, m)) / np.sqrt(n), draw(size=m)) for n, m in ((64, 64), (64, 64), (64, 10))]

    def forward(layers: Any, x: jax.Array) -> jax.Array:
        for weights, bias in layers[:-1]:
            x = jax.nn.relu(x @ weights + bias)
        return jax.nn.log_softmax(x @ layers[-1][0] + layers[-1][1])

    return forward, jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), (layers, draw(size=(32, 64))))


DISKS = {f"config.particles.{name}.count": 250 for name in ("small", "large")}
PROGRAMS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "channel_flow step": lambda: advanced("channel_flow", 1),
    "channel_flow segment of 20": lambda: advanced("channel_flow", 20),
    "soft_sphere_packing step": lambda: advanced("soft_sphere_packing", 1, **DISKS),
    "soft_sphere_packing segment of 20": lambda: advanced("soft_sphere_packing", 20, **DISKS),
    "double_pendulum step": lambda: advanced("double_pendulum", 1),
    "Lennard-Jones gradient": lennard_jones,
    "network": network,
}


def cost(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, over a turn."""
    begin, count = time.process_time(), 0
    while time.process_time() - begin < TURN:
        work()
        count += 1
    return (time.process_time() - begin) / count


def largest_error(expected: list[Any], found: list[Any]) -> float:
    """Return the largest difference of numbers relative to the largest number, without those that mean infinity."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(expected, found, strict=True) if a.dtype.kind == "f"]
    proper = [np.abs(a) < float(np.finfo(a.dtype).max) ** 0.5 for a, _ in pairs]
    kept = [(a[where], b.reshape(a.shape)[where]) for (a, b), where in zip(pairs, proper, strict=True)]
    scale = max(np.abs(a).max(initial=0) for a, _ in kept) or 1
    differences = [np.abs(a - b).max(initial=0) for a, b in kept]
    return float("nan") if any(map(np.isnan, differences)) else float(max(differences) / scale)


def flattened(name: str) -> tuple[Callable[..., Any], list[Any]]:
    """Return a program as a function from arrays to a list of arrays, and the arrays."""
    function, arguments = PROGRAMS[name]()
    leaves, structure = jax.tree.flatten(arguments)
    return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves))), leaves


def convert_by_jax2onnx(name: str, path: str) -> None:
    """Write the model of jax2onnx; this runs in its environment."""
    import onnx
    from jax2onnx import to_onnx  # pyright: ignore[reportMissingImports]

    function, leaves = flattened(name)
    model: Any = to_onnx(function, [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in leaves], model_name="program")
    onnx.save(model, path)


def theirs(python: str, name: str, path: Path) -> str:
    """Have jax2onnx convert a program, and return why it did not, or nothing."""
    command = [python, __file__, "--convert", name, str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    if done.returncode == 0:
        return ""
    told = [line for line in done.stderr.splitlines() if "Error" in line.split(":")[0]]
    return (told or ["no message"])[-1][:100]


def count_nodes(graph: Any) -> int:
    """Return the number of nodes of a model's graph, with those of bodies."""
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return len(graph.node) + sum(map(count_nodes, bodies))


def measured(model: Any, names: list[str], leaves: list[Any], compiled: Callable[[], Any], turns: int) -> list[str]:
    """Return nodes, size, error, time of a run, and its ratio to XLA, as texts."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    known = {port.name for port in session.get_inputs()}
    feeds = {name: np.asarray(leaf) for name, leaf in zip(names, leaves, strict=True) if name in known}
    found = session.run(None, feeds)
    error = largest_error(compiled(), list(found))
    turns_taken = [(cost(compiled), cost(lambda: session.run(None, feeds))) for _ in range(turns)]
    own, ratio = (statistics.median(each) for each in zip(*((b, b / a) for a, b in turns_taken), strict=True))
    size = f"{model.ByteSize() / 1000:.0f} kB"
    return [str(count_nodes(model.graph)), size, f"{error:.0e}", f"{1e3 * own:.3f}", f"{ratio:.1f}"]


def main() -> None:
    """Print one row for each program and converter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax2onnx", metavar="PYTHON", help="interpreter of an environment that has jax2onnx")
    parser.add_argument("--convert", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", help="part of the names of programs")
    options = parser.parse_args()
    if options.convert:
        convert_by_jax2onnx(*options.convert)
        return
    import onnx

    from simkit.export.onnx.runtime import Session, convert

    columns = ["program", "converter", "nodes", "size", "error", "run, ms", "run / XLA", "call / XLA"]
    print("|", " | ".join(columns), "|")
    print("|" + "---|" * len(columns))
    for name in [name for name in PROGRAMS if (options.only or "") in name]:
        function, leaves = flattened(name)
        program = jax.jit(function).lower(*leaves).compile()

        def compiled(program: Any = program, leaves: Any = leaves) -> Any:
            return jax.block_until_ready(program(*leaves))

        converted = convert(function, *leaves)
        row = measured(converted.model, [p.name for p in converted.inputs], leaves, compiled, options.turns)
        session = Session(converted)
        session(leaves)
        calls = [cost(lambda s=session, a=leaves: s(a)) / cost(compiled) for _ in range(options.turns)]
        print("|", " | ".join([name, "simkit", *row, f"{statistics.median(calls):.1f}"]), "|", flush=True)
        if not options.jax2onnx:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            if reason := theirs(options.jax2onnx, name, path):
                print(f"| {name} | jax2onnx | not converted: {reason} |", flush=True)
                continue
            model = onnx.load(path)
        try:
            row = measured(model, [port.name for port in model.graph.input], leaves, compiled, options.turns)
        except Exception as error:  # whatever onnxruntime or NumPy raise for a model that does not run
            row = [f"does not run: {str(error).splitlines()[0][:100]}"]
        print("|", " | ".join([name, "jax2onnx", *row]), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
