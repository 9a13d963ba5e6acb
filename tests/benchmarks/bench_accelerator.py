"""Kernels, scenarios, derivatives and sweeps on an accelerator, beside other programs where these are installed.

``PYTHONPATH=. python tests/benchmarks/bench_accelerator.py --output rows.jsonl`` takes at most eight minutes. Rows run
in a child process, each within a time limit, and are saved as they end; a row that exceeds its limit is killed, and the
rest continues in a new child. ``--smoke`` takes the same way with tiny sizes, on any machine, in less than a minute.
``--table rows.jsonl`` prints the rows as the table of docs/speed.md. Everything in float32 unless a scenario asks for
float64; times are the least of the runs within a second, compilation apart.
"""

import argparse
import dataclasses
import functools
import gzip
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.compilation import use_compilation_cache
from simkit.core.ensemble import ensemble
from simkit.core.precision import precision
from simkit.core.rollout import segment
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.benchmarks import bench_flow, bench_molecular, bench_rigid, jax_cfd_channel

# Seconds: in all, of a row, of starting a child, and of repeated runs of a program.
WHOLE, LIMIT, START, REPEATED = 480, 60, 60, 1.0
SCENARIOS = [
    *("channel_flow", "turbulent_channel", "taylor_green", "cylinder_in_channel", "kolmogorov_turbulence"),
    *("lid_driven_cavity", "lennard_jones_fluid", "lennard_jones_crystal", "soft_sphere_packing", "silicon"),
    *("trapped_charges", "falling_pile", "double_pendulum", "bouncing_ball"),
]
DERIVATIVES = {
    "taylor_green": "kinematic_viscosity",
    "lennard_jones_fluid": "temperature",
    "bouncing_ball": "restitution",
}
Row = Callable[[], dict[str, Any]]


def timed(run: Callable[[], Any]) -> float:
    """Return the least time of a run, s."""
    jax.block_until_ready(run())
    least, end = np.inf, time.perf_counter() + REPEATED
    while True:
        start = time.perf_counter()
        jax.block_until_ready(run())
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least


def launches(run: Callable[[], Any]) -> int | None:
    """Return the number of kernels that a run launches on a GPU, from JAX's profiler; None where it tells nothing."""
    if jax.default_backend() == "cpu":
        return None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            jax.block_until_ready(run())
        files = list(Path(folder).rglob("perfetto_trace.json.gz"))
        if not files:
            return None
        events = json.loads(gzip.decompress(files[0].read_bytes()))["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    # Lines of streams hold kernels and copies; others repeat them by module and by source.
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    return sum(
        event.get("ph") == "X"
        and "GPU" in names.get(event["pid"], "")
        and "Stream" in lines.get((event["pid"], event["tid"]), "")
        for event in events
    )


def measured(function: Callable[..., Any], *arguments: Any, turns: int = 1) -> dict[str, Any]:
    """Return time and launches per turn of a function, its compile time, and whether two runs give the same bytes."""
    start = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    compile_time = time.perf_counter() - start
    run = functools.partial(program, *arguments)
    seconds, count, results = timed(run), launches(run), [jax.device_get(run()) for _ in range(2)]
    one, other = (map(np.asarray, jax.tree.leaves(_without_keys(result))) for result in results)
    return {
        "ms": 1e3 * seconds / turns,
        "launches": None if count is None else count / turns,
        "compile_s": compile_time,
        "same_bytes": all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)),
    }


def _without_keys(tree: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf, tree
    )


def spheres(members: int, steps: int) -> dict[str, Any]:
    """Ten spheres in each of many scenes."""
    many = ensemble(bench_rigid.scene("spheres", bench_rigid.Impulses(sweeps=1)))
    keys = jax.random.split(jax.random.key(0), members)
    state = jax.jit(many.init)(many.params, keys)
    row = measured(lambda state: segment(many, steps)(state, many.params), state, turns=steps)
    return row | {"rate": 1e3 * bench_rigid.BODIES * members / row["ms"], "rate_unit": "body steps/s"}


