"""Channel flow beside jax-cfd and NumPy: time per step, cost at equal accuracy, derivatives, ensembles.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_flow.py [steps] [wave] [gradient] [ensemble]``.
Everything in float32; times are the least of ``--repeats`` runs taken in turn, compilation apart. ``--threads 1`` holds
XLA to one thread, ours and jax-cfd's; NumPy's transforms have one in any case, with two they take longer.
``--devices 2`` makes two devices of the CPU, over which ensembles spread.
"""

import argparse
import dataclasses
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation
from simkit.flow.boundary.domain import Domain, domain
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.grid import Velocity, bounded_axis, periodic_axis
from simkit.flow.operators.differences import curl
from simkit.flow.spectral.fourier_chebyshev import spectral_channel
from simkit.flow.spectral.orr_sommerfeld import leading_wave
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.benchmarks import jax_cfd_channel, numpy_channel
from tests.benchmarks.timing import Work, best, compiled

LENGTH = 6.0
JAX_CFD = "jax-cfd Euler, fast diagonalization"
REYNOLDS, DURATION = 7500.0, 50.0


def flow(place: Domain, velocity: Velocity, viscosity: float, time_step: float, **numerics: Any) -> Simulation:
    """Return the flow from a given velocity that a pressure gradient drives toward 1 - y^2."""
    still = (0.0,) * (place.grid.dimension - 1)
    start, step = stepper(
        Equations(
            place,
            viscosity=lambda params: params["viscosity"],
            time_step=fixed_time_step,
            force=lambda velocity, scalar, params, time: (2 * params["viscosity"], *still),
            **numerics,
        )
    )
    velocity = jax.tree.map(jnp.float32, velocity)
    return Simulation(
        init=lambda params, key: start(velocity, params),
        step=step,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"time": state.time[0], "energy": kinetic_energy(state.velocity, place.grid)},
        params={"viscosity": jnp.float32(viscosity), "time_step": jnp.float32(time_step)},
    )


def channel_domain(cells: tuple[int, ...], length: float = LENGTH, stretching: float = 0.0) -> Domain:
    """Return a channel with walls across y, periodic along the other axes."""
    axes = [periodic_axis(n, length) for n in cells]
    axes[1] = bounded_axis(cells[1], 2.0, -1.0, stretching)
    return domain(tuple(axes), (None, ("wall", "wall"), None)[: len(cells)])


def eddies(place: Domain) -> Velocity:
    """Return random eddies in the plane of the first two axes, and nothing along the third."""
    if place.grid.dimension == 2:
        return random_eddies(place.grid, jax.random.key(0), jnp.float32)
    plane = random_eddies(channel_domain(place.grid.cells[:2]).grid, jax.random.key(0), jnp.float32)
    u, v = (jnp.repeat(f[..., None], place.grid.cells[2], axis=2) for f in plane)
    return u, v, jnp.zeros(place.grid.shape(2), jnp.float32)


def started(simulation: Simulation) -> Any:
    """Return the initial state."""
    return jax.jit(simulation.init)(simulation.params, jax.random.key(0))


