"""Checks of a system before a run."""

from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of, refuse_ended, refuse_non_finite, tables_in_time
from simkit.core.formulation import precise_product
from simkit.core.parameter import POSITIVE, UNBOUNDED, out_of_bounds
from simkit.core.parts import declaration_of, formulas_in
from simkit.core.simulation import Params, over_steps
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.description.bonded_energies import BondedEnergy
from simkit.molecular.description.composition import System
from simkit.molecular.description.fields import Field
from simkit.molecular.description.formulas import TIME
from simkit.molecular.description.interactions import Interactions
from simkit.molecular.description.padding import checked
from simkit.molecular.description.pair_energies import PairTerm
from simkit.molecular.description.particles import Particles, SystemCell, refuse_no_volume
from simkit.molecular.description.settings import POTENTIAL
from simkit.molecular.description.starts import RandomPlaces

# Relative tolerance for a cell that is exactly twice the cut-off wide, for rounding.
SLACK = 1e-6
# Pairs whose energies are looked at before a run, at most.
MOST_PAIRS = 20_000
# Times after the start at which fields that change in time are looked at, too: no usual period divides them.
LATER = (0.7320508, 13.7082039)
# How far an energy may differ from one side of a cell to the other, relative to its size.
SAME = 1e-4
# Distance below which particles coincide, in units of the edges of the cell, or of the extent in free space: at least
# this, and several times the round-off of the positions.
SAME_PLACE, ROUNDINGS = 1e-9, 8
# Particles whose neighbors are searched at a time: a search among very many coincident points is slow.
BLOCK = 1024
# Shares of the mean distance of close pairs at which energies are looked at, too.
PROBED = (0.7, 0.9, 1.0)
# Samples of random positions at which a wall is looked at.
SAMPLES = 16


def checker(system: System) -> Callable[[Params, jax.Array], None]:
    """Return ``(params, key) -> None``, which raises for parameters with which a system cannot run.

    Args:
        system: the system.
    """
    placing, cell, names = system.placing, system.room, system.names
    tables = [*system.settings["particles"].values(), system.settings["start"], system.dynamics]
    texts = [text for table in tables if table is not None for text in formulas_in(table).values()]
    numbers = [(names.number(text), text.bounds) for text in texts if text.bounds != UNBOUNDED]
    in_time = tables_in_time([names.number(text) for text in texts if TIME in text.takes])

    def lasting(params: Params, steps: int) -> None:
        if system.dynamics is not None:
            step = float(names.number(system.dynamics["time_step"]).number(params))
            refuse_ended(in_time, params, (system.dynamics["steps"] or steps) * step)

    every, padding = np.arange(system.particles.count), placing.places.padding
    number = None if padding is None else checked(padding, system.interaction, system.cell, cell.dimension)

    def check(params: Params, key: jax.Array) -> None:
        atoms = every if padding is None or number is None else padding.atoms(number(params))
        _refuse_numbers(system.interactions, numbers, params)
        refuse_no_volume(cell, params)
        _refuse_short_cell(system, params)
        if placing.random is not None:
            start = placing.filled(_checked_draw(system, placing.random, params, key), params)
        else:
            start = jax.jit(placing.start)(params, key)  # one program compiles faster than each of its operations
            if placing.places.where is not None:
                vectors = None if cell.is_free else np.asarray(cell.vectors(params))
                _refuse_same_place(system, np.asarray(start), vectors, placing.places.where, atoms)
        _refuse_non_finite(system, start, params, atoms)
        _refuse_far_shells(system, params)

    return over_steps(check, lasting)


def _checked_draw(system: System, random: RandomPlaces, params: Params, key: jax.Array) -> np.ndarray:
    """Return random positions in units of the edges; raise if they overlap because the density is too high."""
    separation, problem, filled = random.separation, "", random.filled()
    drawn = np.asarray(jax.jit(random.draw, static_argnums=1)(key, system.placing.disorder.number(params).dtype))
    if filled > 1:
        problem = f"balls of {separation:g} times their diameters would fill {filled:.3g} times the volume"
    elif separation and (closest := random.closest(drawn)) < 1:
        _refuse_reversed_walls(system, params)
        problem = f"two, or one and a wall, are {closest * separation:.3g} diameters apart"
    if problem:
        room = f"start.separation = {separation:g} leaves no room for that many particles"
        raise UserError(f"{room}: {problem}; lower it, the number of particles or their diameters, or enlarge the cell")
    return drawn


