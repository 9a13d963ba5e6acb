"""Start of a flow described as data: formulas of the velocity, random eddies, and stored fields."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.arrays import Stored
from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.functions import UNARY
from simkit.core.expressions.scope import precision_of, refuse_out_of_bounds
from simkit.core.formulation import computed_once
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, about
from simkit.flow.boundary.domain import prescribe, velocity_on_sides
from simkit.flow.description.formulas import AXES, COMPONENTS, Names, Places
from simkit.flow.eddies import periodic_eddies, random_eddies
from simkit.flow.grid import Velocity, end, with_end
from simkit.flow.operators.differences import curl, divergence, gradient, linear_at_faces
from simkit.flow.solvers.pressure import pressure_solver


class StoredFields:
    """Arrays with which a flow starts.

    Attributes:
        velocity: components on their faces; None where formulas give them.
        scalars: values at the cell centers, by name.
    """

    def __init__(self, settings: Settings, places: Places) -> None:
        """Take the arrays that the settings name.

        Args:
            settings: of the flow.
            places: of the domain.

        Raises:
            UserError: if one is missing, given twice or not used, or has another shape than the grid.
        """
        self.velocity: tuple[np.ndarray, ...] | None = None
        self.scalars: dict[str, np.ndarray] = {}
        arrays = settings["start"]
        if arrays is None:
            return
        grid = places.domain.grid
        if "" in arrays:
            whole = self._shaped(arrays[""], "", (grid.dimension, *grid.cells))
            arrays = dict(zip(places.components, whole, strict=True))
        lines = zip(places.axes, grid.axes, strict=True)
        coordinates = {name: x for axis, a in lines for name, x in ((axis, a.centers), (f"{axis}_face", a.points))}
        for name, points in coordinates.items():
            if name in arrays and not _are_at(arrays[name], points):
                ends = [f"{x[0]:g} to {x[-1]:g}" if len(x) else "no place" for x in (np.ravel(arrays[name]), points)]
                problem = f"has its cells at {name} = {ends[0]}, and the flow at {ends[1]}; take the same grid"
                raise UserError(f"start {problem}", key="start")
        if not isinstance(arrays, Stored):
            faces = (f"{name}_face" for name in places.components)
            _refuse_unused(arrays, (*places.components, *faces, *settings["scalars"], *coordinates))
        components = []
        for i, name in enumerate(places.components):
            if f"{name}_face" in arrays:
                components.append(self._shaped(arrays[f"{name}_face"], f"{name}_face", grid.shape(i)))
            elif name in arrays:
                components.append(_on_faces(self._shaped(arrays[name], name, grid.cells), i, places))
            else:
                have = f"only {', '.join(arrays)}" if arrays else "nothing"
                raise UserError(f"start has no '{name}', at the cell centers, nor '{name}_face', but {have}; add it")
        self.velocity = tuple(components)
        for name, scalar in settings["scalars"].items():
            if (name in arrays) == ("initial" in scalar.given):
                problem = "is in start, too" if name in arrays else f"is missing, and start has no '{name}'"
                raise scalar.refuse("initial", f"{problem}; give one of them")
            if name in arrays:
                self.scalars[name] = self._shaped(arrays[name], name, grid.cells)

    def _shaped(self, array: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
        wanted = f"one number at each point, {shape}, axes in the order x, y, z"
        with about("start"):
            check_shape(f"start: '{name}'" if name else "start", array, wanted, shape)
        return array


def _refuse_unused(arrays: Mapping[str, Any], takes: Collection[str]) -> None:
    """Refuse arrays of which a flow would take none, and two for one component."""
    for name in arrays:
        if name not in takes:
            why = "is not an array of this flow" if name in COMPONENTS + AXES else "is unknown"
            raise UserError(f"start: '{name}' {why}; leave it out, it takes {', '.join(takes)}", key="start")
        if name in COMPONENTS and f"{name}_face" in arrays:
            raise UserError(f"start has both '{name}' and '{name}_face'; give one of them", key="start")


def _are_at(stored: np.ndarray, centers: np.ndarray) -> bool:
    """Return whether places are those of the cells, but for rounding in single precision."""
    size = np.max(np.abs(centers))
    return stored.shape == centers.shape and bool(np.all(np.abs(stored - centers) <= 1e-5 * size))


def _on_faces(field: np.ndarray, axis: int, places: Places) -> np.ndarray:
    """Return a component at the cell centers interpolated linearly to its faces; on sides that of the nearest cells."""
    values = jnp.asarray(field, float)
    inner = linear_at_faces(values, axis, places.domain.grid)
    if places.domain.sides[axis] is not None:
        inner = jnp.concatenate([end(values, axis, 0), inner, end(values, axis, 1)], axis)
    return np.asarray(inner)


def constants(arrays: Any, dtype: Any) -> Any:
    """Return arrays of a compiled program, which are not to be computed with while it is compiled."""
    return computed_once(jax.tree.map(lambda array: jnp.asarray(array, dtype), arrays))


class Eddies:
    """Random eddies at the start: formulas of their speed or energy, and of the peak of their spectrum.

    Attributes:
        formulas: by key: "speed" or "energy", and "wavenumber".
    """

    def __init__(self, given: FormulaText | Settings, settings: Settings, names: Names, places: Places) -> None:
        """Check the settings.

        Args:
            given: the speed, or a table.
            settings: those of the start.
            names: names that formulas may use.
            places: of the domain.

        Raises:
            UserError: in a domain that they do not serve; names the key.
        """
        self._grid, sides = places.domain.grid, places.domain.sides
        texts = given if isinstance(given, Settings) else {"speed": given}
        self.formulas = {key: names.formula(text) for key, text in texts.items() if text is not None}
        self._is_periodic = all(pair is None for pair in sides)
        is_channel = len(sides) == 2 and sides[0] is None and sides[1] is not None
        if not self._is_periodic and not is_channel:
            remedy = "a periodic box, or a plane flow that is periodic along x and bounded along y; remove them"
            raise settings.refuse("eddies", f"need {remedy}")
        if is_channel and "wavenumber" in self.formulas:
            raise settings.refuse("eddies.wavenumber", "has no effect between sides; leave it out")

    def wavenumber(self, params: Params) -> Any:
        """Return the wavenumber of the maximum of the spectrum."""
        if "wavenumber" in self.formulas:
            return self.formulas["wavenumber"].number(params)
        return 8 * math.pi / min(axis.length for axis in self._grid.axes)

    def check(self, params: Params) -> None:
        """Refuse formulas out of bounds, and a maximum of the spectrum that the grid does not hold.

        Raises:
            UserError: that names the key.
        """
        for formula in self.formulas.values():
            refuse_out_of_bounds(formula, formula.number(params))
        axes = self._grid.axes
        low, high = 2 * math.pi / max(a.length for a in axes), math.pi / (2 * max(a.length / a.cells for a in axes))
        if self._is_periodic and not low * (1 - 1e-6) <= (k := float(self.wavenumber(params))) <= high * (1 + 1e-6):
            range_ = f"from {low:.4g}, one wave along the longest axis, to {high:.4g}, four cells a wave"
            raise UserError(f"initial.eddies.wavenumber = {k:.4g} is not one of the grid; choose {range_}")

    def __call__(self, params: Params, key: jax.Array, dtype: Any) -> Velocity:
        """Return their velocity."""
        amount = next(iter(self.formulas.values())).number(params)
        speed = amount if "speed" in self.formulas else UNARY["sqrt"](2 * amount)
        if self._is_periodic:
            eddies = periodic_eddies(self._grid, key, self.wavenumber(params), dtype)
        else:
            eddies = random_eddies(self._grid, key, dtype)
        return tuple(speed * f for f in eddies)


class InitialVelocity:
    """Formulas of the velocity at the start.

    Attributes:
        components: formulas of velocity components, by index of the component.
        stream: formula of a stream function in place of components; or None.
        eddies: random eddies; or None.
        stored: arrays on the faces, in place of formulas; or None.
    """

    def __init__(self, settings: Settings, names: Names, places: Places, stored: tuple[np.ndarray, ...] | None) -> None:
        """Check the settings.

        Args:
            settings: settings of the start.
            names: names that formulas may use.
            places: of the domain.
            stored: see `StoredFields.velocity`.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self._places = places
        texts = {key: text for key, text in settings.items() if text is not None}
        eddies = texts.pop("eddies", None)
        formulas = {key: names.formula(text) for key, text in texts.items()}
        self.components = {i: formulas[name] for i, name in enumerate(COMPONENTS) if name in formulas}
        self.stream = formulas.get("stream_function")
        self.eddies = None if eddies is None else Eddies(eddies, settings, names, places)
        self.stored = stored
        if stored is not None and formulas:
            raise settings.refuse(
                min(formulas), "is given beside start, which gives the velocity; leave one of them out"
            )
        open_sides = places.domain.open_sides()
        self._solve = pressure_solver(places.domain.grid, open_sides=open_sides) if self.needs_projection else None

    @property
    def needs_projection(self) -> bool:
        """Whether the velocity of the formulas may have a divergence or differ from the boundary conditions."""
        domain = self._places.domain
        through_walls = self.stream is not None and bool(domain.bounded())
        is_any = bool(self.components) or self.stored is not None
        return is_any or bool(domain.entrances()) or through_walls

    def said(self, params: Params) -> Velocity:
        """Return the velocity of the formulas or stored fields, without eddies and before projection."""
        places, grid = self._places, self._places.domain.grid
        dtype = precision_of(params)
        if self.stored is not None:
            return constants(self.stored, dtype)
        if self.stream is not None:
            axes = zip(places.axes, grid.axes, strict=True)
            corners = {name: Named(jnp.asarray(axis.points, dtype), (name,)) for name, axis in axes}
            field = self.stream.on(places.axes, params, **corners)
            return curl(jnp.broadcast_to(field, [len(axis.points) for axis in grid.axes]), grid)
        fields = []
        for i in range(grid.dimension):
            field = jnp.zeros((), dtype)
            if i in self.components:
                field = self.components[i].on(places.axes, params, **places.coordinates(i, params))
            fields.append(jnp.broadcast_to(field, grid.shape(i)))
        return tuple(fields)

    def __call__(self, params: Params, key: jax.Array, boundary: Callable[[Params, Any], Any] | None) -> Velocity:
        """Return the divergence-free initial velocity.

        Args:
            params: parameters.
            key: random key of the eddies.
            boundary: velocity on the sides, ``(params, time) -> values``; or None.
        """
        domain = self._places.domain
        grid = domain.grid
        velocity = self.said(params)
        dtype = velocity[0].dtype
        if self.eddies is not None:
            velocity = tuple(map(jnp.add, velocity, self.eddies(params, key, dtype)))
        velocity = _closed(velocity, self._places)
        if self._solve is None:
            return velocity
        velocity = prescribe(velocity, velocity_on_sides(boundary, domain, params, jnp.zeros((), dtype)), domain)
        slopes = gradient(self._solve(divergence(velocity, grid)), grid, domain.open_sides())
        return jax.tree.map(jnp.subtract, velocity, slopes)


def _closed(velocity: Velocity, places: Places) -> Velocity:
    """Return the velocity with zero normal component on impermeable sides."""
    components = list(velocity)
    for axis in places.domain.bounded():
        for side in (0, 1):
            kind = places.domain.side(axis, side)
            if not (kind.enters or kind.leaves or kind.gives_pressure):
                nothing = jnp.zeros_like(end(components[axis], axis, side))
                components[axis] = with_end(components[axis], nothing, axis, side)
    return tuple(components)
