"""Kernels, scenarios, derivatives and sweeps on an accelerator, beside other programs where these are installed.

``PYTHONPATH=. python tests/benchmarks/bench_accelerator.py`` takes at most eight minutes and writes the table of
docs/speed.md, with the name of the card and what was not measured. Rows run in a child process, the most important
first, each within a time limit, and are saved as they end; a row that exceeds its limit is killed, and the rest
continues in a new child. ``--table FILE`` writes the table of saved rows. ``--smoke`` takes the same way with tiny
sizes, on any machine, and prints the table. Everything in float32 unless a scenario asks for float64; times are the
least of the runs within a second, compilation apart.
"""

import argparse
import dataclasses
import functools
import gzip
import json
import os
import re
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
from simkit.core.devices import computing_on, platform
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
# Bonds, charges on a mesh, a metal, a robot, grains: measured last, without sweeps.
LATER = ("polymer_melt", "water_box", "copper_eam", "humanoid", "granular_column")
DERIVATIVES = {
    "taylor_green": "kinematic_viscosity",
    "lennard_jones_fluid": "temperature",
    "bouncing_ball": "restitution",
}
Row = Callable[[], dict[str, Any]]
PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
ROWS = re.compile(r"(?<=<!-- rows of bench_accelerator.py -->\n).*?(?=<!-- end of rows -->)", re.DOTALL)


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
    if platform() == "cpu":
        return None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            jax.block_until_ready(run())
        files = list(Path(folder).rglob("perfetto_trace.json.gz"))
        if not files:
            return None
        return kernels(json.loads(gzip.decompress(files[0].read_bytes()))["traceEvents"])


def kernels(events: list[dict[str, Any]]) -> int:
    """Return the number of kernels and copies among the events of a profile."""
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    # Lines of streams hold kernels and copies; others repeat them by module and by source.
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    return sum(
        event.get("ph") == "X"
        and "GPU" in names.get(event["pid"], "")
        and "Stream" in lines.get((event["pid"], event["tid"]), "")
        for event in events
    )


def measured(function: Callable[..., Any], *arguments: Any, turns: int = 1) -> tuple[dict[str, Any], Any]:
    """Return a row and the result of a function.

    The row has time and launches per turn, the time to compile, and whether two runs give the same bytes.
    """
    start = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    compile_time = time.perf_counter() - start
    run = functools.partial(program, *arguments)
    seconds, count, results = timed(run), launches(run), [jax.device_get(run()) for _ in range(2)]
    one, other = (map(np.asarray, jax.tree.leaves(_without_keys(result))) for result in results)
    row = {
        "ms": 1e3 * seconds / turns,
        "launches": None if count is None else count / turns,
        "compile_s": compile_time,
        "same_bytes": all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)),
    }
    return row, results[0]


def _without_keys(tree: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf, tree
    )


def bodies(kind: str, members: int, steps: int) -> dict[str, Any]:
    """Ten spheres, or a pile of ten boxes, in each of many scenes."""
    many = ensemble(bench_rigid.scene(kind, bench_rigid.Impulses(sweeps=1)))
    keys = jax.random.split(jax.random.key(0), members)
    state = jax.jit(many.init)(many.params, keys)
    row, _ = measured(lambda state: segment(many, steps)(state, many.params), state, turns=steps)
    return row | _rate(members, row["ms"])


def _rate(members: int, ms: float) -> dict[str, Any]:
    return {"body_steps_per_s": 1e3 * bench_rigid.BODIES * members / ms}


def brax_spheres(members: int, steps: int) -> dict[str, Any]:
    """Brax's spring pipeline on the same scenes."""
    run, _ = bench_rigid.brax_spring("spheres", members, steps, 0)
    ms = 1e3 * timed(run) / steps
    return {"ms": ms} | _rate(members, ms)


def mjx_spheres(members: int, steps: int) -> dict[str, Any]:
    """MJX on the same scenes."""
    import mujoco
    from mujoco import mjx

    system = mjx.put_model(mujoco.MjModel.from_xml_string(bench_rigid.model_of("spheres")))
    empty = mjx.make_data(system)
    spread = 0.005 * jax.random.uniform(jax.random.key(0), (members, bench_rigid.BODIES, 3))

    def start(spread: jax.Array) -> Any:
        place = empty.qpos.reshape(bench_rigid.BODIES, 7)
        return empty.replace(qpos=place.at[:, :3].add(spread).ravel())

    def advance(data: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda _, data: jax.vmap(lambda d: mjx.step(system, d))(data), data)

    row, _ = measured(advance, jax.jit(jax.vmap(start))(spread), turns=steps)
    return row | _rate(members, row["ms"])


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

    return measured(repeated, position, turns=20)[0]


