"""Small simulations with known answers, for testing the transformations alone."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.pytrees import pytree
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status, converged_when


@pytree
class OscillatorState:
    position: jax.Array
    velocity: jax.Array
    time: jax.Array
    key: jax.Array


def oscillator(size: int = 1) -> Simulation:
    """Harmonic oscillator by symplectic Euler, with a random phase drawn from the key."""

    def init(params, key):
        phase = jax.random.uniform(key, (size,), dtype=params["frequency"].dtype)
        zero = jnp.zeros_like(params["frequency"])
        return OscillatorState(position=jnp.cos(phase), velocity=jnp.sin(phase), time=zero, key=key)

    def step(state, params):
        dt, frequency = params["time_step"], params["frequency"]
        velocity = state.velocity - dt * frequency**2 * jnp.sin(state.position)
        position = state.position + dt * velocity
        return OscillatorState(position=position, velocity=velocity, time=state.time + dt, key=state.key)

    def diagnose(state, params):
        energy = 0.5 * jnp.sum(state.velocity**2) + params["frequency"] ** 2 * jnp.sum(1 - jnp.cos(state.position))
        return {"time": state.time, "energy": energy, "position": state.position[0]}

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"position": state.position},
        diagnose=diagnose,
        params={"frequency": jnp.asarray(1.3, dtype=float), "time_step": jnp.asarray(0.01, dtype=float)},
        dimensions={"position": ("oscillator",)},
    )


def stepping_together(batches: list) -> Simulation:
    """Oscillator with a step of many members, which appends the lengths of the arrays that it gets."""
    alone = oscillator()

    def step_members(states, params):
        batches.append({leaf.shape[0] for leaf in jax.tree.leaves((states, params))})
        return jax.vmap(alone.step)(states, params)

    return dataclasses.replace(alone, step_members=step_members)


@pytree
class DescentState:
    position: jax.Array
    force: jax.Array
    iteration: jax.Array


def descent(tolerance: float = 1e-12, size: int = 6) -> Simulation:
    """Gradient descent on a chain of quartic springs, free to translate: one zero mode, as for molecules."""

    def energy(position, params):
        stretch = jnp.diff(position) - params["rest"]
        return jnp.sum(0.5 * params["stiffness"] * stretch**2 + 0.25 * stretch**4) + 0.5 * jnp.sum(
            jnp.sin(position[2:] - position[:-2])
        )

    gradient = jax.grad(energy)

    def init(params, key):
        position = params["rest"] * jnp.arange(size) + 0.1 * jax.random.normal(key, (size,), params["rest"].dtype)
        return DescentState(position=position, force=-gradient(position, params), iteration=jnp.int32(0))

    def step(state, params):
        position = state.position + 0.1 * state.force
        return DescentState(position=position, force=-gradient(position, params), iteration=state.iteration + 1)

    def diagnose(state, params):
        return {
            "iteration": state.iteration,
            "length": state.position[-1] - state.position[0],
            "max_force": jnp.max(jnp.abs(state.force)),
        }

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"position": state.position},
        diagnose=diagnose,
        params={"rest": jnp.asarray(1.0, dtype=float), "stiffness": jnp.asarray(2.0, dtype=float)},
        status=converged_when(lambda state, params: jnp.max(jnp.abs(state.force)) < tolerance),
        converges=True,
        equilibrium=Equilibrium(
            unknowns=lambda state: state.position,
            residual=gradient,
            replace=lambda state, x: DescentState(position=x, force=state.force, iteration=state.iteration),
            project=lambda x: x - jnp.mean(x),
        ),
    )


def countdown() -> Simulation:
    """Takes as many steps as its state says, exactly: converges at 0, stalls at 13.25, and turns into NaN below 0."""

    def status(state, params):
        codes = jnp.where(state == 13.25, Status.STALLED, jnp.where(state == 0, Status.CONVERGED, Status.OK))
        return jnp.where(jnp.isnan(state), Status.NON_FINITE, codes).astype(jnp.int32)

    return Simulation(
        init=lambda params, key: params["value"],
        step=lambda state, params: jnp.where(state < 0, jnp.nan, state - 1),
        observe=lambda state, params: {"state": state},
        diagnose=lambda state, params: {"left": state},
        params={"value": jnp.asarray(1.0, dtype=float)},
        converges=True,
        status=status,
    )
