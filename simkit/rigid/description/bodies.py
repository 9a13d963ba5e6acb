"""Bodies of a scene described as data: their constants, names, and motion at the start."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer
from simkit.core.expressions.evaluation import constant
from simkit.core.expressions.scope import precision_of
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import Remedy, UserError, nearest, untaken
from simkit.rigid.algebra.quaternion import Quaternion, conjugate, exponential, multiply, on_sphere, rotate
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.bodies.bodies import MAX_BODIES, Bodies, concatenated, copies_of, held, numbers_of, repeat
from simkit.rigid.bodies.motion import Motion, from_given, momentum_of_rotation, motion_of
from simkit.rigid.collision.broad_phase import enclosing_radius
from simkit.rigid.description.formulas import TIME, Names, at, values_of, vector_at
from simkit.rigid.description.places import clearance_of, random_places
from simkit.rigid.description.settings import SHAPE
from simkit.rigid.planes import plane
from simkit.rigid.scene import Planes, no_planes
from simkit.rigid.shapes.solid import COPY

# Order of the random numbers of a body.
SCATTERED = ("rotation", "velocity", "position", "angular_velocity")


@dataclasses.dataclass(frozen=True)
class Entry:
    """The bodies of one entry of a scene.

    Attributes:
        settings: of the entry.
        name: by which it is called; empty for none.
        first: index of its first body.
        places: number, row, column and layer of each copy, (copies,).
        bodies: ``params -> Bodies``, a collection of the copies.
        position: ``(params, time=0) -> (x, y, z)`` without random changes, each one number or (copies,).
        orientation: ``(params, time=0) -> Quaternion`` without random changes, (copies,).
        velocity: ``params -> (x, y, z)``, likewise.
        angular_velocity: ``params -> (x, y, z)``, likewise.
        region: ``params -> `` corners of the box of random places; None without.
        scatter: standard deviation of each quantity that changes at random, a function of the parameters.
    """

    settings: Settings
    name: str
    first: int
    places: Mapping[str, np.ndarray]
    bodies: Callable[[Params], Bodies]
    position: Callable[..., tuple[jax.Array, ...]]
    orientation: Callable[..., Quaternion]
    velocity: Callable[[Params], tuple[jax.Array, ...]]
    angular_velocity: Callable[[Params], tuple[jax.Array, ...]]
    region: Callable[[Params], tuple[Vector, Vector]] | None
    scatter: Mapping[str, Callable[[Params], jax.Array]]

    @property
    def count(self) -> int:
        """Number of its bodies."""
        return len(self.places["index"])

    @property
    def is_prescribed(self) -> bool:
        """Whether position and orientation are functions of time."""
        return self.settings["motion"] == "prescribed"

    @property
    def is_random(self) -> bool:
        """Whether places at the start are drawn from the seed."""
        return self.region is not None or not {"position", "rotation"}.isdisjoint(self.scatter)


@dataclasses.dataclass(frozen=True)
class Group:
    """All bodies and planes of a scene.

    Attributes:
        entries: the bodies, entry by entry.
        planes: ``params -> Planes``.
        has_planes: whether there are any.
        plane_names: name of each plane, empty for one without.
        names: name of each body; those of copies with their number, ``brick[2]``, and empty for a body without one.
    """

    entries: tuple[Entry, ...]
    planes: Callable[[Params], Planes]
    has_planes: bool
    names: tuple[str, ...]
    plane_names: tuple[str, ...]

    def bodies(self, params: Params) -> Bodies:
        """Return the constants of all bodies."""
        # Without the barriers, programs that fuse formulas with other code would round them differently.
        return computed_once(concatenated([entry.bodies(params) for entry in self.entries]))

    def start(self, params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        """Return the motion of all bodies at the start."""
        parts = [self._start_of(number, params, key) for number, _ in enumerate(self.entries)]
        position, orientation, velocity, spin = each(lambda *values: jnp.concatenate(values), *parts)
        if any(entry.region for entry in self.entries):
            position = self._placed(params, bodies, position, orientation, key)
        return motion_of(bodies, *computed_once((position, orientation, velocity, spin)))

    @property
    def path(self) -> Callable[[Motion, Bodies, jax.Array, Params], Motion] | None:
        """Motion of the bodies whose motion is prescribed, as for `simkit.rigid.scene.Scene`; None without any."""
        return self._path if any(entry.is_prescribed for entry in self.entries) else None

    def _path(self, motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Motion:
        parts = []
        for entry in self.entries:
            span = slice(entry.first, entry.first + entry.count)
            now = (motion.position[span], motion.orientation[span], motion.velocity[span])
            if not entry.is_prescribed:
                parts.append((*now, motion.angular_momentum[span]))
                continue

            own = _rows_of(bodies, span)

            def place(time: jax.Array, entry: Entry = entry, own: Bodies = own) -> tuple[Vector, Quaternion]:
                return from_given(
                    own, vector_at(entry.position(params, time), entry.count), entry.orientation(params, time)
                )

            (position, orientation), (velocity, rate) = jax.jvp(place, (time,), (jnp.ones_like(time),))
            # omega = 2 q' q^-1, a quaternion without scalar part.
            spin = 2 * multiply(rate, conjugate(orientation)).v
            parts.append((position, orientation, velocity, momentum_of_rotation(own, orientation, spin)))
        position, orientation, velocity, momentum = each(lambda *values: jnp.concatenate(values), *parts)
        return Motion(position=position, orientation=orientation, velocity=velocity, angular_momentum=momentum)

    def pose(self, index: int, params: Params) -> tuple[Vector, Quaternion]:
        """Return center of mass and orientation of a body at the start, without random changes."""
        entry, copy = self.entry_of(index)
        position = Vector(*(jnp.broadcast_to(x, (entry.count,)) for x in entry.position(params)))
        position, orientation = from_given(numbers_of(entry.bodies(params)), position, entry.orientation(params))
        return position[copy], orientation[copy]

    def has_parts(self, index: int) -> bool:
        """Return whether a body is a compound, whose frame is not that in which its shapes are given."""
        return "parts" in self.entry_of(index)[0].settings

    def within(self, index: int, place: Vector, params: Params, bodies: Bodies | None = None) -> Vector:
        """Return a place in the frame of a body from that in the frame in which its shapes were given.

        Args:
            index: of the body.
            place: in the frame of its shapes.
            params: parameters.
            bodies: all bodies, where they are known: the axes of a compound are as dear as a step of it.
        """
        if not self.has_parts(index):
            return place
        row = index
        if bodies is None:
            entry, row = self.entry_of(index)
            bodies = entry.bodies(params)
        assert bodies.compound is not None
        given = bodies.compound.given
        return given.place[row] + rotate(given.orientation[row], place)

    def check_random(self, params: Params, motion: Motion, bodies: Bodies) -> None:
        """Refuse random places that overlap because there is not enough room.

        Args:
            params: parameters.
            motion: at the start.
            bodies: all bodies.

        Raises:
            UserError: naming the box.
        """
        index = self._at_random()
        if len(index) and float(clearance_of(motion.position[index], enclosing_radius(bodies)[index])) < 0:
            entry = next(entry for entry in self.entries if entry.region)
            where = entry.settings.path("random")
            raise UserError(
                f"{where} leaves no room for so many bodies; enlarge the box, or lower their number or size"
            )

    def index(self, name: str, where: str, copy: int | None = None) -> int:
        """Return the index of a body by its name.

        Args:
            name: ``NAME``, ``NAME[2]``, ``NAME[-1]`` for the last, or ``NAME[index + 1]`` in an entry of joints.
            where: path of the key, for messages.
            copy: number of the joint, the value of ``index``.

        Raises:
            UserError: if there is no such body.
        """
        return index_of(name, where, copy, {entry.name: (entry.first, entry.count) for entry in self.entries}, "body")

    def entry_of(self, index: int) -> tuple[Entry, int]:
        """Return the entry of a body by its index, and the number of the body in it."""
        entry = next(entry for entry in reversed(self.entries) if entry.first <= index)
        return entry, index - entry.first

    def _start_of(self, number: int, params: Params, key: jax.Array) -> tuple[Vector, Quaternion, Vector, Vector]:
        entry = self.entries[number]
        position, velocity, spin = (
            vector_at(of(params), entry.count) for of in (entry.position, entry.velocity, entry.angular_velocity)
        )
        orientation = entry.orientation(params)
        if not entry.scatter:
            return position, orientation, velocity, spin
        drawn = jax.random.normal(jax.random.fold_in(key, number), (4, 3, entry.count), position.x.dtype)
        changes = {
            name: deviation(params) * Vector(*drawn[SCATTERED.index(name)]) for name, deviation in entry.scatter.items()
        }
        if "rotation" in changes:
            orientation = multiply(exponential(changes["rotation"]), orientation)
        position, velocity, spin = (
            vector + changes[name] if name in changes else vector
            for name, vector in (("position", position), ("velocity", velocity), ("angular_velocity", spin))
        )
        return position, orientation, velocity, spin

    def _at_random(self) -> np.ndarray:
        """Return the indices of the bodies at random places."""
        ranges = [np.arange(entry.first, entry.first + entry.count) for entry in self.entries if entry.region]
        return np.concatenate(ranges) if ranges else np.arange(0)

    def _placed(
        self, params: Params, bodies: Bodies, position: Vector, orientation: Quaternion, key: jax.Array
    ) -> Vector:
        regions = [(entry.region(params), entry.count) for entry in self.entries if entry.region]
        low, high = (
            each(
                lambda *values: jnp.concatenate(values),
                *(each(lambda x, n=n: jnp.full(n, x), box[end]) for box, n in regions),
            )
            for end in (0, 1)
        )
        index = self._at_random()
        found = random_places(jax.random.fold_in(key, len(self.entries)), enclosing_radius(bodies)[index], low, high)
        # The spheres are about the centers of mass.
        center, _ = from_given(bodies, each(jnp.zeros_like, position), orientation)
        found = found - center[index]
        return each(lambda all_, some: all_.at[index].set(some), position, found)


def _rows_of(bodies: Bodies, span: slice) -> Bodies:
    """Return the numbers of some of the bodies."""
    return each(lambda values: values[span], numbers_of(bodies))


def index_of(name: str, where: str, copy: int | None, known: Mapping[str, tuple[int, int]], what: str) -> int:
    """Return the index of a body or joint by its name.

    Args:
        name: ``NAME``, or with the number of a copy in brackets, which may depend on ``index``.
        where: path of the key, for messages.
        copy: value of ``index``; None where there is none.
        known: index of the first and number of the copies, by name.
        what: "body" or "joint".

    Raises:
        UserError: if there is no such body or joint.
    """
    match = re.fullmatch(r"\s*(\w+)\s*(?:\[(.+)\])?\s*", name)
    if match is None or match[1] not in known or not match[1]:
        names = [each for each in known if each]
        hint = nearest(match[1] if match else name, names) if names else f"; give the {what} a name"
        raise UserError(f"{where} = {name!r:.60} names no {what}", hint, key=where)
    first, count = known[match[1]]
    if match[2] is None:
        if count > 1:
            raise UserError(
                f"{where} = {name!r:.60} names {count} of them; write one, such as {match[1]}[0]", key=where
            )
        return first
    text = match[2] if copy is None else re.sub(r"\bindex\b", f"({copy})", match[2])
    number = constant(text, where)
    if number != int(number) or not -count <= number < count:
        problem = f"there is no number {number:g}; choose 0 to {count - 1}, or -1 for the last"
        raise UserError(f"{where} = {name!r:.60}: {problem}", key=where)
    return first + int(number) % count


def group_of(entries: Sequence[Settings], names: Names) -> Group:
    """Return the bodies and planes that settings describe.

    Args:
        entries: settings of each kind of body.
        names: names that formulas may use.

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    made: list[Entry] = []
    plane_names = [settings["name"] for settings in entries if SHAPE.part(settings) is plane]
    planes: list[Callable[[Params], Planes]] = []
    for settings in entries:
        if SHAPE.part(settings) is plane:
            planes.append(_plane_of(settings, names))
        else:
            made.append(_entry_of(settings, names, sum(entry.count for entry in made)))
    for index, settings in enumerate(entries):
        untaken(settings["name"], {other["name"] for other in entries[:index]} - {""}, settings.path("name"))
    count = sum(entry.count for entry in made)
    check_integer("number of bodies beside the planes", count, 1, MAX_BODIES)
    of_bodies = [
        entry.name + (f"[{copy}]" if entry.count > 1 else "") if entry.name else ""
        for entry in made
        for copy in range(entry.count)
    ]

    def all_planes(params: Params) -> Planes:
        parts = [one(params) for one in planes]
        return computed_once(each(lambda *values: jnp.concatenate(values), *parts)) if parts else no_planes()

    return Group(tuple(made), all_planes, bool(planes), tuple(of_bodies), tuple(plane_names))


