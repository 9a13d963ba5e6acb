"""Relaxation by FIRE with its neighbor lists, beside jax-md; and the derivative of what comes to rest.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_relaxation.py``. Three tables: a FIRE step of a Lennard-Jones
liquid with the rebuilds that fall due; disks from random starts to a largest force; the derivative of a pressure at
rest, implicit beside unrolled reverse mode. Times are the least of ``--repeats`` runs taken in turn, compilation apart.
"""

import argparse
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.converge import converge, converge_with_growth
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.potentials import lennard_jones, soft_sphere
from simkit.molecular.relaxation import relaxation
from tests.benchmarks.bench_molecular import CUTOFF, SKIN, jax_md_liquid, liquid
from tests.benchmarks.timing import best, compiled

CHUNK = 25
RATIO, FRACTION = 1.4, 0.9


def liquid_relaxation(position: np.ndarray, side: float) -> Simulation:
    """Return the relaxation of a Lennard-Jones liquid from given positions."""
    return relaxation(
        pair_interaction(lennard_jones(), cutoff=CUTOFF, skin=SKIN / CUTOFF),
        lambda params, key: jnp.asarray(position, params["sigma"].dtype),
        params={name: jnp.asarray(1.0, dtype=float) for name in ("epsilon", "sigma")},
        scale=lambda params: Scale(params["sigma"], 57 * params["epsilon"] / params["sigma"] ** 2),
        cell=lambda params: jnp.full(3, side, params["sigma"].dtype),
        minimizer="fire",
    )


