"""Systems of particles described as data: the factory of ``molecular.system``."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from simkit.core.expressions.scope import refuse_ended, tables_in_time
from simkit.core.formulation import computed_once
from simkit.core.settings import Settings, declares, read
from simkit.core.simulation import Params, Simulation, as_arrays, over_steps
from simkit.errors import UserError
from simkit.molecular.description import tasks
from simkit.molecular.description.checks import bounded_numbers, checker, refuse_same_place, timed_numbers
from simkit.molecular.description.diagnostics import (
    DIMENSIONS,
    averaged_over_run,
    mean_quantities,
    observer,
    quantities,
    shown,
    with_potential_energy,
    with_shells_inside,
)
from simkit.molecular.description.fields import field_of, wall_of
from simkit.molecular.description.formulas import Names, names_of
from simkit.molecular.description.interactions import (
    Interactions,
    StiffnessAt,
    given_scale,
    images_of,
    interactions_of,
    scale_of,
)
from simkit.molecular.description.observables import Elasticity, Moment, Observer, Parts, Sites, Touching, with_unbound
from simkit.molecular.description.observables import observed as observed_of
from simkit.molecular.description.pair_energies import PairTerm
from simkit.molecular.description.particles import (
    Particles,
    SystemCell,
    cell_of,
    particles_of,
    refuse_idle_values,
    species_by_count,
    species_by_symbol,
    value_names,
)
from simkit.molecular.description.settings import DYNAMICS, SETTINGS, START, THERMOSTAT
from simkit.molecular.description.starts import Places, Placing, list_capacity, placing_of
from simkit.molecular.description.tasks import DynamicsThenRelaxation
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.structures.structures import FROZEN, Structure


@declares(SETTINGS)
def system(
    *,
    particles: Mapping[str, Any],
    interactions: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[Mapping[str, Any]] = (),
    walls: Sequence[Mapping[str, Any]] = (),
    start: Mapping[str, Any] | None = None,
    cell: Mapping[str, Any] | None = None,
    dimension: int | None = None,
    task: str | Sequence[str] = "relax",
    relax: Mapping[str, Any] | None = None,
    dynamics: Mapping[str, Any] | None = None,
    observed: Sequence[str] = (),
    averages: Mapping[str, Any] | None = None,
    derived: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Simulation:
    """Return a system of particles described as data: species, starting positions, interactions and tasks.

        E = sum over pairs of U(r) + sum over particles of V(x, y, z)

    Numbers may be written as expressions of the parameters everywhere, so that each of these may be swept and
    differentiated. Length and stiffness of a bond, which minimizers take, are those that potentials declare.

    Args:
        particles: species by name: ``count``, ``mass``, ``diameter``, ``frozen``, and ``values`` of their own.
        interactions: interactions of particles, each an ``energy`` of the distance ``r`` or a ``potential`` by name.
        fields: external energies of ``x``, ``y``, ``z`` and, in dynamics, ``time``.
        walls: energies of the distance from a wall.
        start: starting positions: a ``lattice``, a ``structure``, ``positions``, or else random ones.
        cell: ``lengths``, ``vectors`` or ``density``, and along which axes it is ``periodic``; left out, that of the
            lattice or structure, and free space where there is neither.
        dimension: 2 or 3; left out if positions or cell fix it.
        task: ``"relax"``, ``"dynamics"`` or both, ``["dynamics", "relax"]``.
        relax: ``minimizer``, ``force_tolerance``, and whether the ``cell`` relaxes too.
        dynamics: ``method``, ``time_step``, ``temperature`` and further parameters of the method.
        observed: further quantities of frames and diagnostics, by name.
        averages: running means: ``every`` is the number of time steps between samples, which make one step of the run,
            ``skip`` the number of samples left out, ``of`` the names of diagnostics, and ``radial_distribution``.
        derived: values derived of parameters, by name.
        units: names of the units of length, energy, time and mass.
        parameters: parameters of the formulas: numbers, or `simkit.core.parameter.Parameter`. In a scenario file those
            of ``[params]``.

    Raises:
        UserError: names each key with a mistake, and atoms of a structure that are in one place. The simulation's
            ``check`` refuses overlapping starts, energies that are not finite at the start, and cut-offs beyond half
            the cell.
    """
    # The arguments are the keys of the file.
    keys = {key: value for key, value in locals().items() if key in SETTINGS and value is not None}
    settings = read(keys, SETTINGS)
    return _composed(settings, dict(parameters or {}))


@dataclasses.dataclass(frozen=True)
class Composition:
    """A system whose settings have been read: particles, starting positions, and interactions.

    Attributes:
        settings: all settings.
        dynamics: settings of the dynamics; ``None`` without it.
        sequence: tasks, one after the other.
        names: names that formulas may use.
        params: the default parameters, as arrays.
        members: the particles.
        room: the cell.
        placing: starting positions.
        interactions: interactions and fields.
        images: number of interacting cells along each axis; ``None`` for one.
        scale: ``params -> Scale`` of a bond.
        stiffness: ``(position, cell, params) -> stiffness`` of an arrangement; ``None`` for that of the scale.
        rattlers: ``moment -> `` mask of the particles without load-bearing contacts, (N,) booleans; ``None`` if there
            are none.
        see: ``moment -> `` observed quantities.
        seen: names of the axes of its arrays.
    """

    settings: Settings
    dynamics: Settings | None
    sequence: tuple[str, ...]
    names: Names
    params: Params
    members: Particles
    room: SystemCell
    placing: Placing
    interactions: Interactions
    images: tuple[int, ...] | None
    scale: Callable[[Params], Scale]
    stiffness: StiffnessAt | None
    rattlers: Callable[[Moment], jax.Array] | None
    see: Observer
    seen: dict[str, tuple[str, ...]]

    def body(self, interaction: Interaction | None = None) -> tasks.System:
        """Return the particles with all interactions, as needed by tasks.

        Args:
            interaction: interaction with lists of another size; ``None`` for lists of the default size.
        """
        interactions, members, placing, room = self.interactions, self.members, self.placing, self.room

        def cell(params: Params) -> jax.Array:
            present = room.cell(params)
            assert present is not None  # asked for only where there is one
            return computed_once(present)

        return tasks.System(
            params=self.params,
            interaction=interaction or interactions.interaction(members, self.images, self._capacity),
            start=placing.start,
            cell=None if room.is_free else cell,
            mass=lambda params: computed_once(members.of_each("mass", params)),
            scale=lambda params: computed_once(self.scale(params)),
            stiffness=self.stiffness,
            frozen=members.frozen if members.frozen.any() else None,
            observe=observer(members),
            see=self.see,
            rattlers=self.rattlers,
            dimensions=DIMENSIONS | self.seen,
            is_closed=room.is_closed,
            has_fields=bool(interactions.fields),
        )

    def _capacity(self, term: PairTerm, skin: float) -> int | None:
        """Return the neighbors for which a list has capacity at first; ``None`` where the density is unknown."""
        if not self.room.is_closed or term.cutoff is None or _is_traced(self.params):
            return None
        reach, shrinks = (1 + skin) * float(term.reach(self.params)), self.settings["relax"]["cell"]
        most = list_capacity(self.placing, self.members, self.room, self.params, reach, shrinks=shrinks)
        return min(most, self.members.count * (1 if self.images is None else math.prod(self.images)))

    def simulation(self, interaction: Interaction | None = None) -> Simulation:
        """Return the simulation of the tasks.

        Args:
            interaction: as for `body`.
        """
        simulation = _with_task(self.body(interaction), self)
        if self.sequence != ("dynamics",):
            simulation = with_potential_energy(simulation)
        simulation, averages = shown(simulation, self.room), self.settings["averages"]
        return simulation if averages is None else averaged_over_run(simulation, averages, self.room)


def _composed(settings: Settings, parameters: dict[str, Any]) -> Simulation:
    made = composition(settings, parameters)
    simulation, averages = made.simulation(), settings["averages"]
    tables = [*settings["particles"].values(), settings["start"], *([made.dynamics] if made.dynamics else [])]
    numbers = bounded_numbers(tables, made.names)
    check = checker(made.interactions, made.members, made.placing, made.room, made.images, numbers)
    in_time = tables_in_time(timed_numbers(tables, made.names))

    def lasting(params: Any, steps: int) -> None:
        if made.dynamics is not None:
            length = float(made.names.number(made.dynamics["time_step"]).number(params))
            refuse_ended(in_time, params, (made.dynamics["steps"] or steps) * length)

    known = quantities(settings["units"], made.room.dimension, moves=made.sequence == ("dynamics",))
    known = {name: each for name, each in known.items() if made.room.is_free or name != "unbound"}
    return dataclasses.replace(
        simulation,
        params=parameters,
        coordinates={**simulation.coordinates, "species_names": np.array(made.members.names)},
        check=over_steps(with_shells_inside(check, averages, made.room), lasting),
        quantities=known | mean_quantities(known, averages, settings["units"]["length"]),
    )


def composition(settings: Settings, parameters: dict[str, Any]) -> Composition:
    """Return the system that settings describe.

    Args:
        settings: all settings.
        parameters: as for `system`.

    Raises:
        UserError: as for `system`.
    """
    sequence = (settings["task"],) if isinstance(settings["task"], str) else settings["task"]
    table = settings["particles"]
    timed = sequence in (("dynamics",), ("dynamics", "relax"))
    dynamics = (settings["dynamics"] or DYNAMICS.read({}, "dynamics")) if timed else None
    if problem := next(_contradictions(settings, sequence, dynamics, parameters), ""):
        raise UserError(problem)
    params = as_arrays(parameters)
    names = names_of(params, settings["derived"], value_names(table), tuple(table))
    refuse_idle_values(table, settings)
    places = START.call(settings["start"], (Places,), settings["start"], names)
    size = _dimension(settings, places)
    species = _species(table, places)
    held = None if places.structure is None else places.structure.arrays.get(FROZEN)
    members = particles_of(table, names, species, held)
    frozen = members.frozen
    room = cell_of(
        settings["cell"],
        names,
        places.own,
        size,
        members.count,
        is_oblique=places.is_oblique,
        repeats=places.periodic,
    )
    # Numbers of images that are given are along the vectors that are given.
    images_given = None if settings["cell"] is None else settings["cell"]["images"]
    room = room if images_given else room.reduced(params)
    fields = tuple(field_of(each, names, members, size, timed=timed) for each in settings["fields"])
    fields += tuple(wall_of(each, names, members, size, timed=timed) for each in settings["walls"])
    placing = placing_of(settings["start"], places, members, room, names, params, fields)
    interactions = interactions_of(settings["interactions"], fields, names, members, room, params)
    if places.structure is not None:
        _refuse_same_place(places.structure, members, room, interactions, settings["start"].path("structure"))
    images = images_of(images_given, interactions, room, params)
    touching = Touching(interactions, members, size, images)
    may_drift = not (fields or frozen.any()) and (
        dynamics is None or tasks.conserves_momentum(THERMOSTAT.part(dynamics))
    )
    moves_cell = settings["relax"]["cell"] or (dynamics is not None and dynamics["barostat"] is not None)
    sites = Sites(placing, room, moves_cell, may_drift)

    scale, stiffness = scale_of(interactions, members, placing, room.dimension)
    if settings["relax"]["scale"] is not None:
        scale, stiffness = given_scale(settings["relax"]["scale"], names), None
    rattlers = touching.rattlers if touching.are_all() and not room.is_free else None
    tolerance = settings["relax"]["force_tolerance"]
    elasticity = Elasticity(interactions.interaction(members, images), scale, tolerance, rattlers)
    see, seen = observed_of(settings, Parts(touching, sites, elasticity, sequence))
    if room.is_free and not fields and "relax" in sequence and members.count > 1:
        see = with_unbound(see, interactions, scale)
    return Composition(
        settings=settings,
        dynamics=dynamics,
        sequence=sequence,
        names=names,
        params=params,
        members=members,
        room=room,
        placing=placing,
        interactions=interactions,
        images=images,
        scale=scale,
        stiffness=stiffness,
        rattlers=rattlers,
        see=see,
        seen=seen,
    )


def _contradictions(
    settings: Settings, sequence: tuple[str, ...], dynamics: Settings | None, parameters: dict[str, Any]
) -> Iterator[str]:
    """Yield what contradicts the tasks, or is missing."""
    if dynamics is None and sequence != ("relax",):
        yield 'task is not "relax", "dynamics" or ["dynamics", "relax"]; choose one of these'
    if not settings["particles"]:
        yield "particles names no species; add one, such as [config.particles.A]"
    if not parameters:
        yield "there are no parameters; declare one number that may be changed: in [params], or with parameters = {...}"
    for key in {"relax", "dynamics"} - set(sequence):
        if key in settings.given:
            yield f"{key} has no effect on task = {list(sequence)}; leave it out"
    if settings["averages"] is not None and sequence != ("dynamics",):
        yield 'averages are those of task = "dynamics"; leave them out'
    held = any(each["frozen"] for each in settings["particles"].values())
    if "relax" in sequence and held and settings["start"]["kind"] == "random":
        yield "frozen particles at random positions cannot be relaxed; give start.positions, a lattice or a structure"
    relax = settings["relax"]
    for key in ("isotropic", "pressure"):
        if key in relax.given and not relax["cell"]:
            yield f"{relax.path(key)} has an effect on a cell that relaxes only; set relax.cell = true"
    if dynamics is None:
        return
    if (dynamics["steps"] is None) != (sequence == ("dynamics",)):
        missing = "is missing; give the number of time steps before the relaxation"
        idle = "has an effect only before a relaxation; the length of a run is run.steps"
        yield f"{dynamics.path('steps')} {missing if dynamics['steps'] is None else idle}"
    if dynamics["barostat"] is not None and sequence != ("dynamics",):
        yield "dynamics.pressure of a barostat moves the cell, and the relaxation begins from its own; leave it out"


def _is_traced(params: Params) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params))


def _dimension(settings: Settings, places: Places) -> int:
    """Return the dimension of space."""
    cell, sizes = settings["cell"], {}
    if places.dimension is not None:
        sizes["start"] = places.dimension
    for key in ("lengths", "vectors", "shape", "periodic", "images"):
        if cell is not None and isinstance(cell[key], tuple):
            sizes[f"cell.{key}"] = len(cell[key])
    if cell is not None:
        sizes |= {f"cell.vectors[{index}]": len(row) for index, row in enumerate(cell["vectors"] or ())}
    if settings["dimension"] is not None:
        sizes["dimension"] = settings["dimension"]
    if len(set(sizes.values())) != 1:
        problem = ", and ".join(f"{name} has {size} dimensions" for name, size in sizes.items())
        raise UserError(f"{problem}; make them the same" if sizes else "dimension is missing; set it to 2 or 3")
    return next(iter(sizes.values()))


def _species(table: Mapping[str, Settings], places: Places) -> np.ndarray:
    """Return the species of each particle, (N,)."""
    if places.structure is not None:
        return species_by_symbol(table, places.structure.symbols)
    return species_by_count(table, places.count, places.arrangement)


def _refuse_same_place(
    structure: Structure, members: Particles, room: SystemCell, interactions: Interactions, where: str
) -> None:
    """Raise if atoms coincide in a structure that its cell, of whatever size, repeats as the system does."""
    repeats = bool(structure.periodic) and not room.is_free
    periodic = room.periodic if repeats else (False,) * room.dimension
    vectors = structure.cell if repeats else None
    refuse_same_place(
        structure.position, vectors, periodic, members.species, interactions.between(len(members.names)), where
    )


def _with_task(body: tasks.System, made: Composition) -> Simulation:
    """Return the simulation of the tasks of a system."""
    relax, dynamics, names, sequence = made.settings["relax"], made.dynamics, made.names, made.sequence
    if dynamics is None:
        return tasks.relaxed(body, relax, names, None)
    takes_time = any(field.takes_time for field in made.interactions.fields)
    motion = tasks.motion_of(body, dynamics, names, takes_time=takes_time)
    if sequence == ("dynamics",):
        return tasks.moving(motion, body)

    def ends_at(params: Params) -> jax.Array:
        return dynamics["steps"] * motion.formulas["time_step"].number(params)

    def rest(system: tasks.System) -> Simulation:
        return tasks.relaxed(system, relax, names, ends_at if takes_time else None)

    def resized(neighbors: Any) -> Simulation:
        assert body.interaction.sized_like is not None  # called only where there is
        return made.simulation(body.interaction.sized_like(neighbors))

    return DynamicsThenRelaxation(body, motion, rest, dynamics["steps"], resized).simulation()