def _refuse_numbers(
    interactions: Interactions, numbers: Sequence[tuple[Formula, tuple[float, float]]], params: Params
) -> None:
    """Raise if a number, at the start, is out of its bounds, or a cut-off is not above zero."""
    now = {**params, TIME: jnp.zeros((), precision_of(params))}
    checked = [(formula.where, formula.number(now), bounds) for formula, bounds in numbers]
    for term in (*interactions.pairs, *interactions.many_body):
        settings = declaration_of(POTENTIAL.part(term.settings)).values
        bounds_of = {name: setting.bounds for name, setting in settings.items() if setting.bounds != UNBOUNDED}
        values = term.declared(params) if bounds_of else {}
        where = term.settings.path("values")
        checked += [(f"{where}.{name}", values[name], bounds) for name, bounds in bounds_of.items()]
    checked += [(one.where, one.number(params), bounds) for each in interactions.bonded for one, bounds in each.checked]
    for term in (*interactions.pairs, *(pair for body in interactions.many_body for pair in body.pairs)):
        if term.cutoff is not None:
            where = term.settings.path("cutoff")
            checked.append((where, jnp.where(term.between, term.cutoff(params), 1), POSITIVE))
    for where, values, bounds in checked:
        each = np.ravel(np.asarray(values))
        outside = each[~((each >= bounds[0]) & (each <= bounds[1]))]
        if len(outside):
            problem = f"{where} = {outside[0]:g} {out_of_bounds(bounds, outside[0])}"
            raise UserError(problem, key=where, allowed=bounds)


def _refuse_same_place(
    system: System, position: np.ndarray, vectors: np.ndarray | None, where: str, atoms: np.ndarray
) -> None:
    """Raise if two particles whose species interact coincide, where the force between them has no direction.

    Args:
        system: the system.
        position: (N, d).
        vectors: edges of the cell as rows, (d, d); ``None`` if nothing repeats.
        where: path of the positions.
        atoms: particles that are there, in the order of messages.
    """
    position = position[atoms]
    finite = np.isfinite(position).all(axis=1)
    if not finite.all():
        first = int(np.argmin(finite))
        raise UserError(f"{where}: particle {first} (the first is 0) starts at {position[first].tolist()}; move it")
    tolerance = max(SAME_PLACE, ROUNDINGS * np.finfo(position.dtype).eps)
    points, repeats = position.astype(np.float64), np.array(system.room.periodic)
    species = system.particles.species[atoms]
    interacting = system.interactions.between(len(system.particles.names))
    if vectors is None:
        points = points - points.min(axis=0)
        points = points / (np.ptp(points) or 1.0)
    else:
        points = points @ np.linalg.inv(vectors.astype(np.float64))
        # A small negative fraction is rounded to 1, which is 0.
        points = np.where(repeats, (points - np.floor(points)) % 1, points)
    bonded = set(map(tuple, system.particles.excluded.tolist()))
    for first, second in _coincident(points, repeats.astype(float), tolerance, species, interacting):
        if (min(first, second), max(first, second)) in bonded:
            continue
        raise UserError(
            f"{where}: particles {first} and {second} (the first is 0) are in one place, so the force between them "
            "has no direction; move or remove one of them"
        )


