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
from simkit.molecular.description.formulas import COORDINATES, TIME, Branch, Names, refuse_idle, refuse_mixing
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
        takes_time: whether it depends on time.
        species: mask of the species it acts on, (S,) booleans.
        particles: particles of the system.
        wall: formula of the distance from a wall; ``None`` for a field.
    """

    where: str
    formula: Formula | None
    each: Callable[[Columns, Params], jax.Array]
    takes_time: bool
    species: np.ndarray
    particles: Particles
    wall: Formula | None = None

    @property
    def on(self) -> np.ndarray:
        """Mask of the particles it acts on, (N,) booleans."""
        return self.species[self.particles.species]

    def distance(self, columns: Columns, params: Params) -> jax.Array:
        """Return the distance of each particle from the wall, (N,); arguments as for ``each``."""
        assert self.wall is not None  # asked for only of walls
        return _at(self.wall, columns, params, self.particles)

    def energies(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the energy of each particle inside the cell, zero where the field does not act, (N,)."""
        columns = tuple(position[:, axis] for axis in range(position.shape[1]))
        return jnp.where(jnp.asarray(self.on), self.each(columns, params), 0)

    def interaction(self) -> Interaction:
        """Return the total energy as an interaction; positions are wrapped into the cell, if there is one."""

        def total(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
            return jnp.sum(self.energies(spaces.of_cell(cell, position.shape[1]).wrap(position), params))

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
        energies = (field.energies(position, params) for field in fields)
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

        return Field(text.where, text, of_expression, text.takes(TIME), species, particles)
    declared = declaration_of(FIELD.part(settings)).values
    values = {name: names.scope.formula(settings[name], (TIME,) if timed else ()) for name in declared}

    def by_name(columns: Columns, params: Params) -> jax.Array:
        return energy(columns, **_numbers(values, params))

    with FIELD.parts.blamed(settings["field"]):
        kind = jnp.result_type(float)
        places, one = (jax.ShapeDtypeStruct((particles.count,), kind),) * dimension, jax.ShapeDtypeStruct((), kind)
        jax.eval_shape(lambda places, values: energy(places, **values), places, dict.fromkeys(values, one))
    takes_time = any(value.takes(TIME) for value in values.values())
    return Field(settings.where, None, by_name, takes_time, species, particles)


def wall_of(settings: Settings, names: Names, particles: Particles, dimension: int, *, timed: bool) -> Field:
    """Return the wall that settings describe, as a field; arguments as for `field_of`."""
    species = names.chosen(settings["on"], settings.path("on"))
    distance = _position_formula(settings["distance"], names, dimension, timed=timed)
    energy = POTENTIAL_OF_WALL.make(settings)
    if isinstance(energy, FormulaText):
        values = {name: names.number(text) for name, text in settings["values"].items()}
        text = names.scope.formula(energy, ("r", *values, TIME) if timed else ("r", *values))
        refuse_mixing(text)
        refuse_idle(settings, text.taken)

        def of_expression(columns: Columns, params: Params) -> jax.Array:
            away = Named(_at(distance, columns, params, particles), PARTICLE)
            return text.on(PARTICLE, params, r=away, **_numbers(values, params))

        takes_time = distance.takes(TIME) or text.takes(TIME)
        return Field(text.where, text, of_expression, takes_time, species, particles, distance)
    if not isinstance(energy, PairPotential):
        raise settings.refuse("potential", f"= '{settings['potential']}' is no energy of one distance; choose another")
    numbers = names.of_one_species(settings, declaration_of(POTENTIAL_OF_WALL.part(settings)).values)

    def by_name(columns: Columns, params: Params) -> jax.Array:
        return energy.energy(_at(distance, columns, params, particles), **_numbers(numbers, params))

    return Field(distance.where, distance, by_name, distance.takes(TIME), species, particles, distance)


def _numbers(values: Mapping[str, Formula | Branch], params: Params) -> dict[str, jax.Array]:
    """Return the values of a part."""
    return {name: value.number(params) for name, value in values.items()}


def _position_formula(text: FormulaText, names: Names, dimension: int, *, timed: bool) -> Formula:
    places = (*COORDINATES[:dimension], *names.values, *((TIME,) if timed else ()))
    of_position = names.scope.formula(text, places)
    refuse_mixing(of_position)
    return of_position


def _at(formula: Formula, columns: Columns, params: Params, particles: Particles) -> jax.Array:
    """Return a formula of position for each particle, (N,)."""
    local = {name: Named(x, PARTICLE) for name, x in zip(COORDINATES, columns, strict=False)}
    for name in particles.numbers:
        if name not in ("mass", "diameter") and formula.takes(name):
            local[name] = Named(particles.of_each(name, params), PARTICLE)
    return jnp.broadcast_to(formula.on(PARTICLE, params, **local), columns[0].shape)
