"""External fields and walls."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula
from simkit.core.parts import declaration_of, part
from simkit.core.settings import FormulaText, Settings, formula
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.description.formulas import COORDINATES, TIME, Names, refuse_idle, refuse_mixing, without_time
from simkit.molecular.description.particles import Particles
from simkit.molecular.description.settings import FIELD, POTENTIAL_OF_WALL
from simkit.molecular.interactions.interaction import Interaction, user_energy
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Cell

PARTICLE = ("particle",)
type Columns = tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class Field:
    """An energy of each particle by its position.

    Attributes:
        where: path of its energy, or of its distance from a wall, for messages.
        formula: its energy by expression, or the distance from a wall; ``None`` for a field by name.
        each: ``(columns, params) -> `` energy of each particle, (N,), at positions given as one array per axis, with
            the time, if it is taken, among the params.
        on: mask of the particles it acts on, (N,) booleans.
        takes_time: whether it depends on time.
        species: mask of the species it acts on, (S,) booleans.
        distance: of a wall, ``(columns, params) ->`` distance of each particle from it, (N,); else ``None``.
        wall: formula of this distance, for messages; else ``None``.
    """

    where: str
    formula: Formula | None
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


@part(keys={"energy": formula("energy of a particle at x, y (and z), and at the time", unit="energy")})
def energy_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the position, which a scenario file gives in place of a name."""
    return energy


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
    species = names.chosen(settings["on"], settings.path("on"))
    energy = FIELD.make(settings, (FormulaText, Callable))
    if isinstance(energy, FormulaText):
        text = _position_formula(energy, names, dimension, timed=timed)

        def of_expression(columns: Columns, params: Params) -> jax.Array:
            return _at(text, columns, params, particles)

        return Field(text.where, text, of_expression, species[particles.species], text.takes(TIME), species)
    names_of_values = declaration_of(FIELD.part(settings)).values
    values = {name: _timed_number(settings[name], names, timed=timed) for name in names_of_values}

    def by_name(columns: Columns, params: Params) -> jax.Array:
        return energy(columns, **_numbers(values, params))

    with FIELD.parts.blamed(settings["field"]):
        kind = jnp.result_type(float)
        places, one = (jax.ShapeDtypeStruct((particles.count,), kind),) * dimension, jax.ShapeDtypeStruct((), kind)
        jax.eval_shape(lambda places, values: energy(places, **values), places, dict.fromkeys(values, one))
    takes_time = any(value.takes(TIME) for value in values.values())
    return Field(settings.where, None, by_name, species[particles.species], takes_time, species)


def wall_of(settings: Settings, names: Names, particles: Particles, dimension: int, *, timed: bool) -> Field:
    """Return the wall that settings describe, as a field; arguments as for `field_of`."""
    species = names.chosen(settings["on"], settings.path("on"))
    distance = _position_formula(settings["distance"], names, dimension, timed=timed)
    values = {name: names.number(text) for name, text in settings["values"].items()}
    energy = POTENTIAL_OF_WALL.make(settings)

    def away_from(columns: Columns, params: Params) -> jax.Array:
        return _at(distance, columns, params, particles)

    if isinstance(energy, FormulaText):
        text = names.scope.formula(energy, ("r", *values, TIME) if timed else ("r", *values))
        refuse_mixing(text)
        refuse_idle(settings, text.taken)

        def of_expression(columns: Columns, params: Params) -> jax.Array:
            system, time = _without_time(params)
            local = time | {name: value.number(system) for name, value in values.items()}
            return text.on(PARTICLE, system, r=Named(away_from(columns, params), PARTICLE), **local)

        takes_time = distance.takes(TIME) or text.takes(TIME)
        on = species[particles.species]
        return Field(text.where, text, of_expression, on, takes_time, species, away_from, distance)
    if not isinstance(energy, PairPotential):
        raise settings.refuse("potential", f"= '{settings['potential']}' is no energy of one distance; choose another")
    potential = energy
    numbers = names.of_one_species(settings, declaration_of(POTENTIAL_OF_WALL.part(settings)).values)

    def by_name(columns: Columns, params: Params) -> jax.Array:
        return potential.energy(away_from(columns, params), **_numbers(numbers, params))

    on = species[particles.species]
    return Field(distance.where, distance, by_name, on, distance.takes(TIME), species, away_from, distance)


def _timed_number(text: FormulaText, names: Names, *, timed: bool) -> Formula:
    return names.scope.formula(text, (TIME,) if timed else ())


def _numbers(values: Mapping[str, Formula], params: Params) -> dict[str, jax.Array]:
    """Return the values of a part, at the time if they take it."""
    system, time = _without_time(params)
    return {name: value.number(system, **(time if value.takes(TIME) else {})) for name, value in values.items()}


def _position_formula(text: FormulaText, names: Names, dimension: int, *, timed: bool) -> Formula:
    places = (*COORDINATES[:dimension], *names.values, *((TIME,) if timed else ()))
    of_position = names.scope.formula(text, places)
    refuse_mixing(of_position)
    return of_position


def _without_time(params: Params) -> tuple[Params, dict]:
    """Return the parameters of a system without the time, and the time by name, if there is one."""
    return without_time(params), {TIME: params[TIME]} if TIME in params else {}


def _at(formula: Formula, columns: tuple[jax.Array, ...], params: Params, particles: Particles) -> jax.Array:
    """Return a formula of position for each particle, (N,)."""
    system, local = _without_time(params)
    local |= {name: Named(x, PARTICLE) for name, x in zip(COORDINATES, columns, strict=False)}
    for name in particles.numbers:
        if name not in ("mass", "diameter") and formula.takes(name):
            local[name] = Named(particles.of_each(name, system), PARTICLE)
    return jnp.broadcast_to(formula.on(PARTICLE, system, **local), columns[0].shape)
