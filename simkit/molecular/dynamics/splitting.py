"""Operator splitting of a time step: kicks and drifts of velocity Verlet with the bath and its noise in the middle."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.constraints.groups import Groups
from simkit.molecular.dynamics.method import (
    Bath,
    DynamicsState,
    Evaluate,
    Freedom,
    Method,
    Options,
    Schedule,
    check_given,
    scheduled,
)
from simkit.molecular.dynamics.motion import motion
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


def seed(params: Params, key: jax.Array) -> jax.Array:
    """Return the seed of all noise of a bath, uint32, (2,).

    Args:
        params: unused; the signature is that of ``start`` of a bath.
        key: random key.
    """
    del params
    return jax.random.bits(key, (2,), jnp.uint32)


def key_of_step(bath: jax.Array, iteration: jax.Array) -> jax.Array:
    """Return the random key of one time step.

    Args:
        bath: uint32, (2,), from `seed`.
        iteration: int32, steps since the start.
    """
    return jax.random.fold_in(jax.random.wrap_key_data(bath, impl="threefry2x32"), iteration)


class MidStep(NamedTuple):
    """Time, parameters and masses at the middle of a time step, for the bath.

    Attributes:
        params: parameters.
        step: length of the time step.
        time: at the middle of the step.
        iteration: int32, number of steps before this one.
        temperature: of the bath at that time, energy.
        mass: scalar or (N, 1).
        freedom: degrees of freedom of the velocities.

    Example:
        >>> middle = molecular.dynamics.MidStep(
        ...     params={}, step=0.1, time=0.05, iteration=0, temperature=1.0, mass=1.0, freedom=None
        ... )
        >>> middle.time
        0.05
    """

    params: Params
    step: jax.Array
    time: jax.Array
    iteration: jax.Array
    temperature: jax.Array
    mass: jax.Array
    freedom: Freedom


class Thermostat(NamedTuple):
    """Exchange of energy between velocities and a bath.

    Attributes:
        needs: names of the parameters it takes, besides the temperature.
        start: ``(params, key) -> bath``.
        exchange: ``(bath, velocity, middle) -> (bath, velocity)`` after a whole time step of exchange alone. Velocities
            of frozen particles are reset to zero afterwards.
        received: ``bath -> energy`` taken up by the bath since the start, or ``None`` if it is not computed.
        is_canonical: whether states have the canonical distribution of the temperature.
        caution: on what that depends, in one line; empty for nothing.

    Example:
        >>> def cool(bath, velocity, middle):
        ...     return bath, velocity * jnp.exp(-middle.params["rate"] * middle.step)
        >>> start_bath = lambda params, key: ()
        >>> cooling = molecular.dynamics.Thermostat(("rate",), start_bath, exchange=cool, received=None)
        >>> cooling.needs
        ('rate',)
    """

    needs: tuple[str, ...]
    start: Callable[[Params, jax.Array], Any]
    exchange: Callable[[Any, jax.Array, MidStep], tuple[Any, jax.Array]]
    received: Callable[[Any], jax.Array] | None = None
    is_canonical: bool = False
    caution: str = ""


class Barostat(NamedTuple):
    """Changes of the cell.

    Attributes:
        check: ``params -> None``, refuses params without a required parameter.
        start: ``(params, key) -> bath``.
        rescale: ``(bath, position, velocity, cell, stress, middle) -> (bath, position, velocity, cell)`` after a whole
            time step of changes of the cell alone; the stress is that at the beginning of the step.
        pressure: the pressure p as ``(params, time) -> number``, if states have the distribution of constant pressure
            with a canonical thermostat; otherwise ``None``.
        interval: time steps from one change of the cell to the next, which then is that of all of them.

    Example:
        >>> def squeeze(bath, position, velocity, cell, stress, middle):
        ...     factor = 1 - middle.params["rate"] * middle.step
        ...     return bath, factor * position, velocity, factor * cell
        >>> piston = molecular.dynamics.Barostat(lambda params: None, start=lambda params, key: (), rescale=squeeze)
        >>> free = molecular.interactions.user_energy(lambda x, cell, params: 0.0 * jnp.sum(x))
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 1.0, "friction": 1.0, "rate": 0.1}
        >>> start, cell = lambda params, key: jax.random.uniform(key, (10, 2)), lambda params: jnp.ones(2)
        >>> gas = molecular.dynamics.langevin(free, start, params=params, barostat=piston, cell=cell)
        >>> run = simkit.run(gas, steps=10, every=10)
        >>> print(f"{float(run['volume'][-1]):.4f}, by hand {0.99**20:.4f}")
        0.8179, by hand 0.8179
    """

    check: Callable[[Any], None]
    start: Callable[[Params, jax.Array], Any]
    rescale: Callable[..., tuple[Any, jax.Array, jax.Array, jax.Array]]
    pressure: Schedule | None = None
    interval: int = 1


def thermostatted(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    thermostat: Thermostat,
    *,
    params: dict[str, Any],
    isolated: bool,
    temperature: Schedule | None = None,
    barostat: Barostat | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return the simulation of particles in a bath.

    Args:
        interaction: energy of the particles.
        start: ``(params, key) -> position``, (N, d).
        thermostat: exchange of energy between velocities and bath.
        params: the default parameters.
        isolated: whether the thermostat conserves the total momentum, see `simkit.molecular.dynamics.motion.motion`.
        temperature: of the bath, ``(params, time) -> number``; ``None`` for the parameter.
        barostat: or ``None`` for a constant cell.
        **options: see `simkit.molecular.dynamics.motion.motion`.

    Raises:
        UserError: if a parameter is missing, or an argument contradicts another.

    Example:
        >>> def cool(bath, velocity, middle):
        ...     return bath, velocity * jnp.exp(-middle.params["rate"] * middle.step)
        >>> start_bath = lambda params, key: ()
        >>> cooling = molecular.dynamics.Thermostat(("rate",), start_bath, exchange=cool, received=None)
        >>> free = molecular.interactions.user_energy(lambda x, cell, params: 0.0 * jnp.sum(x))
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 1.0, "rate": 0.5}
        >>> start = lambda params, key: jnp.zeros((100, 2))
        >>> gas = molecular.dynamics.thermostatted(free, start, cooling, params=params, isolated=False)
        >>> run = simkit.run(gas, steps=10, every=10)
        >>> print(f"{float(run['kinetic_energy'][-1] / run['kinetic_energy'][0]):.4f}, by hand {np.exp(-1):.4f}")
        0.3679, by hand 0.3679
    """
    schedule = scheduled("temperature", temperature, params)
    check_given(params, thermostat.needs)
    if barostat is not None:
        barostat.check(params)
    method = splitting(thermostat, schedule, barostat)
    return motion(interaction, start, method, params=params, isolated=isolated, temperature=temperature, **options)


