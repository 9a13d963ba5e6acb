"""Rigid bodies in contact: ours, brax's spring pipeline and MuJoCo's C engine in turn.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_rigid.py [spheres pile single many walkers compile memory]``.
Float32, on the processor, all on all cores: MuJoCo, in float64, by the threads of `mujoco.rollout`, ours and brax with
the members divided between devices. All follow the same bodies from the same places at one time step; rates are members
times steps per second, the best of ``--repeats`` runs taken in turn, compilation apart.
What they do per step differs: MuJoCo and ours solve for contact forces, ours with the number of
sweeps that the row names, while a spring pipeline applies penalty impulses once, at no friction cone that stacks could
stand on. The largest overlap at the end stands beside every rate.

Walkers are the models of brax, from one set of states: ours on the engine in joint coordinates, MJX, brax's generalized
pipeline and `mujoco.rollout` on one thread, in turn, per second of CPU time, which other programs on the machine change
little. Beside them stand the Jacobian of a step by the velocities, ours and MJX's, and what its compilation takes. The
peers' contacts are soft, by the few solver iterations of the models; ours hard and solved to rounding.
"""

import argparse
import dataclasses
import functools
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import enlarged, overflow_of, sized_like
from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment, trajectory
from simkit.core.simulation import Simulation
from simkit.rigid import bouncing_ball, mjcf
from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.vector import Vector, stacked
from simkit.rigid.bodies.bodies import Bodies, repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.benchmarks.timing import best, cost

TIME_STEP, BODIES, FRICTION = 0.004, 10, 0.5
MUJOCO_SHAPES = {"spheres": 'type="sphere" size="0.1"', "pile": 'type="box" size="0.1 0.1 0.1"'}


def places(kind: str) -> np.ndarray:
    """Return where the bodies start, (bodies, 3): spheres side by side, boxes in a tower that leans and tumbles."""
    index = np.arange(BODIES)
    if kind == "spheres":
        return np.stack([0.3 * (index % 4), 0.3 * (index // 4), 0.12 + 0.02 * index], axis=1)
    return np.stack([0.06 * (index % 3), 0.05 * (index % 2), 0.11 + 0.22 * index], axis=1)


def scene(kind: str, method: Impulses, bodies: int = BODIES) -> Simulation:
    """Return our simulation; every seed starts a little elsewhere."""

    def shapes(params: dict[str, jax.Array]) -> Bodies:
        one = sphere(1.0, 0.1, FRICTION) if kind == "spheres" else box(1.0, (0.2, 0.2, 0.2), FRICTION)
        return repeat(one, bodies)

    def start(params, bodies, key):
        at = jnp.asarray(places(kind)[: bodies.mass.shape[0]], dtype=float)
        at = at + 0.005 * jax.random.uniform(key, at.shape, at.dtype)
        return motion_of(bodies, Vector(at[:, 0], at[:, 1], at[:, 2]))

    params = {"gravity": jnp.asarray(9.81, dtype=float), "time_step": jnp.asarray(TIME_STEP, dtype=float)}
    return simulate(
        Scene(
            params=params,
            bodies=shapes,
            start=start,
            dynamics=method,
            planes=lambda params: floor(),
            loads=(gravity(),),
        )
    )


def model_of(kind: str, at: np.ndarray | None = None) -> str:
    """Return the same scene in MuJoCo's language, or one of bodies at other places."""
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom {MUJOCO_SHAPES[kind]} mass="1" friction="{FRICTION} 0 0"/></body>'
        for x, y, z in (places(kind) if at is None else at)
    )
    return (
        f'<mujoco><option timestep="{TIME_STEP}" integrator="Euler" gravity="0 0 -9.81"/><worldbody>'
        f'<geom type="plane" size="50 50 1" friction="{FRICTION} 0 0"/>{bodies}</worldbody></mujoco>'
    )


def on_all_cores[State](run: Callable[[State], State], members: int) -> Callable[[State], State]:
    """Return a compiled run of many members that gives every core its share, as a sweep over devices does."""
    if members == 1:
        return jax.jit(run)
    mesh, spread = jax.sharding.Mesh(np.asarray(jax.devices()), ("member",)), jax.sharding.PartitionSpec("member")
    split = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=spread, out_specs=spread, check_vma=False))
    return lambda state: split(jax.device_put(state, jax.sharding.NamedSharding(mesh, spread)))