def quiet(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a maker of jax-cfd's without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*arguments, **options)


def steps(repeats: int) -> None:
    """Print the time of a step and of a projection with all that belongs to it."""
    for cells, count in (((256, 128), 40), ((512, 256), 10), ((64, 64, 32), 10)):
        place = channel_domain(cells)
        every = tuple(range(len(cells)))
        ours = {
            "simkit Adams-Bashforth": (1, {"method": "adams_bashforth"}),
            "simkit Adams-Bashforth, implicit friction": (1, {"method": "adams_bashforth", "implicit": every}),
            "simkit Runge-Kutta": (3, {"method": "runge_kutta"}),
        }
        work, projections, outside = {}, {}, {}
        for name, (number, numerics) in ours.items():
            sim = flow(place, eddies(place), 1e-3, 1e-3, **numerics)
            work[name], projections[name] = compiled(segment(sim, count), started(sim), sim.params)[0], number
        theirs, advance = quiet(jax_cfd_channel.channel, cells, (LENGTH, LENGTH))
        run, _ = compiled(lambda v, f=advance, n=count: jax.lax.fori_loop(0, n, lambda _, v: f(v), v), theirs)
        work[JAX_CFD], projections[JAX_CFD] = run, 1
        for solver in ("eigenvectors", "cosine") if len(cells) == 2 else ():
            own, move = numpy_channel.channel(cells, LENGTH, solver=solver)
            name = f"NumPy, {solver}"
            outside[name], projections[name] = lambda s=own, f=move, n=count: [f(s) for _ in range(n)], 1
        # NumPy's threads wait for more work by spinning, which would slow the others down.
        times = best(work, repeats) | best(outside, repeats)
        references = ["simkit Adams-Bashforth", "simkit Runge-Kutta"]
        print(f"\n{' x '.join(map(str, cells))} cells, ms; the last columns: time per projection over that of ours")
        print(f"{'':44}{'step':>10}{'projection':>12}{'/ simkit AB2':>14}{'/ simkit RK3':>14}")
        per = {name: time / count / projections[name] for name, time in times.items()}
        for name in times:
            ratios = "".join(f"{per[name] / per[reference]:14.2f}" for reference in references)
            print(f"{name:44}{times[name] / count * 1e3:10.3f}{per[name] * 1e3:12.3f}{ratios}")


def wave(repeats: int) -> None:
    """Print what it costs to find the growth rate of a Tollmien-Schlichting wave."""
    exact = leading_wave(REYNOLDS, 1.0)
    work, growth = {}, {}

    def add(name: str, run: Work, start: jax.Array) -> None:
        growth[name] = float(jnp.log(run() / start)) / (2 * DURATION)
        work[name] = run

    place, time_step = channel_domain((16, 128), 2 * np.pi, stretching=2.0), 0.25
    (x, y), across = (a.points for a in place.grid.axes), place.grid.axes[1]
    u, v = curl(jnp.asarray(1e-3 * exact.streamfunction(x, y), jnp.float32), place.grid)
    parabola = np.diff(across.faces - across.faces**3 / 3) / across.widths
    sim = flow(place, (u + parabola, v), 1 / REYNOLDS, time_step, method="runge_kutta", implicit=(1,))
    widths = jnp.asarray(across.widths, jnp.float32)

    def energy_of(state) -> jax.Array:
        u = state.velocity[0]
        return jnp.sum((u - u.mean(axis=0)) ** 2 * widths)

    run, start = segment(sim, round(DURATION / time_step)), started(sim)
    after, _ = compiled(lambda s, p, f=run: energy_of(f(s, p)), start, sim.params)
    add("simkit finite volume, 16 x 128", after, energy_of(start))
    sim = spectral_channel(points=(4, 33)).with_params(reynolds=REYNOLDS, perturbation=1e-4, time_step=0.5)
    run, start = segment(sim, round(DURATION / 0.5)), started(sim)
    after, _ = compiled(lambda s, p, f=run: jnp.sum(f(s, p).amplitudes[1] ** 2), start, sim.params)
    add("simkit spectral, 4 x 33", after, start.start_energy)

    def shape(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = np.exp(1j * x[:, 0])[:, None]
        return np.real(along * exact.shape(y[0], 1)), np.real(-1j * along * exact.shape(y[0]))

    peer = "jax-cfd Euler, 128 x 128"
    theirs, advance = quiet(jax_cfd_channel.tollmien_schlichting, shape, reynolds=REYNOLDS, time_step=0.025)
    count, energy = round(DURATION / 0.025), jax_cfd_channel.wave_energy
    after, _ = compiled(lambda v: energy(jax.lax.fori_loop(0, count, lambda _, v: advance(v), v)), theirs)
    add(peer, after, energy(theirs))
    times = best(work, repeats)
    print(f"\nTollmien-Schlichting wave, Re = {REYNOLDS:g}, {DURATION:g} time units, exact {exact.growth_rate:.6f}")
    print(f"{'':36}{'growth rate':>14}{'error, %':>10}{'ms':>10}{'jax-cfd / it':>14}")
    for name, time in times.items():
        error = 100 * abs(growth[name] / exact.growth_rate - 1)
        print(f"{name:36}{growth[name]:14.6f}{error:10.3f}{time * 1e3:10.1f}{times[peer] / time:14.1f}")


def gradient(repeats: int, cells: tuple[int, int] = (256, 128), count: int = 200) -> None:
    """Print the cost of the derivative of the energy at the end with respect to the velocity at the start."""
    place, programs = channel_domain(cells), {}
    for method in ("adams_bashforth", "runge_kutta"):
        sim = flow(place, eddies(place), 1e-3, 1e-3, method=method)
        run, begin = segment(sim, count), started(sim)

        def energy(velocity, run=run, begin=begin, params=sim.params):
            state = run(dataclasses.replace(begin, velocity=velocity), params)
            return kinetic_energy(state.velocity, place.grid)

        programs[f"simkit {method}"] = compiled(jax.value_and_grad(energy), begin.velocity)
    theirs, advance = quiet(jax_cfd_channel.channel, cells, (LENGTH,))

    def peer(velocity, each=advance):
        velocity, _ = jax.lax.scan(lambda v, _: (each(v), None), velocity, None, length=count)
        return sum(jnp.mean(u.data**2) for u in velocity) / 2

    once = jax.checkpoint(advance, prevent_cse=False)
    programs["jax-cfd Euler"] = compiled(jax.value_and_grad(peer), theirs)
    programs["jax-cfd Euler, jax.checkpoint of its step"] = compiled(
        jax.value_and_grad(lambda v: peer(v, once)), theirs
    )
    times = best({name: run for name, (run, _) in programs.items()}, repeats)
    print(f"\nderivative through {count} steps of {cells[0]} x {cells[1]} cells")
    print(f"{'':44}{'s':>10}{'MB':>10}{'time ratio':>12}{'memory ratio':>14}")
    for name, (_, memory) in programs.items():
        ratios = times["jax-cfd Euler"] / times[name], programs["jax-cfd Euler"][1] / memory
        print(f"{name:44}{times[name]:10.3f}{memory:10.1f}{ratios[0]:12.2f}{ratios[1]:14.1f}")


def ensembles(repeats: int, members: int = 16) -> None:
    """Print the time of an ensemble per member and step, beside one member alone."""
    for cells, count in (((64, 48), 100), ((128, 64), 50), ((256, 128), 20)):
        sim = flow(channel_domain(cells), eddies(channel_domain(cells)), 1e-3, 1e-3, method="runge_kutta")
        many = ensemble(sim, ("viscosity",))
        params = sim.params | {"viscosity": jnp.linspace(1e-3, 2e-3, members, dtype=jnp.float32)}
        keys = jax.random.split(jax.random.key(0), members)
        # As the chunks of a sweep: a part of the members on each device, in a thread.
        parts = []
        for device, of_part in zip(
            jax.local_devices(), np.array_split(np.arange(members), len(jax.local_devices())), strict=True
        ):
            viscosity, keys_of_part = jax.device_put((params["viscosity"][of_part], keys[of_part]), device)
            own = params | {"viscosity": viscosity}
            parts.append(compiled(segment(many, count), jax.jit(many.init)(own, keys_of_part), own)[0])
        with ThreadPoolExecutor(len(parts)) as pool:
            work = {
                "one": compiled(segment(sim, count), started(sim), sim.params)[0],
                "many": lambda pool=pool, parts=parts: list(pool.map(lambda part: part(), parts)),
            }
            times = best(work, repeats)
        alone, together = times["one"] / count * 1e3, times["many"] / count / members * 1e3
        size = f"{cells[0]:4} x {cells[1]:3}"
        print(f"{size}: alone {alone:7.3f} ms, one of {members} {together:7.3f}, {alone / together:5.2f}x")


SECTIONS = {"steps": steps, "wave": wave, "gradient": gradient, "ensemble": ensembles}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of XLA; by default one for each core")
    parser.add_argument("--devices", type=int, default=1, help="to make of the CPU")
    options = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", options.devices)
    if options.threads:
        # Read when the first array is made.
        os.environ["PJRT_NPROC"] = str(options.threads)
    for section in options.sections:
        SECTIONS[section](options.repeats)