def rebuild(atoms: int) -> dict[str, Any]:
    """Neighbor list from positions."""
    interaction, position, cell, params, _ = _liquid(atoms)
    return measured(lambda position: interaction.prepare(position, cell, params), position)[0]


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
    row, result = measured(run, *state, turns=steps)
    return row | {"builds": int(result[3].builds - state[3].builds), "overflow": bool(result[3].overflowed)}


def jax_md(atoms: int) -> dict[str, Any]:
    """Forces and rebuilds of jax-md, of its fastest list."""
    position, side = bench_molecular.liquid(atoms)
    rows = bench_molecular.jax_md(position, side, np.float32)
    return {f"{name}_ms": 1e3 * timed(run) for name, (run, _) in rows.items()}


def flow(cells: tuple[int, ...], steps: int, **numerics: Any) -> dict[str, Any]:
    """Steps of a channel flow by Adams-Bashforth."""
    place = bench_flow.channel_domain(cells)
    simulation = bench_flow.flow(
        place, bench_flow.eddies(place), 1e-3, 1e-3, method="adams_bashforth", scheme="central", **numerics
    )
    state = bench_flow.started(simulation)
    return measured(lambda state: segment(simulation, steps)(state, simulation.params), state, turns=steps)[0]


def jax_cfd(cells: tuple[int, ...], steps: int) -> dict[str, Any]:
    """Euler steps of jax-cfd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        velocity, advance = jax_cfd_channel.channel(cells, (bench_flow.LENGTH,) * (len(cells) - 1))
        return measured(lambda v: jax.lax.fori_loop(0, steps, lambda _, v: advance(v), v), velocity, turns=steps)[0]


def here_and_on_cpu(work: Callable[[], tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """Return a row with the time on the CPU, and the largest difference of the results, relative to the largest value.

    Args:
        work: measures a row, and returns it with numbers by name.
    """
    row, here = work()
    with computing_on("cpu"):
        on_cpu, there = work()

    def apart(name: str) -> float:
        return float(np.max(np.abs(here[name] - there[name])) / (np.max(np.abs(there[name])) + 1e-30))

    worst = max(there, key=apart)
    return row | {"cpu_ms": on_cpu["ms"], f"{worst}_differs_by": apart(worst)}


def scenario(name: str, steps: int, members: int = 0) -> dict[str, Any]:
    """Steps of a scenario, or of members with other seeds, here and on the CPU."""
    described = load(name)
    with precision(described.run.precision):
        simulation = build(described)
        many = ensemble(simulation) if members else simulation
        keys = jax.random.split(jax.random.key(0), members) if members else jax.random.key(0)

        def work() -> tuple[dict[str, Any], dict[str, Any]]:
            state = jax.jit(many.init)(many.params, keys)
            row, after = measured(lambda state: segment(many, steps)(state, many.params), state, turns=steps)
            return row, jax.device_get(jax.jit(many.diagnose)(after, many.params))

        return here_and_on_cpu(work)


def derivative(name: str, parameter: str, steps: int) -> dict[str, Any]:
    """Derivative in reverse mode of the sum of what a scenario diagnoses, after some steps, here and on the CPU."""
    described = load(name)
    with precision(described.run.precision):
        simulation = build(described)
        params, key = simulation.params, jax.random.key(0)

        def total(value: jax.Array) -> jax.Array:
            now = {**params, parameter: value}
            state = segment(simulation, steps)(simulation.init(now, key), now)
            numbers = jax.tree.leaves(simulation.diagnose(state, now))
            return sum((jnp.sum(n) for n in numbers if jnp.issubdtype(n.dtype, jnp.floating)), jnp.zeros(()))

        def work() -> tuple[dict[str, Any], dict[str, Any]]:
            row, (value, slope) = measured(jax.value_and_grad(total), params[parameter], turns=steps)
            return row, {"value": value, "derivative": slope}

        return here_and_on_cpu(work)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the rows, for an accelerator or, tiny, for `--smoke`."""

    scenes: tuple[int, ...] = (1024, 16_384, 131_072)
    atoms: tuple[int, ...] = (32_000, 1_048_576)
    cells: tuple[tuple[int, ...], ...] = ((256, 128), (1024, 512), (256, 256, 256))
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    derivatives: tuple[str, ...] = tuple(DERIVATIVES)
    later: tuple[str, ...] = LATER
    steps: int = 50
    members: int = 256