def disks(count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return random positions, diameters (half small, half large) and the side of the square."""
    diameter = np.where(np.arange(count) < count // 2, 1.0, RATIO)
    side = float(np.sqrt(np.pi / 4 * np.sum(diameter**2) / FRACTION))
    return np.random.default_rng(0).uniform(0, side, (count, 2)), diameter, side


def disk_relaxation(position: np.ndarray, diameter: np.ndarray, side: float, **settings: object) -> Simulation:
    """Return the relaxation of soft disks from given positions; its one parameter scales the diameters."""

    def contact(params):
        sizes = PerParticle(params["size"] * jnp.asarray(diameter, params["size"].dtype), lambda a, b: (a + b) / 2)
        return {"epsilon": jnp.ones_like(params["size"]), "sigma": sizes}

    return relaxation(
        pair_interaction(
            soft_sphere(2.0), cutoff=lambda params: RATIO * params["size"], parameters=contact, skin=0.2, capacity=40
        ),
        lambda params, key: jnp.asarray(position, params["size"].dtype),
        params={"size": jnp.asarray(1.0, dtype=float)},
        scale=lambda params: Scale(params["size"], 1 / params["size"] ** 2),
        cell=lambda params: jnp.full(2, side, params["size"].dtype),
        **settings,
    )


def jax_md_fire(
    make, energy: Callable, shift: Callable, position: np.ndarray, steps: int, tolerance: float, **settings: float
) -> Callable[[], tuple[int, float]]:
    """Return a call of jax-md's documented loop, step and then update the list, that tells steps and largest force."""
    from jax_md import minimize

    init, apply = minimize.fire_descent(energy, shift, **settings)

    @jax.jit
    def advance(state, neighbors):
        def body(carry, _):
            state, neighbors = carry
            state = apply(state, neighbor=neighbors)
            return (state, neighbors.update(state.position)), None

        (state, neighbors), _ = jax.lax.scan(body, (state, neighbors), None, length=CHUNK)
        return state, neighbors, jnp.sqrt(jnp.sum(state.force**2, axis=1)).max()

    start = jnp.asarray(position, jnp.float32)
    first = make.allocate(start)
    begin = jax.jit(lambda x, neighbors: init(x, neighbor=neighbors))

    def run():
        state, neighbors, taken, largest = begin(start, first), first, 0, np.inf
        while taken < steps and largest > tolerance:
            state, neighbors, force = advance(state, neighbors)
            taken, largest = taken + CHUNK, float(force)
            assert np.isfinite(largest), "jax-md's FIRE has blown up"
        assert not bool(neighbors.did_buffer_overflow), "jax-md lost pairs: raise its capacity_multiplier"
        return taken, largest

    return run


def fire_steps(atoms: int, steps: int, repeats: int) -> None:
    """Print the time of a FIRE step of a liquid, rebuilds included."""
    position, side = liquid(atoms, scatter=0.04)
    simulation = liquid_relaxation(position, side)
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    advance = jax.jit(segment(simulation, steps))
    end = advance(state, simulation.params)
    assert not bool(end.neighbors.overflowed)
    work = {"simkit": lambda: jax.block_until_ready(advance(state, simulation.params))}
    for form in ("Dense", "OrderedSparse"):
        make, energy_of, shift = jax_md_liquid(side, form, capacity_multiplier=1.5)
        # With its default time steps, which know nothing of how stiff a bond is, or with pairs closer, it blows up.
        work[f"jax-md {form}"] = jax_md_fire(
            make, energy_of, shift, position, steps, 0.0, dt_start=0.1 * 57**-0.5, dt_max=0.4 * 57**-0.5
        )
    for run in work.values():
        run()
    least = best(work, repeats)
    builds = int(end.neighbors.builds)
    print(f"\nFIRE, Lennard-Jones, {len(position)} atoms, float32, {steps} steps ({builds} rebuilds of ours)")
    for name, seconds in least.items():
        print(f"{name:24} {1e3 * seconds / steps:9.2f} ms per step {seconds / least['simkit']:9.2f}")


def disks_at_rest(count: int, tolerance: float, repeats: int) -> None:
    """Print the time that disks take from random positions to a largest force."""
    position, diameter, side = disks(count)
    work, told, ended = {}, {}, {}

    def ours(minimizer: str) -> Callable[[], None]:
        simulation = disk_relaxation(position, diameter, side, minimizer=minimizer, force_tolerance=tolerance)
        simulation, _ = converge_with_growth(simulation, 20_000)(simulation.params, jax.random.key(0))
        program = jax.jit(
            lambda params: converge(simulation, 20_000)(simulation.init(params, jax.random.key(0)), params)
        )

        def run() -> None:
            ended[f"simkit {minimizer}"] = simulation, jax.block_until_ready(program(simulation.params))

        return run

    for minimizer in ("fire", "lbfgs"):
        work[f"simkit {minimizer}"] = ours(minimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax_md import energy, partition, space
    displacement, shift = space.periodic(side)
    species = jnp.asarray(diameter > 1, jnp.int32)
    sigma = jnp.asarray([[1.0, (1 + RATIO) / 2], [(1 + RATIO) / 2, RATIO]], jnp.float32)
    for form in ("Dense", "OrderedSparse"):
        make, energy_of = energy.soft_sphere_neighbor_list(
            displacement,
            side,
            species=species,
            sigma=sigma,
            dr_threshold=0.2 * RATIO,
            format=partition.NeighborListFormat[form],
            capacity_multiplier=2.0,
        )
        relax = jax_md_fire(make, energy_of, shift, position, 20_000, tolerance)

        def run(relax=relax, name=f"jax-md {form}") -> None:
            told[name] = relax()

        work[f"jax-md {form}"] = run
    for run in work.values():
        run()
    least = best(work, repeats)
    for name, (simulation, end) in ended.items():
        largest = float(simulation.diagnose(end.state, simulation.params)["max_force"])
        told[name] = int(end.iterations), largest
    print(
        f"\n{count} soft disks, packing fraction {FRACTION}, float32, from random positions to a force of {tolerance}"
    )
    for name, seconds in least.items():
        steps, force = told[name]
        ratio = seconds / least["simkit fire"]
        print(f"{name:24} {seconds:9.3f} s {ratio:9.2f}   {steps:6} steps, largest force {force:.1e}")


def derivatives(count: int, steps: int, repeats: int) -> None:
    """Print time, memory and error of the derivative of the pressure at rest with respect to the size of the disks."""
    with jax.enable_x64(True):
        position, diameter, side = disks(count)
        simulation = disk_relaxation(position, diameter, side, minimizer="fire", force_tolerance=1e-12)
        key = jax.random.key(0)

        def pressure_at(state, params):
            return simulation.diagnose(state, params)["pressure"]

        def implicit(params):
            end = converge(simulation, 100_000)(simulation.init(params, key), params)
            return pressure_at(end.state, params)

        def unrolled(params, remember: bool):
            def step(state, _):
                return simulation.step(state, params), None

            body = step if remember else jax.checkpoint(step)
            return pressure_at(jax.lax.scan(body, simulation.init(params, key), None, length=steps)[0], params)

        forms = {
            "implicit": implicit,
            "unrolled": lambda params: unrolled(params, True),
            "unrolled, checkpointed": lambda params: unrolled(params, False),
        }
        work, memory, value = {}, {}, {}
        for name, function in forms.items():
            work[name], memory[name] = compiled(jax.grad(function), simulation.params)
            value[name] = float(work[name]()["size"])
        least = best(work, repeats)
        end = jax.jit(lambda params: converge(simulation, 100_000)(simulation.init(params, key), params))
        rest = end(simulation.params)
        near = jax.jit(lambda params: pressure_at(converge(simulation, 100_000)(rest.state, params).state, params))
        step = 1e-7
        difference = float(near({"size": jnp.asarray(1 + step)}) - near({"size": jnp.asarray(1 - step)})) / (2 * step)
    print(f"\nd pressure / d size at rest, {count} disks, float64: {difference:.8f} by re-relaxed differences")
    print(f"(implicit after {int(rest.iterations)} FIRE steps, unrolled over {steps})")
    for name, seconds in least.items():
        error = abs(value[name] / difference - 1)
        print(f"{name:24} {1e3 * seconds:9.1f} ms {seconds / least['implicit']:7.1f}   ", end="")
        print(f"{memory[name]:9.2f} MB {memory[name] / memory['implicit']:7.1f}   off by {error:.1e}")


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoms", type=int, default=32_000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--disks", type=int, default=4096)
    parser.add_argument("--differentiated", type=int, default=128, metavar="DISKS")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    fire_steps(arguments.atoms, arguments.steps, arguments.repeats)
    disks_at_rest(arguments.disks, 1e-4, arguments.repeats)
    derivatives(arguments.differentiated, 1000, arguments.repeats)


if __name__ == "__main__":
    main()
