"""External energies of position, and walls, as expressions of the coordinates."""

import dataclasses
from collections.abc import Callable, Collection, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.composed.names import COORDINATES, TIME, Names, refuse_mixing
from simkit.molecular.composed.pair_terms import TAKES
from simkit.molecular.composed.particles import Particles
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.user_energy import user_energy
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Cell

PARTICLE = ("particle",)


@dataclasses.dataclass(frozen=True)
class Field:
    """An energy of each particle by its position.

    Attributes:
        formula: the energy, or the distance from a wall; for messages.
        each: ``(columns, params) -> `` energy of each particle, (N,), at positions given as one array per axis, with
            the time, if it is taken, among the params.
        on: mask of the particles it acts on, (N,) booleans.
        takes_time: whether it depends on time.
        species: mask of the species it acts on, (S,) booleans.
        distance: of a wall, ``(columns, params) ->`` distance of each particle from it, (N,); else ``None``.
        wall: formula of this distance, for messages; else ``None``.
    """

    formula: Formula
    each: Callable[[tuple[jax.Array, ...], Params], jax.Array]
    on: np.ndarray
    takes_time: bool
    species: np.ndarray
    distance: Callable[[tuple[jax.Array, ...], Params], jax.Array] | None = None
    wall: Formula | None = None

    def interaction(self) -> Interaction:
        """Return the total energy as an interaction; positions are wrapped into the cell, if there is one."""

        def total(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
            inside = spaces.of_cell(cell, position.shape[1]).wrap(position)
            columns = tuple(inside[:, axis] for axis in range(position.shape[1]))
            return jnp.sum(jnp.where(jnp.asarray(self.on), self.each(columns, params), 0))

        return user_energy(total)


def curvature(fields: Sequence[Field], params: Params, position: jax.Array, movable: np.ndarray) -> jax.Array:
    """Return the curvature of all fields at each movable particle, mean over the axes, (N,); 0 for frozen ones.

    Args:
        fields: the fields.
        params: parameters and time.
        position: inside the cell, (N, d).
        movable: mask of particles that are not frozen, (N,) booleans.
    """
    # Each energy depends on one position only: the Hessian times a vector of ones has all curvatures.
    bends = jax.jvp(_slopes(fields, params), (position,), (jnp.ones_like(position),))[1]
    bends = jnp.mean(jnp.abs(bends), axis=1)
    return jnp.where(jnp.asarray(movable) & jnp.isfinite(bends), bends, 0)


def slope(fields: Sequence[Field], params: Params, position: jax.Array, movable: np.ndarray) -> jax.Array:
    """Return the largest force of all fields on a movable particle; arguments as for `curvature`."""
    sizes = jnp.sqrt(jnp.sum(_slopes(fields, params)(position) ** 2, axis=1))
    return jnp.max(jnp.where(jnp.asarray(movable) & jnp.isfinite(sizes), sizes, 0))


def _slopes(fields: Sequence[Field], params: Params) -> Callable[[jax.Array], jax.Array]:
    def total(position: jax.Array) -> jax.Array:
        columns = tuple(position[:, axis] for axis in range(position.shape[1]))
        energies = (jnp.where(jnp.asarray(field.on), field.each(columns, params), 0) for field in fields)
        return jnp.sum(sum(energies, jnp.zeros(len(position), position.dtype)))

    return jax.grad(total)


def field_of(settings: Settings, names: Names, particles: Particles, dimension: int, *, timed: bool) -> Field:
    """Return the field that settings describe.

    Args:
        settings: settings of a field.
        names: names that formulas may use.
        particles: the particles, whose values formulas may use.
        dimension: dimension of space.
        timed: whether formulas may use the time.

    Raises:
        UserError: if a formula has an unknown name; marks its column.
    """
    chosen = names.chosen(settings["on"], settings.path("on"))
    formula = _position_formula(settings, "energy", names, dimension, timed=timed)

    def each(columns: tuple[jax.Array, ...], params: Params) -> jax.Array:
        return _at(formula, columns, params, particles)

    return Field(formula, each, chosen[particles.species], formula.takes(TIME), chosen)


def wall_of(settings: Settings, names: Names, particles: Particles, dimension: int, *, timed: bool) -> Field:
    """Return the wall that settings describe, as a field; arguments as for `field_of`."""
    chosen = names.chosen(settings["on"], settings.path("on"))
    distance = _position_formula(settings, "distance", names, dimension, timed=timed)
    if (settings["energy"] is None) == (settings["potential"] is None):
        raise settings.refuse("energy", "or potential gives the interaction with the wall; give one of them")
    values = {name: names.number(said) for name, said in settings["values"].items()}

    def away_from(columns: tuple[jax.Array, ...], params: Params) -> jax.Array:
        return _at(distance, columns, params, particles)

    if settings["energy"] is not None:
        said = settings["energy"]
        energy = names.scope.formula(said, ("r", *values, TIME) if timed else ("r", *values))
        refuse_mixing(energy)
        _refuse_idle(settings, energy.taken)

        def each(columns: tuple[jax.Array, ...], params: Params) -> jax.Array:
            own, given = _own(params)
            given |= {name: value.number(own) for name, value in values.items()}
            return energy.on(PARTICLE, own, r=Named(away_from(columns, params), PARTICLE), **given)

        takes_time = distance.takes(TIME) or energy.takes(TIME)
        return Field(energy, each, chosen[particles.species], takes_time, chosen, away_from, distance)
    from simkit.core.settings import FormulaText
    from simkit.molecular.composed.pair_terms import by_name

    potential: PairPotential = by_name(settings)
    taken = TAKES[settings["potential"]]
    _refuse_idle(settings, taken)
    for name in taken:
        if name not in values and name not in names.scope.parameters and name not in names.scope.derived:
            raise UserError(f"{settings.path('values')}.{name} is missing; give a number or an expression")
    numbers = {
        name: values.get(name) or names.number(FormulaText(name, f"{settings.path('values')}.{name}")) for name in taken
    }

    def named_each(columns: tuple[jax.Array, ...], params: Params) -> jax.Array:
        own, _ = _own(params)
        return potential.energy(
            away_from(columns, params), **{name: value.number(own) for name, value in numbers.items()}
        )

    return Field(distance, named_each, chosen[particles.species], distance.takes(TIME), chosen, away_from, distance)


def _refuse_idle(settings: Settings, taken: Collection[str]) -> None:
    """Refuse values of a wall that its energy does not take."""
    if odd := next((name for name in settings["values"] if name not in taken), None):
        known = [name for name in taken if name != "r"]
        raise UserError(f"{settings.path('values')}.{odd} is not taken by the energy{nearest(odd, known)}")


def _position_formula(settings: Settings, key: str, names: Names, dimension: int, *, timed: bool) -> Formula:
    places = (*COORDINATES[:dimension], *names.values, *((TIME,) if timed else ()))
    formula = names.scope.formula(settings[key], places)
    refuse_mixing(formula)
    return formula


def _own(params: Params) -> tuple[Params, dict]:
    """Return the parameters of a system without the time, and the time by name, if there is one."""
    own = {name: value for name, value in params.items() if name != TIME}
    return own, {TIME: params[TIME]} if TIME in params else {}


def _at(formula: Formula, columns: tuple[jax.Array, ...], params: Params, particles: Particles) -> jax.Array:
    """Return a formula of position for each particle, (N,)."""
    own, given = _own(params)
    given |= {name: Named(x, PARTICLE) for name, x in zip(COORDINATES, columns, strict=False)}
    for name in particles.numbers:
        if name not in ("mass", "diameter") and formula.takes(name):
            given[name] = Named(particles.of_each(name, own), PARTICLE)
    return jnp.broadcast_to(formula.on(PARTICLE, own, **given), columns[0].shape)