def splitting(
    thermostat: Thermostat | None, temperature: Schedule | None = None, barostat: Barostat | None = None
) -> Method:
    """Return the method with a bath in the middle of each step of velocity Verlet.

        B: v += h/2 F(x)/m    A: x += h/2 v    exchange with the bath    A    B

    Symmetric, so of second order; forces are evaluated once, at the end. Averages of positions are most accurate with
    the bath in the middle: the distribution of a harmonic oscillator is exact in its positions at the end of a step,
    and in its velocities in the middle. A barostat acts after the thermostat, in every step or at its interval, by the
    stress at the beginning of the step: in the middle, positions spread too little. Rigid bonds are kept by RATTLE:
    each drift A ends with positions and velocities that satisfy them, each kick B with velocities that do (with a
    Langevin bath, the geodesic BAOAB scheme).

    Args:
        thermostat: ``None`` for velocity Verlet.
        temperature: of the bath, evaluated at the middle of each step; required with a thermostat.
        barostat: ``None`` for a constant cell.

    Raises:
        UserError: if there is a barostat and no thermostat.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> start = lambda params, key: jnp.array([[1.0, 0.0]])
        >>> verlet = molecular.dynamics.splitting(thermostat=None)
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 0.0}
        >>> bead = molecular.dynamics.motion(spring, start, verlet, params=params, isolated=False)
        >>> step, state = jax.jit(bead.step), bead.init(bead.params, jax.random.key(0))
        >>> print(f"{step(state, bead.params).position[0, 0]:.3f} = 1 - h^2 / 2")
        0.995 = 1 - h^2 / 2

    Reference: Zhang, Liu, Yan, Tuckerman, Liu, J. Phys. Chem. A 123, 6056 (2019), doi:10.1021/acs.jpca.9b02771;
    Leimkuhler, Matthews, Proc. R. Soc. A 472, 20160138 (2016), doi:10.1098/rspa.2016.0138 (rigid bonds).
    """
    if thermostat is None or temperature is None:
        if barostat is not None:
            raise UserError(
                "a barostat needs a thermostat, which velocity_verlet lacks; take langevin, nose_hoover or bussi"
            )
        return Method(start=lambda params, key: (), advance=_verlet, keeps_bonds=True, ends_with_kick=True)

    def start(params: Params, key: jax.Array) -> Any:
        bath = thermostat.start(params, key)
        return bath if barostat is None else (bath, barostat.start(params, jax.random.fold_in(key, 1)))

    def advance(state: DynamicsState, params: Params, mass: jax.Array, evaluate: Evaluate) -> DynamicsState:
        step = params["time_step"]
        velocity = state.velocity + step / 2 * state.force / mass
        position, velocity = evaluate.drift(state.position, velocity, step / 2)
        time = (state.iteration + 0.5).astype(step.dtype) * step
        middle = MidStep(params, step, time, state.iteration, temperature(params, time), mass, state.freedom)
        cell, neighbors = evaluate.cell, state.neighbors
        if barostat is None:
            bath, velocity = thermostat.exchange(state.bath, velocity, middle)
        else:
            heat_bath, cell_bath = state.bath
            heat_bath, velocity = thermostat.exchange(heat_bath, velocity, middle)
            longer = middle._replace(step=barostat.interval * step)
            rescaled = functools.partial(_rescaled, barostat, evaluate, longer, state)
            moving = cell_bath, position, velocity, cell, neighbors
            if barostat.interval == 1:
                moving = rescaled(*moving)
            else:
                is_due = state.iteration % barostat.interval == 0
                # The stress costs as much as the forces.
                moving = jax.lax.cond(is_due, rescaled, lambda *same: same, *moving)
            cell_bath, position, velocity, cell, neighbors = moving
            bath = heat_bath, cell_bath
        # Components of the noise along rigid bonds have no effect here.
        position, velocity = evaluate.drift(position, velocity, step / 2)
        force, neighbors = evaluate(position, neighbors, cell)
        velocity = evaluate.tangent(velocity + step / 2 * force / mass, position)
        return dataclasses.replace(
            state,
            position=position,
            velocity=velocity,
            force=force,
            neighbors=neighbors,
            bath=bath,
            cell=None if barostat is None else cell,
        )

    pressure = None if barostat is None else barostat.pressure
    is_known = thermostat.is_canonical and (barostat is None or pressure is not None)
    return Method(
        start=start,
        advance=advance,
        received=thermostat.received if barostat is None else None,
        moves_cell=barostat is not None,
        keeps_bonds=True,
        ends_with_kick=True,
        bath=Bath(temperature, pressure, thermostat.caution) if is_known else None,
    )


