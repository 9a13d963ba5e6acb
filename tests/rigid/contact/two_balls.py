"""Two balls over a floor, one of them driven by a periodic force: a scene that has every kind of event."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import applied, gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate

KEY = jax.random.key_data(jax.random.key(0))
# z is the height of the lowest point. At rest, out of reach of each other, high above the floor, and nothing acts.
DEFAULTS = {
    "x0": 0.0,
    "y0": 0.0,
    "z0": 50.0,
    "vx0": 0.0,
    "vy0": 0.0,
    "vz0": 0.0,
    "spin0": 0.0,
    "x1": 30.0,
    "y1": 0.0,
    "z1": 50.0,
    "vx1": 0.0,
    "mass0": 0.5,
    "mass1": 0.5,
    "radius0": 0.1,
    "radius1": 0.1,
    "restitution": 0.8,
    "friction": 0.0,
    "gravity": 0.0,
    "amplitude": 0.0,
    "frequency": 5.0,
    "lift": 0.0,
}


def push(motion, bodies, time, p):
    """Return the force on the first, ``amplitude sin(frequency t)`` along x and ``lift sin(frequency t)`` up."""
    del motion
    nothing, first = zeros(bodies.mass), jnp.asarray([1.0, 0.0], bodies.mass.dtype)
    wave = jnp.sin(p["frequency"] * time) * first
    return Wrench(force=Vector(p["amplitude"] * wave, nothing.y, p["lift"] * wave), torque=nothing)


LOADS = (gravity(), applied(push))


def two_balls(kind=sphere, impacts=4, loads=LOADS):
    """Return the simulation."""

    def bodies(p):
        return gather(
            [kind(p[f"mass{n}"], p[f"radius{n}"], friction=p["friction"], restitution=p["restitution"]) for n in (0, 1)]
        )

    def start(p, bodies, key):
        del key
        nothing = zeros(bodies.mass)
        first = jnp.asarray([1.0, 0.0], bodies.mass.dtype)

        def pair(a, b):
            return first * p[a] + (1 - first) * (p[b] if b else 0)

        return motion_of(
            bodies,
            Vector(pair("x0", "x1"), pair("y0", "y1"), pair("z0", "z1") + bodies.radius),
            velocity=Vector(pair("vx0", "vx1"), pair("vy0", None), pair("vz0", None)),
            angular_velocity=Vector(nothing.x, pair("spin0", None), nothing.z),
        )

    params = {name: jnp.asarray(value, dtype=float) for name, value in {**DEFAULTS, "time_step": 0.01}.items()}
    return simulate(
        Scene(
            params=params,
            bodies=bodies,
            start=start,
            dynamics=Events(impacts=impacts),
            planes=lambda p: floor(),
            loads=loads,
        )
    )


def ending(simulation):
    """Return ``(params, steps) -> {name: array}``, the end of a run."""

    def run(params, steps):
        state = simulation.init(params, KEY)
        state = jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)
        seen = simulation.observe(state, params) | simulation.diagnose(state, params)
        return seen | {"status": simulation.status(state, params)}

    return run


@functools.cache
def compiled(x64, kind=sphere):
    del x64
    return jax.jit(ending(two_balls(kind)))


@functools.cache
def compiled_forward():
    """Return ``(params, steps) -> derivatives`` of positions and velocities, by name of the parameter."""
    run = ending(two_balls())

    def ends(params, steps):
        seen = run(params, steps)
        return jnp.concatenate([seen[name].ravel() for name in ("position", "velocity", "angular_velocity")])

    return jax.jit(jax.jacfwd(ends))


def values(duration, steps, **changes):
    unknown = set(changes) - set(DEFAULTS)
    assert not unknown
    return {name: jnp.asarray(float(value)) for name, value in {**DEFAULTS, **changes}.items()} | {
        "time_step": jnp.asarray(duration / steps)
    }


def end(duration, steps, kind=sphere, **changes):
    """Return the observed arrays at the end of a run, as NumPy arrays."""
    seen = compiled(jax.config.jax_enable_x64, kind)(values(duration, steps, **changes), steps)
    return jax.tree.map(np.asarray, seen)


def derivatives(duration, steps, **changes):
    """Return the derivatives of positions, velocities and spins, one after the other, by name of the parameter."""
    return jax.tree.map(np.asarray, compiled_forward()(values(duration, steps, **changes), steps))


def as_one(seen):
    """Return positions, velocities and spins in the order of `derivatives`."""
    return np.concatenate([seen[name].ravel() for name in ("position", "velocity", "angular_velocity")])


def central_differences(duration, steps, names, **changes):
    """Return central differences for comparison with `derivatives`, with an absolute or relative step of 1e-5."""
    found = {}
    for name in names:
        value = {**DEFAULTS, **changes}[name]
        step = 1e-5 * (abs(value) or 1.0)
        above, below = (as_one(end(duration, steps, **{**changes, name: value + change})) for change in (step, -step))
        found[name] = (above - below) / (2 * step)
    return found
