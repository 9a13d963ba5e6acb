"""A system of particles as its settings describe it: species, cell, starting positions and interactions."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core import paths
from simkit.core.formulation import computed_once
from simkit.core.settings import Settings
from simkit.core.simulation import Params, as_arrays
from simkit.errors import UserError
from simkit.molecular.constraints import Constraints, combined, rigid_bonds, rigid_water
from simkit.molecular.description.bonded_energies import bonded_energies
from simkit.molecular.description.fields import field_of, wall_of
from simkit.molecular.description.formulas import TIME, Names, names_of
from simkit.molecular.description.interactions import (
    Interactions,
    StiffnessAt,
    branches_taken,
    images_of,
    interactions_of,
    scale_of,
    supercell_of,
    values_taken,
)
from simkit.molecular.description.molecules import angle_names, molecules_of
from simkit.molecular.description.padding import on_lists, padded, refuse_unpadded
from simkit.molecular.description.pair_energies import PairTerm
from simkit.molecular.description.particles import (
    Particles,
    SystemCell,
    cell_of,
    particles_of,
    refuse_idle_values,
    value_names,
)
from simkit.molecular.description.settings import DYNAMICS, START, THERMOSTAT
from simkit.molecular.description.starts import Places, Placing, list_capacity, placing_of
from simkit.molecular.description.units import constants_of
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.interaction import combined as sum_of
from simkit.molecular.minimizers import Scale
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class System:
    """A system whose settings have been read; see `simkit.molecular.description.system.system`.

    Attributes:
        settings: all settings.
        dynamics: settings of the dynamics; ``None`` without it.
        sequence: tasks, one after the other.
        names: names that formulas may use.
        params: the default parameters, as arrays.
        particles: the particles.
        room: the cell.
        placing: starting positions.
        interactions: interactions and fields.
        images: number of interacting cells along each axis; ``None`` for one.
        interaction: the sum of interactions and fields; its params may hold the time.
        supercell: cells of the supercell of phonons along each axis, and the interaction of all its particles; ``None``
            without phonons.
        scale: ``params -> Scale`` of a bond.
        stiffness: ``(position, cell, params) -> stiffness`` of an arrangement; ``None`` for that of the scale.
    """

    settings: Settings
    dynamics: Settings | None
    sequence: tuple[str, ...]
    names: Names
    params: Params
    particles: Particles
    room: SystemCell
    placing: Placing
    interactions: Interactions
    images: tuple[int, ...] | None
    interaction: Interaction
    supercell: tuple[tuple[int, ...], Interaction] | None
    scale: Callable[[Params], Scale]
    stiffness: StiffnessAt | None

    @property
    def cell(self) -> Callable[[Params], jax.Array] | None:
        """The cell as a function of the parameters; ``None`` in free space."""

        def cell(params: Params) -> jax.Array:
            present = self.room.cell(params)
            assert present is not None  # asked for only where there is one
            return computed_once(present)

        return None if self.room.is_free else cell

    @property
    def frozen(self) -> np.ndarray | None:
        """Mask of the particles that do not move, (N,) booleans; ``None`` if all do."""
        mask = self.particles.frozen
        return mask if mask.any() else None

    @property
    def held(self) -> np.ndarray | None:
        """Mask of the particles that do not move by themselves: frozen ones and virtual sites; ``None`` if all do."""
        sites, frozen = self.particles.molecules.sites, self.frozen
        if sites is None:
            return frozen
        mask = sites.mask(self.particles.count)
        return mask if frozen is None else mask | frozen

    def placed(self, position: jax.Array, cell: Cell) -> jax.Array:
        """Return positions with virtual sites in their places, (N, d)."""
        sites = self.particles.molecules.sites
        return position if sites is None else sites.placed(position, cell)

    @property
    def has_rattlers(self) -> bool:
        """Whether contacts alone hold the particles, so that some of them may bear no load."""
        return self.interactions.are_contacts and self.frozen is None and not self.room.is_free

    @property
    def conserves_momentum(self) -> bool:
        """Whether the method of dynamics sets conserved momentum apart from the thermal motion, if there is one."""
        if self.dynamics is None:
            return True
        return "isolated" in inspect.signature(THERMOSTAT.part(self.dynamics)).parameters

    def rigid_bonds(self, own: Callable[[Params], Params]) -> Constraints | None:
        """Return the bonds that keep their lengths; ``None`` if there are none.

        Args:
            own: parameters of the dynamics -> those of the system.
        """
        is_alike = self.room.dimension == 3 and self.frozen is None and "mass" not in self.particles.individual
        each, pairs, kinds, formulas = [], [], [], []
        for kind in self.particles.molecules.kinds:
            bonds, which = kind.rigid()
            numbers = [self.names.number(table["length"]).number for table in kind.settings["rigid"]]
            if is_alike and (triangle := kind.triangle()) is not None:
                atoms, legs, base = triangle
                sides = numbers[legs], numbers[base]
                each.append(
                    rigid_water(
                        kind.repeated(atoms[None]),
                        lambda params, sides=sides: (sides[0](own(params)), sides[1](own(params))),
                    )
                )
                continue
            pairs.append(kind.repeated(bonds))
            kinds.append(np.tile(which + len(formulas), kind.count))
            formulas += numbers
        if formulas:

            def lengths(params: Params) -> jax.Array:
                return jnp.stack([number(own(params)) for number in formulas])

            each.append(rigid_bonds(np.concatenate(pairs), lengths, kinds=np.concatenate(kinds).tolist()))
        return combined(*each) if each else None

    @property
    def takes_time(self) -> bool:
        """Whether fields depend on time."""
        return any(field.takes_time for field in self.interactions.fields)

    def timed(self, params: Params, steps: jax.Array | int) -> Params:
        """Return the parameters with the time after a number of time steps, if fields depend on it."""
        if not self.takes_time:
            return params
        assert self.dynamics is not None  # fields of a relaxation alone take no time
        step = self.names.number(self.dynamics["time_step"]).number(params)
        return {**params, TIME: jnp.asarray(steps, step.dtype) * step}


def composition(settings: Settings, parameters: dict[str, Any]) -> System:
    """Return the system that settings describe.

    Args:
        settings: all settings.
        parameters: as for `simkit.molecular.description.system.system`.

    Raises:
        UserError: if settings contradict each other; names the keys.
    """
    sequence = (settings["task"],) if isinstance(settings["task"], str) else settings["task"]
    table, relax, start = settings["particles"], settings["relax"], settings["start"]
    timed = sequence in (("dynamics",), ("dynamics", "relax"))
    dynamics = (settings["dynamics"] or DYNAMICS.read({}, "dynamics")) if timed else None
    if problem := next(_contradictions(settings, sequence, dynamics, parameters), ""):
        raise UserError(problem)
    params = as_arrays(parameters)
    values, angles = value_names(table), angle_names(settings["molecules"])
    constants = constants_of(settings["units"], {*paths.leaves(params), *values, *angles})
    branches = branches_taken(settings["interactions"], params)
    names = names_of(params, constants | settings["derived"], values, tuple(table), angles, branches)
    refuse_idle_values(table, settings, values_taken(settings["interactions"]))
    places = START.call(start, (Places,), start, names)
    dimension = _dimension(settings, places)
    molecules = molecules_of(settings["molecules"], names.species)
    particles = particles_of(table, names, places.count, places.arrangement, places.structure, molecules)
    own, is_oblique, repeats = places.own, places.is_oblique, places.periodic
    room = cell_of(settings["cell"], names, own, dimension, particles.count, is_oblique=is_oblique, repeats=repeats)
    # Numbers of images that are given are along the vectors that are given.
    images = None if settings["cell"] is None else settings["cell"]["images"]
    room = room if images else room.reduced(params)
    padding, interacting = places.padding, settings["interactions"]
    if padding is not None:
        refuse_unpadded(start, _without_meaning(settings, sequence, particles))
        interacting = tuple(on_lists(each) for each in interacting)
    fields = tuple(field_of(each, names, particles, dimension, timed=timed) for each in settings["fields"])
    fields += tuple(wall_of(each, names, particles, dimension, timed=timed) for each in settings["walls"])
    bonded = bonded_energies(molecules, names, dimension)
    placing = placing_of(start, places, particles, room, names, params, fields, bonded)
    interactions = interactions_of(interacting, fields, names, particles, room, params, bonded)
    if padding is None:
        images = images_of(images, interactions, room, params)
    else:
        endless = any(term.cutoff is None for term in interactions.pairs)
        refuse_unpadded(
            start,
            [
                ("energies without a cutoff", endless),
                ("energies of all images, or of jax-md", interactions.others),
                ("tail of a cutoff", interactions.tails),
            ],
        )
        each = [images_of(images, interactions, room, one) or (1,) * dimension for one in padding.each(params)]
        most = tuple(map(max, zip(*each, strict=True)))
        images = None if math.prod(most) == 1 else most

    def capacity(term: PairTerm, skin: float) -> int | None:
        """Return the neighbors for which a list has capacity at first; ``None`` where the density is unknown."""
        is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params))
        if not room.is_closed or term.cutoff is None or is_traced:
            return None
        reach = (1 + skin) * float(term.reach(params))
        return list_capacity(placing, dimension, params, reach, shrinks=relax["cell"])

    def capacity_of_images(term: PairTerm, skin: float) -> int | None:
        most = capacity(term, skin)
        return None if most is None else min(most, particles.count * math.prod(images or (1,)))

    supercell = None
    if settings["phonons"] is not None:
        repeats = supercell_of(settings["phonons"], interactions, room, params, particles.count)
        supercell = repeats, sum_of(*interactions.of_cells(particles, math.prod(repeats), capacity))
    interaction = interactions.interaction(
        particles, images, capacity_of_images, of_particles="energy_of_particle" in settings["observed"]
    )
    if (sites := molecules.sites) is not None:
        interaction = sites.interaction(interaction)
    own_scale = (settings["barrier"] or relax)["scale"]
    scale, stiffness = scale_of(own_scale, names, interactions, placing)
    return System(
        settings=settings,
        dynamics=dynamics,
        sequence=sequence,
        names=names,
        params=params,
        particles=particles,
        room=room,
        placing=placing,
        interactions=interactions,
        images=images,
        interaction=interaction if padding is None else padded(interaction, padding),
        supercell=supercell,
        scale=scale,
        stiffness=stiffness,
    )


def _without_meaning(settings: Settings, sequence: tuple[str, ...], particles: Particles) -> Iterator[tuple[str, bool]]:
    """Yield what absent atoms cannot take part in, and whether it is there."""
    yield "task but relax", sequence != ("relax",)
    yield "cell that relaxes", settings["relax"]["cell"]
    yield "molecules", bool(particles.molecules.kinds)
    yield "fields and walls", bool(settings["fields"] or settings["walls"])
    yield "observed quantities", bool(settings["observed"])
    yield "phonons", settings["phonons"] is not None
    yield "values of single particles", bool(particles.individual)
    yield "density of a cell", settings["cell"] is not None and settings["cell"]["density"] is not None


def _contradictions(
    settings: Settings, sequence: tuple[str, ...], dynamics: Settings | None, parameters: dict[str, Any]
) -> Iterator[str]:
    """Yield what contradicts the tasks, or is missing."""
    if dynamics is None and sequence not in (("relax",), ("barrier",)):
        yield 'task is not "relax", "dynamics", ["dynamics", "relax"] or "barrier"; choose one of these'
    if not settings["particles"]:
        yield "particles names no species; add one, such as [config.particles.A]"
    if not parameters:
        yield "there are no parameters; declare one number that may be changed: in [params], or with parameters = {...}"
    for key in {"relax", "dynamics", "barrier"} - set(sequence):
        if key in settings.given:
            yield f"{key} has no effect on task = {list(sequence)}; leave it out"
    if settings["averages"] is not None and sequence != ("dynamics",):
        yield 'averages are those of task = "dynamics"; leave them out'
    if sequence == ("barrier",):
        if settings["barrier"] is None:
            yield "barrier is missing; give the start of the last minimum, such as barrier.last.positions"
        if settings["start"]["kind"] == "random":
            yield "start is random, and a barrier leads from a given minimum; give positions, a lattice or a structure"
        if settings["observed"]:
            yield 'observed has no effect on task = "barrier"; leave it out'
    if settings["phonons"] is not None and "relax" not in sequence:
        yield 'phonons are those of particles that come to rest, and so of the task "relax"; leave them out'
    for each in settings["molecules"].values():
        if each["rigid"] and sequence != ("dynamics",):
            yield f'{each.path("rigid")} is of task = "dynamics" alone; give stiff bonds in its place'
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
