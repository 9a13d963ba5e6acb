"""Interface of a method of molecular dynamics, its common keywords, and the test of its time step."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, as_arrays
from simkit.errors import UserError
from simkit.molecular.constraints import Constraints
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


@pytree
class Freedom:
    """Degrees of freedom of the velocities, determined at the start.

    Attributes:
        count: degrees of freedom of the thermal motion: d for each particle that is not frozen, less one for each
            component of the total momentum that is conserved and one for each rigid bond; scalar.
        conserved: projection onto the directions along which the total momentum is conserved, (d, d), as from
            `simkit.molecular.dynamics.measures.conserved_directions`; ``None`` where its motion counts as thermal.

    Example:
        >>> molecular.dynamics.Freedom(count=3 * 10 - 3, conserved=jnp.eye(3)).count
        27
    """

    count: jax.Array
    conserved: jax.Array | None


@pytree
class DynamicsState:
    """State of molecular dynamics.

    Attributes:
        iteration: int32, time steps since the start.
        position: length, (N, d); never wrapped into the cell, so that displacements can be measured.
        velocity: length / time, (N, d).
        force: at the position, (N, d), with the params of the step before; zero on frozen particles.
        neighbors: neighbor data of the interaction, current at the position.
        bath: data of the method: the seed of a stochastic one, the variables of a thermostat.
        freedom: degrees of freedom of the velocities.
        cell: as for `simkit.molecular.spaces.of_cell`, if the method moves the cell; otherwise ``None``, and the cell
            is that of the params.
        unresolved: whether any step was too long for its forces, bool; see `simkit.molecular.dynamics.method`.
        bond_error: largest relative error of the length of a rigid bond after the last step; ``()`` without such bonds.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> bead = molecular.dynamics.velocity_verlet(
        ...     spring,
        ...     lambda params, key: jnp.array([[1.0, 0.0]]),
        ...     params={"time_step": 0.1, "mass": 1.0, "temperature": 0.0},
        ...     isolated=False,
        ... )
        >>> state = bead.init(bead.params, jax.random.key(0))
        >>> isinstance(state, molecular.dynamics.DynamicsState), state.force.tolist()
        (True, [[-1.0, -0.0]])
    """

    iteration: jax.Array
    position: jax.Array
    velocity: jax.Array
    force: jax.Array
    neighbors: Any
    bath: Any
    freedom: Freedom
    cell: Cell = None
    unresolved: Any = False
    bond_error: Any = ()


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluation of forces within one time step: ``evaluate(position, neighbors)``.

    Attributes:
        interaction: energy of the particles.
        params: of the interaction.
        cell: at the beginning of the step.
        frozen: which particles do not move, (N, 1) booleans, or ``None``.
        position: at the beginning of the step, where frozen particles stay; (N, d).
        mass: scalar or (N, 1); needed by rigid bonds only.
        constraints: rigid bonds, or ``None``.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> evaluate = molecular.dynamics.Evaluate(spring, params={}, cell=None, frozen=None, position=jnp.ones((1, 2)))
        >>> force, neighbors = evaluate(jnp.array([[2.0, 0.0]]), ())
        >>> force.tolist()
        [[-2.0, -0.0]]
    """

    interaction: Interaction
    params: Params
    cell: Cell
    frozen: jax.Array | None
    position: jax.Array
    mass: jax.Array | None = None
    constraints: Constraints | None = None

    def __call__(self, position: jax.Array, neighbors: Any, cell: Cell = None) -> tuple[jax.Array, Any]:
        """Return the force, (N, d), and the neighbors refreshed at these positions.

        Args:
            position: (N, d).
            neighbors: of any earlier positions.
            cell: ``None`` for the cell at the beginning of the step.
        """
        cell = self.cell if cell is None else cell
        if self.frozen is not None:
            position = jnp.where(self.frozen, self.position, position)
        neighbors = self.interaction.refresh(neighbors, position, cell, self.params)
        force = self.interaction.force(position, cell, self.params, neighbors)
        return force if self.frozen is None else jnp.where(self.frozen, 0, force), neighbors

    def stress(self, position: jax.Array, neighbors: Any) -> tuple[jax.Array, Any]:
        """Return the stress, (d, d), in the cell at the beginning of the step, and the refreshed neighbors.

        Args:
            position: (N, d).
            neighbors: of any earlier positions.
        """
        neighbors = self.interaction.refresh(neighbors, position, self.cell, self.params)
        return self.interaction.stress(position, self.cell, self.params, neighbors), neighbors

    def drift(self, position: jax.Array, velocity: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return positions and velocities, (N, d) each, after a time without forces but those of rigid bonds.

            x' = x + h v + shift,    v' = v + shift / h without rates of rigid bonds at x'     (RATTLE)

        Components of v that change rigid bonds at x have no effect.

        Args:
            position: (N, d).
            velocity: (N, d).
            step: h.
        """
        moved = position + step * velocity
        if self.constraints is None:
            return moved, velocity
        shift = self.constraints.shift(moved, position, self._mobility(), self.params)
        # Not the difference of positions, whose round-off the step would divide.
        return moved + shift, self.tangent(velocity + shift / step, moved + shift)

    def tangent(self, velocity: jax.Array, position: jax.Array) -> jax.Array:
        """Return velocities without components that change rigid bonds, (N, d).

        Args:
            velocity: (N, d).
            position: (N, d).
        """
        return velocity if self.constraints is None else self.constraints.tangent(velocity, position, self._mobility())

    def _mobility(self) -> jax.Array:
        return mobility(self.mass, self.frozen, self.position)


def mobility(mass: jax.Array | None, frozen: jax.Array | None, position: jax.Array) -> jax.Array:
    """Return the inverse masses, zero for frozen particles, (N,).

    Args:
        mass: scalar or (N, 1).
        frozen: (N, 1) booleans, or ``None``.
        position: (N, d).
    """
    inverse = jnp.broadcast_to(1 / jnp.asarray(mass, position.dtype), (len(position), 1))
    return (inverse if frozen is None else jnp.where(frozen, 0, inverse))[:, 0]


class Bath(NamedTuple):
    """Distribution of states in a bath, of density ``exp(-(K + U + p V) / T)``.

    Attributes:
        temperature: T, as ``(params, time) -> number``.
        pressure: p likewise, or ``None`` for a constant cell.
        caution: on what the distribution depends besides, in one line; empty for nothing.
    """

    temperature: "Schedule"
    pressure: "Schedule | None" = None
    caution: str = ""


class Method(NamedTuple):
    """Method that advances positions and velocities by one time step.

    Most are made by `simkit.molecular.dynamics.splitting.splitting` from a thermostat and a barostat.

    Attributes:
        start: ``(params, key) -> bath``.
        advance: ``(state, params, mass, evaluate) -> state`` one ``time_step`` later, force and neighbors included;
            ``mass`` is a scalar or (N, 1), ``evaluate`` an `Evaluate`. The caller counts the iteration and restores
            frozen particles.
        received: ``bath -> energy`` taken up by the bath since the start; its sum with the energy of the particles is
            conserved; ``None`` if the method does not compute it.
        moves_cell: whether the method changes the ``cell`` of the state.
        inertial_step: ``params -> h`` with ``h^2 / 2m`` the displacement by a force in one step; the ``time_step`` of
            Newtonian motion. Forces must be resolved by it.
        keeps_bonds: whether the method keeps rigid bonds, by the functions of `Evaluate`; otherwise they are refused.
        ends_with_kick: whether a step ends with half a kick, ``v += h/2 F/m``, as that of velocity Verlet does; the
            diagnostic ``temperature`` then is that of the velocities around it.
        bath: distribution of the states; ``None`` if there is none, or it is not known.

    Example:
        >>> verlet = molecular.dynamics.splitting(thermostat=None)
        >>> isinstance(verlet, molecular.dynamics.Method), verlet.moves_cell
        (True, False)
    """

    start: Callable[[Params, jax.Array], Any]
    advance: Callable[[DynamicsState, Params, jax.Array, Evaluate], DynamicsState]
    received: Callable[[Any], jax.Array] | None = None
    moves_cell: bool = False
    inertial_step: Callable[[Params], jax.Array] = lambda params: params["time_step"]
    keeps_bonds: bool = False
    ends_with_kick: bool = False
    bath: Bath | None = None


type Measure = Callable[[DynamicsState, Cell, Params], Arrays]
type Schedule = Callable[[Params, jax.Array], jax.Array]
"""``(params, time) -> number``, such as the decreasing temperature of a bath."""


class Options(TypedDict, total=False):
    """Keywords of all methods of dynamics; see `motion`.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> start = lambda params, key: jnp.array([[1.0, 0.0]])
        >>> at_rest = molecular.dynamics.Options(velocity=lambda params, key: jnp.zeros((1, 2)))
        >>> params = {"time_step": 0.1, "mass": 1.0}
        >>> bead = molecular.dynamics.velocity_verlet(spring, start, params=params, isolated=False, **at_rest)
        >>> bead.init(bead.params, jax.random.key(0)).velocity.tolist()
        [[0.0, 0.0]]
    """

    cell: Callable[[Params], jax.Array] | None
    mass: Callable[[Params], jax.Array] | None
    velocity: Callable[[Params, jax.Array], jax.Array] | None
    frozen: Sequence[bool] | np.ndarray | None
    massless: np.ndarray | None
    constraints: Constraints | None
    observe: Measure | None
    measure: Measure | None
    dimensions: Mapping[str, tuple[str, ...]] | None


def check_given(params: Mapping[str, object], names: Iterable[str]) -> None:
    """Refuse params without a required parameter.

    Args:
        params: by name.
        names: of the required parameters.

    Raises:
        UserError: if one is missing.
    """
    for name in names:
        if name not in params:
            raise UserError(f"params lack '{name}'; there are {', '.join(sorted(params)) or 'none'}")


def scheduled(name: str, schedule: Schedule | None, params: Mapping[str, object]) -> Schedule:
    """Return the given schedule, or the constant schedule of the parameter of that name.

    Args:
        name: ``"temperature"`` or ``"pressure"``.
        schedule: ``(params, time) -> number``, or ``None``.
        params: the default parameters.

    Raises:
        UserError: if there is neither, or the schedule returns no number or reads a parameter that does not exist.
    """
    if schedule is None:
        check_given(params, [name])
        return lambda params, time: params[name]
    try:
        result = jax.eval_shape(lambda arrays: schedule(arrays, jnp.zeros(())), as_arrays(params))
        problem = f"returns {getattr(result, 'shape', type(result).__name__)}"
    except KeyError as missing:
        result, problem = None, f"reads {missing}; params have {', '.join(sorted(params)) or 'none'}"
    if getattr(result, "shape", None) != ():
        raise UserError(f"the schedule {name}= {problem}; return one number of (params, time)")
    return schedule


# Stiffness above which forces count as unresolved, in units of 1/time_step^2. A liquid at its usual time step has
# 0.01 and a step of 1/6 of a period 1; overlapping particles that separate beyond the cut-off in one step have 2,
# however strong the force was; velocity Verlet is unstable from 4.
STIFFEST = 1.0
# Shortest displacement that is tested, relative to the largest coordinate, in units of round-off.
LEAST_STEP = 1e3


def is_unresolved(before: DynamicsState, after: DynamicsState, mass: jax.Array, time_step: jax.Array) -> jax.Array:
    """Return whether the forces changed in one step by more than the time step resolves.

        dt^2 |change of F/m| > |displacement|

    Both are norms over all particles, dominated by those that moved farthest.

    Args:
        before: state before the step.
        after: state after the step.
        mass: scalar or (N, 1).
        time_step: length of the step, as of Newtonian motion.
    """
    moved = after.position - before.position
    change = (after.force - before.force) / mass * time_step**2
    least = LEAST_STEP * jnp.finfo(moved.dtype).eps * jnp.max(jnp.abs(after.position))
    squared = jnp.sum(moved**2)
    return (jnp.sum(change**2) > STIFFEST**2 * squared) & (squared > least**2)
