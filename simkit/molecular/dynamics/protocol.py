"""Interface of a method of molecular dynamics: positions and velocities advanced by one time step."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.core.simulation import Params
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell


@pytree
class Freedom:
    """Degrees of freedom of the velocities, determined at the start.

    Attributes:
        count: degrees of freedom of the thermal motion: d for each particle that is not frozen, less one for each
            component of the total momentum that is conserved; scalar.
        conserved: projection onto the directions along which the total momentum is conserved, (d, d), as from
            `simkit.molecular.dynamics.conserved.conserved_directions`; ``None`` where its motion counts as thermal.
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
        unresolved: whether any step was too long for its forces, bool; see `simkit.molecular.dynamics.resolution`.
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


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluation of forces within one time step: ``evaluate(position, neighbors)``.

    Attributes:
        interaction: energy of the particles.
        params: of the interaction.
        cell: at the beginning of the step.
        frozen: which particles do not move, (N, 1) booleans, or ``None``.
        position: at the beginning of the step, where frozen particles stay; (N, d).
    """

    interaction: Interaction
    params: Params
    cell: Cell
    frozen: jax.Array | None
    position: jax.Array

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
    """

    start: Callable[[Params, jax.Array], Any]
    advance: Callable[[DynamicsState, Params, jax.Array, Evaluate], DynamicsState]
    received: Callable[[Any], jax.Array] | None = None
    moves_cell: bool = False