def _coincident(
    points: np.ndarray, sides: np.ndarray, tolerance: float, species: np.ndarray, interacting: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Yield particles of interacting species nearer than a tolerance, each with its partner."""
    from scipy.spatial import KDTree

    for kind in np.unique(species):
        partners = np.flatnonzero(interacting[kind][species])
        if not len(partners):
            continue
        tree, members = KDTree(points[partners], boxsize=sides), np.flatnonzero(species == kind)
        for start in range(0, len(members), BLOCK):
            block = members[start : start + BLOCK]
            # One of the two nearest may be the particle itself; a missing one has the index of the number of points.
            near = np.asarray(tree.query(points[block], k=2, distance_upper_bound=tolerance)[1])
            near = np.append(partners, -1)[near]
            rows, columns = np.nonzero((near >= 0) & (near != block[:, None]))
            yield from zip(block[rows].tolist(), near[rows, columns].tolist(), strict=True)


def _refuse_reversed_walls(system: System, params: Params) -> None:
    """Raise if the whole region of random positions is behind one wall, whose distance has the wrong sign."""
    samples = [system.placing.sample(params, seed) for seed in range(SAMPLES)]
    now = {**params, TIME: jnp.zeros((), precision_of(params))}
    for wall in (field for field in system.interactions.fields if field.wall is not None and field.on.any()):
        away = np.stack([wall.distance(tuple(position.T), now) for position in samples])
        if (away[:, wall.on] < 0).all():
            assert wall.wall is not None
            where, text = wall.wall.where, wall.wall.expression.syntax.text
            raise UserError(f"{where} = '{text}' is below 0 throughout the cell; reverse its sign, or move the wall")


def _refuse_short_cell(system: System, params: Params) -> None:
    interactions, cell, images = system.interactions, system.room, system.images
    if cell.is_free:
        return
    one = np.asarray(spaces.of_cell(cell.cell(params), cell.dimension).widths)
    reach, in_one = interactions.reach(params), float(interactions.reach_in_one_cell(params))
    if reach is None:
        return
    block = f"the block of {' x '.join(map(str, images))} cells" if images else "the cell"
    widths = one * np.asarray(images or (1,) * cell.dimension)
    more = "raise cell.images" if images else "set cell.images = [3, 3, 3]"
    for what, far, width, place, remedy in (
        (
            "the cutoff",
            in_one,
            one.min(),
            "the cell",
            "leave that of charges out, and write an energy of jax-md as an expression",
        ),
        ("the cutoff", float(reach), widths.min(), block, more),
    ):
        if 2 * far > width * (1 + SLACK):
            problem = f"{what} of {far:g} reaches beyond half {place}, whose narrowest width is {width:g}"
            raise UserError(f"{problem}; shorten the cutoff, enlarge the cell, or {remedy}")


def _refuse_far_shells(system: System, params: Params) -> None:
    """Raise if a radial distribution reaches beyond half the cell."""
    averages = system.settings["averages"]
    if averages is None or averages["radial_distribution"] is None:
        return
    reach, where = averages["radial_distribution"]["reach"], averages.path("radial_distribution")
    width = float(np.min(spaces.of_cell(system.room.cell(params), system.room.dimension).widths))
    if 2 * reach > width * (1 + SLACK):
        raise UserError(
            f"{where}.reach = {reach:g} is beyond half the cell, whose narrowest width is {width:g}; shorten it, or "
            "enlarge the cell"
        )


def _refuse_non_finite(system: System, start: jax.Array, params: Params, atoms: np.ndarray) -> None:
    """Raise if an energy by expression is not finite at the start, or a field does not fit a cell that repeats."""
    cell, now = system.room, {**params, TIME: jnp.zeros((), start.dtype)}
    inside = spaces.of_cell(cell.cell(params), cell.dimension).wrap(start)
    for field in system.interactions.fields:
        energies = np.asarray(field.energies(inside, now))
        if field.formula is not None:
            refuse_non_finite(field.formula, jnp.asarray(energies))
        away = np.ones(len(energies)) if field.wall is None else np.asarray(field.distance(tuple(inside.T), now))
        is_wrong = ~np.isfinite(energies) | (field.on & (away <= 0))
        if is_wrong.any():
            first = int(np.argmax(is_wrong))
            problem = f"particle {first} has no finite energy at the start; move it, or the field"
            if away[first] <= 0:
                problem = f"particle {first} starts {-away[first]:g} behind the wall; move it, or the wall"
            raise UserError(f"{field.where}: {problem}")
        for time in (0.0, *LATER) if field.takes_time else (0.0,):
            _refuse_jump(field, inside, cell, {**params, TIME: jnp.asarray(time, start.dtype)})
    for bonded in system.interactions.bonded:
        _refuse_torn(bonded, start, cell, params)
    for term in system.interactions.pairs:
        if term.is_checked:
            _refuse_pairs(term, system.particles, start, cell, params, atoms)


def _refuse_jump(field: Field, inside: jax.Array, cell: SystemCell, params: Params) -> None:
    """Raise if the energy of a field differs between opposite sides of a periodic cell."""
    if cell.frame is None:
        return
    vectors = cell.vectors(params)
    for axis in np.flatnonzero(cell.periodic).tolist():
        fractions = precise_product(inside, spaces.inverse_of(vectors))
        sides = [precise_product(fractions.at[:, axis].set(end), vectors) for end in (0.0, 1.0)]
        near, far, between = (np.asarray(field.energies(place, params)) for place in (*sides, inside))
        if not _are_alike(near, far, between):
            raise UserError(
                f"{field.where}: differs between both sides of the cell along {'xyz'[axis]}, where it repeats; "
                "make it periodic, or set cell.periodic to false along that axis"
            )


def _are_alike(near: np.ndarray, far: np.ndarray, between: np.ndarray) -> bool:
    """Return whether energies at opposite sides are equal; infinite ones, within rounding of the place, are too."""
    finite = np.isfinite(near) & np.isfinite(far)
    # Both sides may be at zeros of the energy, which then differ by rounding alone.
    size = np.max(
        np.abs([near, far]), initial=np.max(np.abs(between), initial=0, where=np.isfinite(between)), where=finite
    )
    if (np.abs(near - far)[finite] > SAME * size).any():
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(1 / near - 1 / far)[~finite] * np.max(np.abs(between), initial=0, where=np.isfinite(between))
    return bool((gap <= SAME).all())


def _refuse_torn(bonded: BondedEnergy, start: jax.Array, cell: SystemCell, params: Params) -> None:
    """Raise if a bond, angle or dihedral has no finite energy at the start."""
    terms = bonded.terms
    is_finite = np.isfinite(np.asarray(terms.energies(start, cell.cell(params), params)))
    if is_finite.all():
        return
    first = int(np.argmin(is_finite))
    atoms = terms.members[first].tolist()
    ends = start[np.array(atoms)]
    apart = spaces.displacement(spaces.of_cell(cell.cell(params), cell.dimension), ends[1:], ends[:-1])
    lengths = np.linalg.norm(apart, axis=1)
    where = bonded.where[0 if terms.kinds is None else int(terms.kinds[first])]
    raise UserError(
        f"{where}: has no finite energy at the start for particles {', '.join(map(str, atoms))}, which are "
        f"{', '.join(f'{length:.3g}' for length in lengths)} apart; move them, or enlarge a cell whose half they exceed"
    )


def _refuse_pairs(
    term: PairTerm, particles: Particles, start: jax.Array, cell: SystemCell, params: Params, atoms: np.ndarray
) -> None:
    space = spaces.of_cell(cell.cell(params), cell.dimension)
    first, second = (atoms[each] for each in np.triu_indices(min(len(atoms), int(MOST_PAIRS**0.5)), 1))
    columns = tuple(start[first, axis] - start[second, axis] for axis in range(cell.dimension))
    distance = np.asarray(jnp.sqrt(sum(d**2 for d in space.nearest_image(columns))))
    reach = np.inf if term.cutoff is None else float(term.reach(params))
    near = term.between[particles.species[first], particles.species[second]] & (distance < reach)
    excluded = term.excluded(particles) @ np.array([particles.count, 1])
    near &= ~np.isin(first * particles.count + second, excluded)
    first, second, apart = first[near], second[near], jnp.asarray(distance[near])
    there, back = (
        term.bare.energy(apart, **term.of_pairs(params, *pair)) for pair in ((first, second), (second, first))
    )
    where = term.settings.path("potential") if term.energy is None else term.energy.where
    if term.energy is not None:
        refuse_non_finite(term.energy, there)
    else:
        typical = float(apart.mean()) if len(apart) else reach
        values = term.of_pairs(params, *term.representatives())
        probed = [np.ravel(term.bare.energy(jnp.asarray(share * typical), **values)) for share in PROBED]
        is_undefined = np.isfinite(typical) and np.isnan(np.concatenate(probed)).any()
        if is_undefined or not np.isfinite(there).all():
            raise UserError(f"{where}: its energy is not finite at distances of the start; repair it, or move them")
    differ = ~np.isclose(there, back, rtol=1e-5, atol=0)
    if differ.any():
        at = int(np.argmax(differ))
        a, b = (particles.names[particles.species[each[at]]] for each in (first, second))
        raise UserError(
            f"{where}: is {float(there[at]):g} for {a}_{b} and {float(back[at]):g} the other way round; "
            "make it the same with _i and _j exchanged"
        )