TINY = Sizes((2,), (500,), ((16, 8),), ("taylor_green",), ("bouncing_ball",), (), steps=2, members=2)


def rows(sizes: Sizes) -> Iterator[tuple[str, Row]]:
    """Yield the name of each row and what measures it, in the order of their importance."""
    few, fewest = max(sizes.steps // 5, 1), sizes.scenes[0]
    for members in sizes.scenes:
        yield f"spheres, {members} scenes", functools.partial(bodies, "spheres", members, sizes.steps)
        yield f"spheres, {members} scenes: brax", functools.partial(brax_spheres, members, sizes.steps)
    yield f"spheres, {fewest} scenes: MJX", functools.partial(mjx_spheres, fewest, few)
    yield f"pile, {fewest} scenes", functools.partial(bodies, "pile", fewest, few)
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
    for name in sizes.derivatives:
        yield f"derivative of {name}", functools.partial(derivative, name, DERIVATIVES[name], few)
    for name in sizes.scenarios:
        yield f"{sizes.members} members of {name}", functools.partial(scenario, name, few, sizes.members)
    for name in sizes.later:
        yield f"scenario {name}", functools.partial(scenario, name, few)


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
    """Run all rows in children, each within its limit, and write them to a file as they end."""
    names, end, number = [name for name, _ in rows(sizes)], time.monotonic() + WHOLE, 0
    with output.open("w") as file:

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
                began, allowed, text, problem = time.monotonic(), START + LIMIT, b"", ""
                while number < len(names) and not problem:
                    wait = min(began + allowed, end) - time.monotonic()
                    if not select.select([child.stdout], [], [], max(wait, 0))[0]:
                        problem = f"no result within {time.monotonic() - began:.0f} s"
                    elif not (piece := os.read(child.stdout.fileno(), 65_536)):
                        problem = f"the process ended with code {child.wait()}"
                    else:
                        *lines, text = (text + piece).split(b"\n")
                        for line in lines:
                            # Libraries print lines of their own.
                            if line.startswith(b'{"row"'):
                                save(json.loads(line))
                                number, began, allowed = number + 1, time.monotonic(), LIMIT
                child.kill()
            if problem:
                save({"row": number, "name": names[number], "error": problem})
                number += 1
        for left in range(number, len(names)):
            save({"row": left, "name": names[left], "error": "out of time"})


COLUMNS = {
    "ms": "ms",
    "cpu_ms": "on the CPU, ms",
    "launches": "launches",
    "compile_s": "compiled in, s",
    "same_bytes": "same bytes",
}


def table(path: Path) -> str:
    """Return the saved rows as a table in Markdown, with the card, and what was not measured."""
    saved = [json.loads(line) for line in path.read_text().splitlines()]
    card = next((row["device"] for row in saved if "device" in row), "no device")
    known = {"row", "name", "device", "spent_s", *COLUMNS}
    text = [
        f"Measured on {card}.",
        "",
        f"| work | {' | '.join(COLUMNS.values())} | |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for row in saved:
        if "error" not in row:
            others = ", ".join(f"{key.replace('_', ' ')} {_shown(row[key])}" for key in row if key not in known)
            text.append(f"| {' | '.join([row['name'], *(_shown(row.get(key)) for key in COLUMNS), others])} |")
    missing = [f"- {row['name']}: {' '.join(row['error'].split())}" for row in saved if "error" in row]
    return "\n".join([*text, *(["", "Not measured:", "", *missing] if missing else []), ""])


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_page(path: Path, rows: str) -> None:
    """Write the table into a page, between the two comments that mark its place."""
    text = path.read_text()
    if not ROWS.search(text):
        raise SystemExit(f"{path}: the comments around the rows are missing")
    path.write_text(ROWS.sub(lambda _: rows, text))


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes; only prints the table")
    parser.add_argument("--output", type=Path, default=Path("accelerator.jsonl"), help="file of rows")
    parser.add_argument("--from", type=int, dest="first", help="measure in this process, from this row on")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing; take the rows of a file")
    parser.add_argument("--page", type=Path, default=PAGE, help="page that gets the table (default: docs/speed.md)")
    options = parser.parse_args()
    sizes = TINY if options.smoke else Sizes()
    if options.smoke:
        global REPEATED
        REPEATED = 0.0
        use_compilation_cache()
    if options.first is not None:
        measure(sizes, options.first)
        return
    if not options.table:
        guarded(sizes, options.smoke, options.output)
    text = table(options.table or options.output)
    print(text)
    if not options.smoke:
        write_page(options.page, text)


if __name__ == "__main__":
    main()
