"""ONNX models: nodes, size, error, and time in onnxruntime relative to XLA.

Run with ``PYTHONPATH=. python tests/benchmarks/bench_export.py``. Times are CPU times in single precision, of
onnxruntime on one core and of the program compiled by XLA, in turn in one process. `run` is the model alone, `call`
with the hand-over of arrays between JAX and onnxruntime.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.benchmarks.timing import Work, compiled, median_ratio


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


def flattened(name: str) -> tuple[Callable[..., Any], list[Any]]:
    """Return a program as a function from arrays to a list of arrays, and the arrays."""
    function, arguments = PROGRAMS[name]()
    leaves, structure = jax.tree.flatten(arguments)
    return lambda *leaves: jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves))), leaves


def measured(converted: Any, leaves: list[Any], reference: Work, turns: int) -> list[str]:
    """Return nodes, size, error, time of a run, and its ratio to XLA, as texts."""
    from simkit.export.onnx.runtime import session_of
    from simkit.export.programs.stand_alone import errors_of

    data = converted.model.SerializeToString()
    session = session_of(data)
    known = {port.name for port in session.get_inputs()}
    ports = zip(converted.inputs, leaves, strict=True)
    feeds = {port.name: np.asarray(leaf) for port, leaf in ports if port.name in known}
    pairs = [(np.asarray(a), b) for a, b in zip(reference(), session.run(None, feeds), strict=True)]
    numbers = [(a, b.reshape(a.shape)) for a, b in pairs if a.dtype.kind == "f"]
    # Of every output relative to the largest number of all.
    error = max(errors_of(*zip(*numbers, strict=True), {"float32": 1.0}))
    seconds, ratio = median_ratio(lambda: session.run(None, feeds), reference, turns)
    return [str(converted.nodes), f"{len(data) / 1000:.0f} kB", f"{error:.0e}", f"{1e3 * seconds:.3f}", f"{ratio:.1f}"]


def main() -> None:
    """Print one row for each program."""
    from simkit.export.onnx.runtime import Session, convert

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of programs")
    options = parser.parse_args()
    columns = ["program", "nodes", "size", "error", "run, ms", "run / XLA", "call / XLA"]
    print("|", " | ".join(columns), "|")
    print("|" + "---|" * len(columns))
    for name in [name for name in PROGRAMS if options.only in name]:
        function, leaves = flattened(name)
        reference, _ = compiled(function, *leaves)
        converted = convert(function, *leaves)
        row = measured(converted, leaves, reference, options.turns)
        session = Session(converted)
        _, call = median_ratio(lambda s=session, a=leaves: s(a), reference, options.turns)
        print("|", " | ".join([name, *row, f"{call:.1f}"]), "|", flush=True)


if __name__ == "__main__":
    main()