def _plane_of(settings: Settings, names: Names) -> Callable[[Params], Planes]:
    values = values_of(settings, plane, lambda text: names.number(text).number)
    surface = [names.of_copies(settings[key], {}) for key in ("friction", "restitution")]
    return lambda params: plane(at(values["normal"], params), values["offset"](params), *at(tuple(surface), params))


def _entry_of(settings: Settings, names: Names, first: int) -> Entry:
    _refuse_contradictions(settings, names)
    grid = settings["grid"]
    counts = (settings["count"] or 1, 1, 1) if grid is None else grid["counts"]
    rows = np.unravel_index(np.arange(np.prod(counts)), counts, order="F")
    places: dict[str, np.ndarray] = dict(zip(COPY, (np.arange(np.prod(counts)), *rows), strict=True))
    recipe = _recipe_of(settings, names, places)
    of_copies = {
        key: names.of_copies(settings[key], places)
        for key in ("mass", "density", "friction", "restitution")
        if settings[key] is not None
    }
    moments = settings["inertia"] and names.vector_of_copies(settings["inertia"], places)
    orientation = names.vector_of_copies(settings["orientation"], places)
    position = names.vector_of_copies(settings["position"], places)
    spacing = grid and [names.number(text) for text in grid["spacing"]]
    region = settings["random"] and [[names.number(text) for text in settings["random"][key]] for key in ("from", "to")]
    scatter = settings["scatter"] or {}
    count = len(places["index"])

    if recipe.volume is None and "density" in of_copies:
        raise settings.refuse(
            "density", f"has no effect on shape = '{settings['shape']}', which has no volume; give a mass"
        )

    def bodies(params: Params) -> Bodies:
        arguments = recipe.values(params)
        if recipe.volume is not None and "density" in of_copies:
            mass = of_copies["density"](params) * recipe.volume(arguments)
        else:
            mass = of_copies["mass"](params) if "mass" in of_copies else jnp.ones((), precision_of(params))
        surface = [of_copies[key](params) for key in ("friction", "restitution")]
        made = _repeated(recipe.body, mass, arguments, surface, moments and moments(params), count)
        return made if settings["motion"] == "free" else held(made)

    def places_of(params: Params, time: jax.Array | float = 0.0) -> tuple[jax.Array, ...]:
        start = position(params, time)
        if spacing is None:
            return start
        return tuple(
            x + distance.number(params) * jnp.asarray(row, x.dtype)
            for x, distance, row in zip(start, spacing, rows, strict=True)
        )

    def rotations(params: Params, time: jax.Array | float = 0.0) -> Quaternion:
        parts = [jnp.broadcast_to(part, (count,)) for part in orientation(params, time)]
        return _rotation(parts)

    def corners(params: Params) -> tuple[Vector, Vector]:
        low, high = (Vector(*(formula.number(params) for formula in corner)) for corner in region)
        return low, high

    return Entry(
        settings=settings,
        name=settings["name"],
        first=first,
        places=places,
        bodies=bodies,
        position=places_of,
        orientation=rotations,
        velocity=names.vector_of_copies(settings["velocity"], places),
        angular_velocity=names.vector_of_copies(settings["angular_velocity"], places),
        region=corners if region else None,
        scatter={key: names.number(text).number for key, text in scatter.items() if isinstance(text, FormulaText)},
    )


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a body is made of numbers.

    Attributes:
        values: ``params -> values`` of its shape, each one number or one for each copy.
        body: ``(mass, values, friction, restitution) -> Bodies``, one body of one number each.
        volume: ``values -> `` volume in m^3, by which a density gives the mass; None for a body without.
    """

    values: Callable[[Params], dict[str, Any]]
    body: Callable[..., Bodies]
    volume: Callable[[dict[str, Any]], Any] | None


def _recipe_of(settings: Settings, names: Names, places: Mapping[str, np.ndarray]) -> Recipe:
    """Return how the shape that a table chooses is made, of a body or of a part of a compound."""
    shape = SHAPE.part(settings)
    declared = declaration_of(shape)
    if "parts" in declared.keys:
        return _recipe_of_parts(shape, settings, names, places)
    values = values_of(settings, shape, lambda text: names.of_copies(text, places))
    options = {key: settings[key] for key in declared.keys}
    volume = getattr(declared, "volume", None)

    def body(mass: jax.Array, values: dict[str, Any], friction: jax.Array, restitution: jax.Array) -> Bodies:
        return shape(mass, **options, **values, friction=friction, restitution=restitution)

    return Recipe(
        values=lambda params: {name: at(value, params) for name, value in values.items()},
        body=body,
        volume=None if volume is None else lambda values: volume(**options, **values),
    )


def _recipe_of_parts(
    shape: Callable[..., Bodies], settings: Settings, names: Names, places: Mapping[str, np.ndarray]
) -> Recipe:
    """Return how a compound is made: of parts with masses of their own, or with shares of its mass by their volumes."""
    parts = settings["parts"]
    recipes = [_recipe_of(part, names, places) for part in parts]
    _refuse_masses(settings)
    numbers = [
        {key: names.of_copies(part[key], places) for key in ("mass", "density") if part[key] is not None}
        | {key: names.vector_of_copies(part[key], places) for key in ("position", "orientation")}
        for part in parts
    ]

    def values(params: Params) -> dict[str, Any]:
        return {
            "parts": tuple(
                {"shape": recipe.values(params), **{key: of(params) for key, of in each_part.items()}}
                for recipe, each_part in zip(recipes, numbers, strict=True)
            )
        }

    def volumes(values: dict[str, Any]) -> list[Any]:
        return [recipe.volume(part["shape"]) for recipe, part in zip(recipes, values["parts"], strict=True)]  # type: ignore[misc]

    def body(mass: jax.Array, values: dict[str, Any], friction: jax.Array, restitution: jax.Array) -> Bodies:
        parts = values["parts"]
        masses = [part.get("mass") for part in parts]
        if None in masses:
            of_each = volumes(values)
            whole = sum(of_each)
            masses = [
                own if own is not None else part["density"] * volume if "density" in part else mass * volume / whole
                for own, part, volume in zip(masses, parts, of_each, strict=True)
            ]
        made = [
            recipe.body(own, part["shape"], friction, restitution)
            for recipe, own, part in zip(recipes, masses, parts, strict=True)
        ]
        return shape(
            made,
            each(lambda *values: jnp.stack(values), *(Vector(*part["position"]) for part in parts)),
            each(lambda *values: jnp.stack(values), *(_rotation(part["orientation"]) for part in parts)),
        )

    return Recipe(values=values, body=body, volume=lambda values: sum(volumes(values)))


def _rotation(parts: Sequence[jax.Array]) -> Quaternion:
    """Return the rotation of a rotation vector, or of a quaternion w, x, y, z."""
    return exponential(Vector(*parts)) if len(parts) == 3 else on_sphere(Quaternion(parts[0], Vector(*parts[1:])))


def _refuse_masses(settings: Settings) -> None:
    """Refuse masses of parts beside one of the body, or of some parts alone.

    Raises:
        UserError: naming the key.
    """
    whole = [key for key in ("mass", "density") if settings[key] is not None]
    for part in settings["parts"]:
        own = [key for key in ("mass", "density") if part[key] is not None]
        if len(own) > 1:
            raise part.refuse("density", "has no effect beside mass; leave one of them out", Remedy("remove"))
        if own and (whole or settings["motion"] != "free"):
            why = f"{whole[0]} of the body" if whole else f"motion = '{settings['motion']}'"
            raise part.refuse(own[0], f"has no effect beside {why}; leave one of them out", Remedy("remove"))
        if not own and not whole and settings["motion"] == "free":
            raise part.refuse("mass", "is missing; give a mass or density of each part, or of the body")


def _refuse_contradictions(settings: Settings, names: Names) -> None:
    """Refuse keys of one entry that have no effect beside each other, and a missing mass.

    Raises:
        UserError: naming the key.
    """
    _refuse_of_motion(settings, names)
    if settings["motion"] == "free" and settings["mass"] is None is settings["density"] and "parts" not in settings:
        raise settings.refuse("mass", "is missing; give a mass in kg, or a density in kg/m^3")


def _refuse_of_motion(settings: Settings, names: Names) -> None:
    """Refuse what has no effect on a body whose motion is prescribed or held, and times of one that is free.

    Raises:
        UserError: naming the key.
    """
    motion = settings["motion"]
    for key in ("position", "orientation") if motion != "prescribed" else ():
        for index, text in enumerate(settings[key]):
            if names.scope.formula(text, text.takes).takes(TIME):
                where = f"{settings.path(key)}[{index}]"
                raise UserError(f"{where} takes the time; set motion = 'prescribed', or give a velocity", key=where)


def _repeated(
    shape: Callable[..., Bodies],
    mass: jax.Array,
    values: Mapping[str, Any],
    surface: Sequence[jax.Array],
    moments: tuple[jax.Array, ...] | None,
    count: int,
) -> Bodies:
    """Return the copies of a body, whose numbers are the same for all or one for each."""

    def one(mass: jax.Array, values: Mapping[str, Any], surface: Sequence[jax.Array], moments: Any) -> Bodies:
        body = shape(mass, values, *surface)
        if moments is None:
            return body
        x, y, z = moments
        return dataclasses.replace(body, inertia=Vector(x, y, z))

    given = (mass, dict(values), tuple(surface), moments)
    if not any(jnp.ndim(leaf) for leaf in jax.tree.leaves(given)):
        return repeat(one(*given), count)
    bodies = jax.vmap(one)(*each(lambda leaf: jnp.broadcast_to(leaf, (count,)), given))
    return copies_of(bodies, bodies, count)