def brax_spheres(members: int, steps: int) -> dict[str, Any]:
    """Brax's spring pipeline on the same scenes."""
    run, _ = bench_rigid.brax_spring("spheres", members, steps, 0)
    seconds = timed(run) / steps
    return {"ms": 1e3 * seconds, "rate": bench_rigid.BODIES * members / seconds, "rate_unit": "body steps/s"}


def _liquid(atoms: int) -> tuple[Any, Any, Any, Any, Any]:
    from simkit.molecular.interactions.pair_interaction import pair_interaction
    from simkit.molecular.potentials import lennard_jones

    position, side = bench_molecular.liquid(atoms)
    position, cell = jnp.asarray(position, jnp.float32), jnp.full(3, side, jnp.float32)
    params = {name: jnp.float32(1) for name in ("epsilon", "sigma")}
    skin = bench_molecular.SKIN / bench_molecular.CUTOFF

    def of(capacity: int | None) -> Any:
        return pair_interaction(
            lennard_jones(), cutoff=bench_molecular.CUTOFF, skin=skin, capacity=capacity, method="neighbor_list"
        )

    needed = int(jax.jit(of(128).prepare)(position, cell, params).needed)
    interaction = of(-(-(needed + 4) // 8) * 8)
    return interaction, position, cell, params, jax.jit(interaction.prepare)(position, cell, params)


def force(atoms: int) -> dict[str, Any]:
    """Lennard-Jones forces from a current list, in a captured loop."""
    interaction, position, cell, params, neighbors = _liquid(atoms)

    def repeated(position: jax.Array) -> jax.Array:
        # Moved by the force, so that no turn is left out, and by next to nothing.
        def turn(position: jax.Array, _: None) -> tuple[jax.Array, None]:
            return position + 1e-12 * interaction.force(position, cell, params, neighbors), None

        return jax.lax.scan(turn, position, None, length=20)[0]

    return measured(repeated, position, turns=20)


def rebuild(atoms: int) -> dict[str, Any]:
    """Neighbor list from positions."""
    interaction, position, cell, params, _ = _liquid(atoms)
    return measured(lambda position: interaction.prepare(position, cell, params), position)


def nve(atoms: int, steps: int) -> dict[str, Any]:
    """Velocity-Verlet steps at temperature 0.7, with rebuilds of the list as needed."""
    interaction, position, cell, params, neighbors = _liquid(atoms)
    velocity = jnp.sqrt(0.7) * jax.random.normal(jax.random.key(1), position.shape, position.dtype)
    dt = jnp.float32(0.004)

    def run(*state: Any) -> Any:
        def step(state: Any, _: None) -> tuple[Any, None]:
            position, velocity, pull, neighbors = state
            velocity = velocity + dt / 2 * pull
            position = position + dt * velocity
            neighbors = interaction.refresh(neighbors, position, cell, params)
            pull = interaction.force(position, cell, params, neighbors)
            return (position, velocity + dt / 2 * pull, pull, neighbors), None

        return jax.lax.scan(step, state, None, length=steps)[0]

    pull = jax.jit(interaction.force)(position, cell, params, neighbors)
    state = jax.jit(run)(position, velocity, pull, neighbors)
    builds = int(jax.jit(run)(*state)[3].builds - state[3].builds)
    return measured(run, *state, turns=steps) | {"builds": builds, "overflow": bool(state[3].overflowed)}


def jax_md(atoms: int) -> dict[str, Any]:
    """Forces and rebuilds of jax-md, of its fastest list."""
    position, side = bench_molecular.liquid(atoms)
    rows = bench_molecular.jax_md(position, side, np.float32)
    return {name: 1e3 * timed(run) for name, (run, _) in rows.items()}


def flow(cells: tuple[int, ...], steps: int, **numerics: Any) -> dict[str, Any]:
    """Steps of a channel flow by Adams-Bashforth."""
    place = bench_flow.channel_domain(cells)
    simulation = bench_flow.flow(
        place, bench_flow.eddies(place), 1e-3, 1e-3, method="adams_bashforth", scheme="central", **numerics
    )
    state = bench_flow.started(simulation)
    return measured(lambda state: segment(simulation, steps)(state, simulation.params), state, turns=steps)


def jax_cfd(cells: tuple[int, ...], steps: int) -> dict[str, Any]:
    """Euler steps of jax-cfd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        velocity, advance = jax_cfd_channel.channel(cells, (bench_flow.LENGTH,) * 2)
        return measured(lambda v: jax.lax.fori_loop(0, steps, lambda _, v: advance(v), v), velocity, turns=steps)


def scenario(name: str, steps: int, members: int = 0) -> dict[str, Any]:
    """Steps of a scenario, or of members with other seeds, here and on the CPU, and how far the results differ."""
    described = load(name)
    with precision(described.run.precision):
        simulation = build(described)
        many = ensemble(simulation) if members else simulation
        keys = jax.random.split(jax.random.key(0), members) if members else jax.random.key(0)

        def run() -> tuple[dict[str, Any], Any]:
            state = jax.jit(many.init)(many.params, keys)
            row = measured(lambda state: segment(many, steps)(state, many.params), state, turns=steps)
            after = jax.jit(segment(many, steps))(state, many.params)
            return row, jax.device_get(jax.jit(many.diagnose or many.observe)(after, many.params))

        row, here = run()
        if jax.default_backend() == "cpu":
            return row
        with jax.default_device(jax.devices("cpu")[0]):
            on_cpu, there = run()
    apart = jax.tree.map(lambda a, b: float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) + 1e-30)), here, there)
    return row | {"cpu_ms": on_cpu["ms"], "differs_by": apart}


def derivative(name: str, parameter: str, steps: int) -> dict[str, Any]:
    """Derivative in reverse mode of the sum of what a scenario diagnoses, after some steps."""
    described = load(name)
    with precision(described.run.precision):
        simulation = build(described)
        params, key = simulation.params, jax.random.key(0)
        parameter = parameter if parameter in params else next(iter(params))

        def total(value: jax.Array) -> jax.Array:
            now = {**params, parameter: value}
            state = segment(simulation, steps)(simulation.init(now, key), now)
            numbers = jax.tree.leaves(simulation.diagnose(state, now))
            return sum((jnp.sum(n) for n in numbers if jnp.issubdtype(n.dtype, jnp.floating)), jnp.zeros(()))

        row = measured(jax.value_and_grad(total), params[parameter], turns=steps)
        slope = float(jax.jit(jax.grad(total))(params[parameter]))
    return row | {"parameter": parameter, "slope": slope}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the rows, for an accelerator or, tiny, for `--smoke`; and whether other programs run beside."""

    scenes: tuple[int, ...] = (1024, 16_384, 131_072)
    atoms: tuple[int, ...] = (32_000, 1_048_576)
    cells: tuple[tuple[int, ...], ...] = ((256, 128), (1024, 512), (256, 256, 256))
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    steps: int = 50
    members: int = 256
    peers: bool = True


# Rigid bodies alone would compile half a minute, and other programs take as long to import.
TINY = Sizes(scenes=(), atoms=(500,), cells=((16, 8),), scenarios=("taylor_green",), steps=2, members=2, peers=False)


def rows(sizes: Sizes) -> Iterator[tuple[str, Row]]:
    """Yield the name of each row and what measures it, in the order of their importance."""
    return ((name, row) for name, row in _rows(sizes) if sizes.peers or ": " not in name)


def _rows(sizes: Sizes) -> Iterator[tuple[str, Row]]:
    few = max(sizes.steps // 5, 1)
    for members in sizes.scenes:
        yield f"spheres, {members} scenes", functools.partial(spheres, members, sizes.steps)
        yield f"spheres, {members} scenes: brax", functools.partial(brax_spheres, members, sizes.steps)
    for atoms in sizes.atoms:
        yield f"force, {atoms} atoms", functools.partial(force, atoms)
        yield f"list, {atoms} atoms", functools.partial(rebuild, atoms)
        yield f"NVE step, {atoms} atoms", functools.partial(nve, atoms, sizes.steps)
    yield f"force and list, {sizes.atoms[0]} atoms: jax-md", functools.partial(jax_md, sizes.atoms[0])
    for cells in sizes.cells:
        name = " x ".join(map(str, cells))
        yield f"channel step, {name}", functools.partial(flow, cells, sizes.steps)
        yield f"channel step, {name}: jax-cfd", functools.partial(jax_cfd, cells, sizes.steps)
    for cells in dict.fromkeys((sizes.cells[0], sizes.cells[-1])):
        every = tuple(range(len(cells)))
        name = " x ".join(map(str, cells))
        yield f"channel step, {name}, implicit", functools.partial(flow, cells, few, implicit=every)
    for name in sizes.scenarios:
        yield f"scenario {name}", functools.partial(scenario, name, few)
    for name, parameter in list(DERIVATIVES.items())[: len(sizes.scenarios)]:
        yield f"derivative of {name}", functools.partial(derivative, name, parameter, few)
    for name in ("taylor_green", "soft_sphere_packing", "falling_pile")[: len(sizes.scenarios)]:
        yield f"sweep of {name}", functools.partial(scenario, name, few, sizes.members)


def measure(sizes: Sizes, first: int) -> None:
    """Print a JSON line for each row from a number on."""
    for number, (name, row) in enumerate(rows(sizes)):
        if number < first:
            continue
        start = time.perf_counter()
        try:
            result = row()
        except Exception as error:  # another program may be missing, or out of memory; the next row is measured
            result = {"error": f"{type(error).__name__}: {error}"[:300]}
        spent = time.perf_counter() - start
        print(json.dumps({"row": number, "name": name, "device": device(), "spent_s": spent, **result}), flush=True)


def device() -> str:
    """Return the name of the device and the version of JAX."""
    return f"{jax.devices()[0].device_kind}, JAX {jax.__version__}"


def guarded(sizes: Sizes, is_small: bool, output: Path) -> None:
    """Run all rows in children, each within its limit, and append them to a file as they end."""
    names, end, number = [name for name, _ in rows(sizes)], time.monotonic() + WHOLE, 0
    with output.open("a") as file:

        def save(row: dict[str, Any]) -> None:
            line = json.dumps(row)
            print(line, flush=True)
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

        while number < len(names) and time.monotonic() < end:
            command = [sys.executable, __file__, "--from", str(number), *(["--smoke"] if is_small else [])]
            with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as child:
                assert child.stdout is not None  # it is a pipe
                allowed, text = START + LIMIT, b""
                while number < len(names):
                    wait = min(allowed, end - time.monotonic())
                    ready = select.select([child.stdout], [], [], max(wait, 0))[0]
                    piece = os.read(child.stdout.fileno(), 65_536) if ready else b""
                    if not piece:
                        save({"row": number, "name": names[number], "error": f"no result within {wait:.0f} s"})
                        number += 1
                        break
                    *lines, text = (text + piece).split(b"\n")
                    for line in lines:
                        # Libraries print lines of their own.
                        if line.startswith(b'{"row"'):
                            save(json.loads(line))
                            number, allowed = number + 1, LIMIT
                child.kill()
        for left in range(number, len(names)):
            save({"row": left, "name": names[left], "error": "not measured: out of time"})


def table(path: Path) -> str:
    """Return the saved rows as a table in Markdown."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    text = ["| work | ms | launches | same bytes | other |", "|---|---:|---:|---|---|"]
    known = {"row", "name", "device", "spent_s", "ms", "launches", "same_bytes", "compile_s"}
    for row in lines:
        other = ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                          for key, value in row.items() if key not in known)  # fmt: skip
        ms, count = (f"{row[key]:.4g}" if row.get(key) is not None else "" for key in ("ms", "launches"))
        text.append(f"| {row['name']} | {ms} | {count} | {row.get('same_bytes', '')} | {other} |")
    return "\n".join([next((row["device"] for row in lines if "device" in row), ""), "", *text])


def main() -> None:
    """Measure, or print the table of saved rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    parser.add_argument("--output", type=Path, default=Path("accelerator.jsonl"), help="file to which rows are added")
    parser.add_argument("--from", type=int, dest="first", help="measure in this process, from this row on")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the rows of a file as a table")
    options = parser.parse_args()
    sizes = TINY if options.smoke else Sizes()
    if options.smoke:
        global REPEATED
        REPEATED = 0.0
        use_compilation_cache()
    if options.table:
        print(table(options.table))
    elif options.first is not None:
        measure(sizes, options.first)
    else:
        guarded(sizes, options.smoke, options.output)


if __name__ == "__main__":
    main()