def ours(kind: str, method: Impulses, members: int, steps: int, settle: int) -> tuple[Callable[[], None], float]:
    """Return a timed run from settled states, and the largest overlap after it."""
    simulation = scene(kind, method)
    many = simulation if members == 1 else ensemble(simulation)
    keys = jax.random.split(jax.random.key(0), members)
    state = jax.jit(many.init)(many.params, keys[0] if members == 1 else keys)
    advance = segment(many, steps)
    run = on_all_cores(lambda state: advance(state, many.params), members)
    for _ in range(max(1, settle // steps)):
        state = run(state)
    overlap = jax.jit(many.diagnose)(run(state), many.params)["penetration"]
    return lambda: jax.block_until_ready(run(state)), float(jnp.max(overlap))


def mujoco_rollout(kind: str, members: int, steps: int, settle: int, threads: int) -> tuple[Callable[[], None], float]:
    """Return a timed rollout from settled states, and the largest overlap after it."""
    import mujoco
    from mujoco import rollout

    model = mujoco.MjModel.from_xml_string(model_of(kind))
    data = [mujoco.MjData(model) for _ in range(threads)]
    start = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    rng, states = np.random.default_rng(0), np.zeros((members, size))
    for member in range(members):
        mujoco.mj_resetData(model, start)
        start.qpos.reshape(BODIES, 7)[:, :3] += 0.005 * rng.random((BODIES, 3))
        mujoco.mj_getState(model, start, states[member], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
    settled = pool.rollout(model, data, states, nstep=settle)[0][:, -1].copy() if settle else states
    overlap = 0.0
    for last in pool.rollout(model, data, settled, nstep=steps)[0][:, -1]:
        mujoco.mj_setState(model, start, last, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(model, start)
        overlap = max([overlap, *(-contact.dist for contact in start.contact)])
    return lambda: pool.rollout(model, data, settled, nstep=steps), float(overlap)


def brax_spring(kind: str, members: int, steps: int, settle: int) -> tuple[Callable[[], None], float]:
    """Return a timed run of brax's spring pipeline, and the largest overlap after it."""
    from brax import contact
    from brax.io import mjcf
    from brax.spring import pipeline

    system = mjcf.loads(model_of(kind))
    start = np.tile(np.asarray(system.init_q), (members, 1))
    start.reshape(members, BODIES, 7)[:, :, :3] += 0.005 * np.random.default_rng(0).random((members, BODIES, 3))
    still, nothing = jnp.zeros((members, system.qd_size())), jnp.zeros(system.act_size())
    state = jax.jit(jax.vmap(lambda q, qd: pipeline.init(system, q, qd)))(jnp.asarray(start, np.float32), still)

    def advance(state):
        def step(state, _):
            return jax.vmap(lambda state: pipeline.step(system, state, nothing))(state), None

        return jax.lax.scan(step, state, None, length=steps)[0]

    run = on_all_cores(advance, members)
    for _ in range(max(1, settle // steps)):
        state = run(state)
    # Its states hold no contacts, so they are found once more.
    touching = jax.jit(jax.vmap(lambda x: contact.get(system, x)))(run(state).x)
    overlap = float(-jnp.min(touching.dist))
    return lambda: jax.block_until_ready(run(state)), max(overlap, 0.0)


LAYERS = 4


def heap_places(count: int) -> np.ndarray:
    """Return the centers of bodies in some layers of a square, (count, 3), which slump."""
    index, side = np.arange(count), int(np.ceil(np.sqrt(count / LAYERS)))
    grid = np.stack([index % side, index // side % side, index // side**2], axis=1)
    return 0.205 * grid + [0, 0, 0.105] + 0.002 * np.random.default_rng(0).random((count, 3))


def many_bodies(kind: str, count: int, settle: int, repeats: int, sweeps: Sequence[int]) -> None:
    """Print the time of a step of one scene of many bodies on a floor, ours and MuJoCo's from the same places.

    Overlaps are the largest at the end of the steps that are timed: fewer sweeps than the first number, by which the
    bodies settle, show how many reach MuJoCo's.
    """
    import mujoco

    one = sphere(1.0, 0.1, FRICTION) if kind == "spheres" else box(1.0, (0.2, 0.2, 0.2), FRICTION)

    def simulation_of(sweeps: int) -> Simulation:
        return simulate(
            Scene(
                params={"gravity": jnp.float32(9.81), "time_step": jnp.float32(TIME_STEP)},
                bodies=repeat(one, count),
                start=lambda params, bodies, key: motion_of(bodies, jnp.asarray(heap_places(count), jnp.float32)),
                dynamics=Impulses(sweeps, impacts=1),
                planes=floor(),
                loads=(gravity(),),
            )
        )

    simulation, steps = simulation_of(sweeps[0]), max(5, min(50, 50_000 // count))
    advance, settled = jax.jit(segment(simulation, steps)), 0
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    while settled < settle:
        after = advance(state, simulation.params)
        if overflow_of(after):
            # As a run does, with a larger list from the state before.
            state = sized_like(state, enlarged(after))
            continue
        state, settled = after, settled + steps
    runs = {sweeps[0]: advance} | {few: jax.jit(segment(simulation_of(few), steps)) for few in sweeps[1:]}
    diagnose = jax.jit(simulation.diagnose)
    found = {
        f"ours, {few:2d} sweeps": diagnose(run(state, simulation.params), simulation.params)
        for few, run in runs.items()
    }

    model = mujoco.MjModel.from_xml_string(model_of(kind, np.zeros((count, 3))))
    data = mujoco.MjData(model)
    turn, place = quaternion.stacked(state.motion.orientation), stacked(state.motion.position)
    data.qpos[:] = np.concatenate([place, turn], axis=1).ravel()
    data.qvel[:] = 0
    theirs = max(1, min(steps, 10_000 // count))
    least = best(
        {
            **{
                name: lambda run=run: jax.block_until_ready(run(state, simulation.params))
                for name, run in zip(found, runs.values(), strict=True)
            },
            "MuJoCo C": lambda: mujoco.mj_step(model, data, theirs),
        },
        repeats,
        turn=0,
    )
    micro = {name: 1e6 * each / (theirs if name == "MuJoCo C" else steps) / count for name, each in least.items()}
    overlaps = {name: float(diagnosed["penetration"]) for name, diagnosed in found.items()}
    overlaps["MuJoCo C"] = max((-contact.dist for contact in data.contact), default=0.0)
    contacts = {name: int(diagnosed["contacts"]) for name, diagnosed in found.items()} | {"MuJoCo C": data.ncon}
    for name, each in micro.items():
        print(
            f"  {count:6d} {kind} {name:15s} {each:8.2f} us per body-step  {micro['MuJoCo C'] / each:6.2f} x MuJoCo C"
            f"  largest overlap {1e3 * overlaps[name]:.3f} mm, {contacts[name]} contacts",
            flush=True,
        )


def in_turn(rows: dict[str, tuple[Callable[[], None], float]], work: int, repeats: int, base: str) -> None:
    """Time the rows in turn and print rates, ratios to ``base`` and overlaps."""
    least = best({name: run for name, (run, _) in rows.items()}, repeats, turn=0)
    for name, (_, overlap) in rows.items():
        print(
            f"  {name:32s} {work / least[name]:12,.0f} steps/s  {least[base] / least[name]:7.2f} x {base}"
            f"  largest overlap {1e3 * overlap:.3f} mm",
            flush=True,
        )


def walkers(name: str, members: int, repeats: int, steps: int = 20) -> None:
    """Print rates of a walker of brax, and of the Jacobian of its step, by ours and by peers in turn."""
    import mujoco
    from brax.generalized import pipeline
    from brax.io import mjcf as brax_models
    from mujoco import mjx, rollout

    path = Path(pipeline.__file__).parents[1] / "envs" / "assets" / f"{name}.xml"
    simulation = mjcf(path, engine="simkit")
    many, params = ensemble(simulation), simulation.with_params(velocity_scatter=0.3).params
    advance = jax.jit(segment(many, steps))
    state = jax.jit(many.init)(params, jax.random.split(jax.random.key(0), members))
    for _ in range(15):
        state = advance(state, params)
    position, velocity = state.memory.position, state.memory.velocity
    model = mujoco.MjModel.from_xml_path(str(path))
    device_model, system = mjx.put_model(model), brax_models.load(path)

    def stepped(step: Callable[[Any], Any], start: Any) -> Any:
        return jax.lax.scan(lambda now, _: (step(now), None), start, None, length=steps)[0]

    def data(position: jax.Array, velocity: jax.Array) -> Any:
        return mjx.make_data(device_model).replace(qpos=position, qvel=velocity)

    def by_mjx(position: jax.Array, velocity: jax.Array) -> jax.Array:
        return stepped(lambda now: mjx.step(device_model, now), data(position, velocity)).qpos

    def by_brax(position: jax.Array, velocity: jax.Array) -> jax.Array:
        still = jnp.zeros(system.act_size())
        return stepped(lambda now: pipeline.step(system, now, still), pipeline.init(system, position, velocity)).q

    pool, host = rollout.Rollout(nthread=0), [mujoco.MjData(model)]
    full = np.concatenate([np.zeros((members, 1)), position, velocity], axis=1).astype(float)
    mjx_run, brax_run = jax.jit(jax.vmap(by_mjx)), jax.jit(jax.vmap(by_brax))
    rows = {
        "MJX": lambda: mjx_run(position, velocity),
        "ours": lambda: advance(state, params),
        "brax-generalized": lambda: brax_run(position, velocity),
        "mujoco.rollout, one thread": lambda: pool.rollout(model, host, full, nstep=steps),
    }
    per_second(rows, members * steps, repeats, f"{name} steps")

    one = jax.tree.map(lambda leaf: leaf[0], state)

    def our_step(velocity: jax.Array) -> jax.Array:
        memory = dataclasses.replace(one.memory, velocity=velocity)
        after = simulation.step(dataclasses.replace(one, memory=memory), params).memory
        return jnp.concatenate([after.position, after.velocity])

    def mjx_step(velocity: jax.Array) -> jax.Array:
        after = mjx.step(device_model, data(position[0], velocity))
        return jnp.concatenate([after.qpos, after.qvel])

    jacobians = {}
    for kind, function in (("MJX", mjx_step), ("ours", our_step)):
        lowered = jax.jit(jax.vmap(jax.jacfwd(function))).lower(velocity[: members // 4])
        began = time.process_time()
        program = lowered.compile()
        print(f"  compiling the Jacobian of a step of {name}, {kind}: {time.process_time() - began:.1f} s of CPU")
        jacobians[kind] = functools.partial(program, velocity[: members // 4])
    per_second(jacobians, members // 4, repeats, f"{name} Jacobians")


def per_second(rows: dict[str, Callable[[], Any]], work: int, repeats: int, what: str) -> None:
    """Print rates per second of CPU time, and ratios to the first row, of programs that run in turn."""
    for run in rows.values():
        jax.block_until_ready(run())
    seconds = {name: [] for name in rows}
    for _ in range(repeats):
        for name, run in rows.items():
            seconds[name].append(cost(run))
    least = {name: min(times) for name, times in seconds.items()}
    base = next(iter(least))
    for name, each in least.items():
        print(
            f"  {name:28s} {work / each:12,.0f} {what} per CPU second  {least[base] / each:7.2f} x {base}", flush=True
        )


def compile_times() -> None:
    """Print what compiling the derivative of a ball's height through 200 steps takes, and brax's after ours.

    By the height at the start, as brax's; and by all twelve parameters, throwing and diagnosing included.
    """
    simulation = bouncing_ball()
    params, key = simulation.params, jax.random.key(0)
    steps, run = segment(simulation, 200), trajectory(simulation, 200, 200)
    start = simulation.init(params, key)

    def thrown(z):
        position = dataclasses.replace(start.ball.position, z=z)
        ball = dataclasses.replace(start.ball, position=position)
        return steps(dataclasses.replace(start, ball=ball), params).ball.position.z

    from brax.io import mjcf
    from brax.spring import pipeline

    system = mjcf.loads(
        f'<mujoco><option timestep="{TIME_STEP}"/><worldbody><geom type="plane" size="50 50 1"/>'
        '<body pos="0 0 1"><freejoint/><geom type="sphere" size="0.1"/></body></worldbody></mujoco>'
    )

    def brax_thrown(z):
        state = pipeline.init(system, system.init_q.at[2].set(z), jnp.zeros(6))
        nothing = jnp.zeros(0)
        state = jax.lax.scan(lambda s, _: (pipeline.step(system, s, nothing), None), state, None, length=200)[0]
        return state.x.pos[0, 2]

    seconds = []
    # The first program of a process pays for waking the compiler.
    for function, argument in (
        (jnp.sin, 1.0),
        (thrown, 1.0),
        (lambda params: run(params, key)[2]["height"][-1], params),
        (brax_thrown, 1.0),
    ):
        lowered = jax.jit(jax.grad(function)).lower(argument)
        began = time.process_time()
        lowered.compile()
        seconds.append(time.process_time() - began)
    _, ours, all_parameters, theirs = seconds
    print(
        f"  compile, 200-step gradient: ours {ours:.2f} s, by all parameters {all_parameters:.2f} s, "
        f"brax-spring {theirs:.2f} s of CPU: {theirs / ours:.1f} x, {theirs / all_parameters:.1f} x"
    )


def reverse_memory() -> None:
    """Print the temporaries of reverse mode through 1,000 steps of 64 scenes of 10 spheres."""
    simulation = scene("spheres", Impulses(sweeps=1, impacts=1, warm=False))
    many = ensemble(simulation)
    state = jax.eval_shape(many.init, many.params, jax.random.split(jax.random.key(0), 64))
    run = segment(many, 1000)

    def loss(params, state):
        return jnp.sum(run(state, params).motion.position.x)

    memory = jax.jit(jax.grad(loss)).lower(many.params, state).compile().memory_analysis()
    print(
        f"  reverse mode, 1,000 steps x 64 scenes x 10 spheres: {memory.temp_size_in_bytes / 1e6:.1f} MB of temporaries"
    )


def main() -> None:
    """Print the rows asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    choices = ("spheres", "pile", "single", "many", "walkers", "compile", "memory")
    parser.add_argument("rows", nargs="*", default=choices)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--members", type=int, default=1024)
    parser.add_argument("--counts", type=int, nargs="*", default=[100, 400, 1600, 10_000])
    parser.add_argument("--sweeps", type=int, nargs="*", default=[12, 4])
    parser.add_argument("--walkers", nargs="*", default=["hopper", "ant", "humanoid"])
    parser.add_argument("--settle", type=int, default=800)
    options = parser.parse_args()
    threads = os.cpu_count() or 1
    jax.config.update("jax_num_cpu_devices", threads)
    one, few, many = Impulses(sweeps=1, impacts=1, warm=False), Impulses(4, impacts=1), Impulses(12, impacts=1)
    for kind, steps, settle in (("spheres", 50, 100), ("pile", 20, 500)):
        if kind in options.rows:
            members = options.members
            print(f"{BODIES} bodies, {kind}, {members} scenes, dt {1e3 * TIME_STEP:g} ms, {threads} cores")
            rows = {
                "ours, 1 sweep": ours(kind, one, members, steps, settle),
                "ours, 4 sweeps, warm": ours(kind, few, members, steps, settle),
                "ours, 12 sweeps, warm": ours(kind, many, members, steps, settle),
                "mujoco.rollout": mujoco_rollout(kind, members, steps, settle, threads),
                "brax-spring": brax_spring(kind, members, steps, settle),
            }
            in_turn(rows, members * steps, options.repeats, "mujoco.rollout")
    if "single" in options.rows:
        print(f"{BODIES} spheres, one scene")
        rows = {
            "ours, 1 sweep": ours("spheres", one, 1, 2000, 0),
            "MuJoCo C, one thread": mujoco_rollout("spheres", 1, 2000, 0, 1),
        }
        in_turn(rows, 2000, options.repeats, "MuJoCo C, one thread")
    if "many" in options.rows:
        print(f"one scene on a floor after {options.settle} steps")
        for kind, most in (("spheres", np.inf), ("pile", 1600)):
            for count in options.counts:
                if count <= most:
                    many_bodies(kind, count, options.settle, options.repeats, options.sweeps)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"  {megabytes:.0f} MB at most, of both")
    if "walkers" in options.rows:
        for name in options.walkers:
            walkers(name, options.members, options.repeats)
    if "compile" in options.rows:
        compile_times()
    if "memory" in options.rows:
        reverse_memory()


if __name__ == "__main__":
    main()