def _rescaled(
    barostat: Barostat,
    evaluate: Evaluate,
    middle: MidStep,
    before: DynamicsState,
    bath: Any,
    position: jax.Array,
    velocity: jax.Array,
    cell: Cell,
    neighbors: Any,
) -> tuple[Any, jax.Array, jax.Array, Cell, Any]:
    """Return bath, position, velocity, cell and neighbors after the barostat has acted, by the stress of a state.

    Of particles joined by rigid bonds the centers of mass are moved.
    """
    stress, neighbors = evaluate.stress(before.position, neighbors)
    if evaluate.constraints is None:
        return *barostat.rescale(bath, position, velocity, cell, stress, middle), neighbors
    groups = Groups.of(evaluate.constraints, jnp.broadcast_to(middle.mass, (len(position), 1))[:, 0], None)
    volume = spaces.volume_of(cell, position.shape[1])
    stress = groups.stress(stress, before.position, before.force, volume)
    middle = middle._replace(mass=groups.masses())
    centers = groups.centers(position), groups.centers(velocity)
    bath, moved, rates, cell = barostat.rescale(bath, *centers, cell, stress, middle)
    return bath, groups.carried(position, moved), groups.carried(velocity, rates), cell, neighbors


def _verlet(state: DynamicsState, params: Params, mass: jax.Array, evaluate: Evaluate) -> DynamicsState:
    step = params["time_step"]
    velocity = state.velocity + step / 2 * state.force / mass
    position, velocity = evaluate.drift(state.position, velocity, step)
    force, neighbors = evaluate(position, state.neighbors)
    velocity = evaluate.tangent(velocity + step / 2 * force / mass, position)
    return dataclasses.replace(state, position=position, velocity=velocity, force=force, neighbors=neighbors)
