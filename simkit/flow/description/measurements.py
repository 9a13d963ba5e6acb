"""Fields and numbers that a flow described as data observes and diagnoses, with the friction on its walls."""

import functools
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_number
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, as_arrays, over, raised, times
from simkit.errors import UserError, nearest
from simkit.flow.boundary.side_data import on_side
from simkit.flow.description.formulas import AXES
from simkit.flow.description.obstacles import ObstacleFormulas
from simkit.flow.description.sides import ENDS, drawn_sides
from simkit.flow.diagnosis.measures import (
    courant_number,
    flow_quantities,
    kinetic_energy,
    magnitude,
    mean_velocity,
    stream_function,
    vorticity,
)
from simkit.flow.grid import coordinates_along, end, like, points_along
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary
from simkit.flow.obstacles.outline import check_outline, farthest_corner, on_rays
from simkit.flow.obstacles.surface_pressure import surface_pressure
from simkit.flow.operators.differences import at_centers, divergence, joined
from simkit.flow.operators.diffusion import shear
from simkit.flow.scalar import mean_scalar, scalar_variance
from simkit.flow.stepping.stepper import FlowState

if TYPE_CHECKING:
    from simkit.flow.description.equations import ComposedFlow


BODY_DISTANCE, STREAM_FUNCTION = "body_distance", "stream_function"


def check_observed(names: Sequence[str], fields: Collection[str], others: Collection[str], dimension: int) -> None:
    """Refuse names of other things than fields that may be observed.

    Args:
        names: what the setting ``observed`` gives.
        fields: names of the fields of the flow.
        others: names of numbers, coordinates and arrays that are stored without being named.
        dimension: number of axes.

    Raises:
        UserError: that says why the first of them may not be observed, and what may be.
    """
    for index, name in enumerate(names):
        if name in fields:
            continue
        hint: str = f"; choose from {', '.join(sorted(fields))}"
        plane = name.removesuffix("_mid") in ("vorticity", STREAM_FUNCTION)
        if dimension == 3 and plane:
            why = "is of plane flows, and this one is in space"
        elif dimension == 2 and (name in ("w", "w_face") or name.removesuffix("_mid") in {*fields, "w"}):
            why = "is of flows in space, and this one is plane"
        elif name == BODY_DISTANCE:
            why = "is of flows with obstacles, and this one has none"
        elif name in others:
            why = "is stored without being named here"
        else:
            why = "is not a field of this flow"
            hint = nearest(name, sorted(fields))
        raise UserError(f"observed[{index}] = {name[:64]!r} {why}", hint)


def walls_of(flow: "ComposedFlow") -> Iterator[tuple[int, int, str]]:
    """Yield (axis, side, name) of the sides that are walls, or of which a part is one."""
    domain = flow.places.domain
    for axis in domain.bounded():
        for side, which in enumerate(ENDS):
            parts = flow.sides.parts.get((axis, side), ())
            if domain.side(axis, side).is_wall() or any(part.is_wall() for part, _ in parts):
                yield axis, side, f"{AXES[axis]}_{which}"


def shear_on_walls(flow: "ComposedFlow", state: FlowState, params: Params) -> Arrays:
    """Return the mean shear stress over density of the flow on the walls of each side, along each direction of it.

        sum of nu du/dn A / sum of A,    A the area of walls around each point of the velocity component u

    On a side of several parts A is the area of the faces that are walls, half of it where only one of the two faces
    beside a point is; the mean is zero while there are none. Empty for a viscosity that varies.

    Args:
        flow: the flow.
        state: of the flow.
        params: parameters.
    """
    if flow.equations.varies:
        return {}
    domain, stresses = flow.places.domain, {}
    side_values = flow.equations.on_sides(params, state.time[0])
    viscosity = flow.viscosity.number(params)
    for axis, side, name in walls_of(flow):
        share = _share_of_walls(flow, axis, side, params, state.time[0])
        for i, f in enumerate(state.velocity):
            if i == axis:
                continue
            stress = (-1 if side else 1) * viscosity * end(shear(f, i, axis, side_values, domain), axis, side)
            area = _area_of_walls(share, axis, i, flow)
            total = jnp.sum(area)
            stresses[f"{name}.shear_{AXES[i]}"] = jnp.sum(stress * area) / jnp.where(total > 0, total, 1)
    return stresses


def _share_of_walls(flow: "ComposedFlow", axis: int, side: int, params: Params, time: jax.Array) -> jax.Array:
    """Return one layer at the centers of the faces of a side, 1 where it is a wall and 0 elsewhere."""
    shape = [1 if k == axis else n for k, n in enumerate(flow.places.domain.grid.cells)]
    share = jnp.full(shape, 1.0)
    for part, condition in flow.sides.parts.get((axis, side), ()):
        if condition is None:
            share = jnp.full(shape, float(part.is_wall()))
            continue
        holds = flow.places.of_side(condition, axis, side)(params, time) > 0.5
        share = jnp.where(holds, like(share, part.is_wall()), share)
    return share


def _area_of_walls(share: jax.Array, axis: int, component: int, flow: "ComposedFlow") -> jax.Array:
    """Return the area of walls around the points of a velocity component on a side."""
    grid = flow.places.domain.grid
    for i, a in enumerate(grid.axes):
        share = share if i == axis else share * like(share, grid.along(a.widths, i))
    if grid.axes[component].periodic:
        return (share + jnp.roll(share, -1, component)) / 2
    none = jnp.zeros_like(end(share, component, 0))
    return (joined([none, share], component) + joined([share, none], component)) / 2


def surface_pressures(
    name: str, obstacle: ObstacleFormulas, flow: "ComposedFlow", cell: float, state: FlowState, params: Params
) -> dict[str, jax.Array]:
    """Return the pressure where rays from the position of an obstacle leave it, by the names of the points.

    Args:
        name: of the obstacle.
        obstacle: its formulas.
        flow: the flow.
        cell: width of the cells there, see `simkit.flow.obstacles.surface_pressure.surface_pressure`.
        state: of the flow.
        params: parameters.
    """
    if not obstacle.pressures:
        return {}
    domain, bodies, time = flow.places.domain, flow.equations.obstacle, state.time[0]
    body = bodies.bodies[name]  # type: ignore[union-attr]
    now = body.now(params, time)
    shape = body.shape_at(params, now, domain)
    angles = jnp.stack([formula.number(params, time=time) for formula in obstacle.pressures.values()])
    points = on_rays(shape, now.position, angles, farthest_corner(now.position, domain))
    pressures = surface_pressure(name, points, cell, flow.equations, state, params)
    return {where: pressures[k] for k, where in enumerate(obstacle.pressures)}


def check_surface(name: str, obstacle: ObstacleFormulas, flow: "ComposedFlow", params: Params) -> None:
    """Refuse an obstacle of which a ray may leave twice, where the pressure on its surface is diagnosed.

    Args:
        name: of the obstacle.
        obstacle: its formulas.
        flow: the flow.
        params: as the run begins.

    Raises:
        UserError: if a ray from the position meets the outline twice, or the position is outside.
    """
    if not obstacle.pressures or isinstance(flow.equations.obstacle, ImmersedBoundary):
        return  # an immersed boundary checks its outlines itself
    body = flow.equations.obstacle.bodies[name]  # type: ignore[union-attr]
    now = body.now(params, 0.0)
    shape = body.shape_at(params, now, flow.places.domain)
    try:
        check_outline(shape, now.position, farthest_corner(now.position, flow.places.domain))
    except UserError:
        raise obstacle.settings.refuse(
            "pressure_at",
            "needs a position in the body from which every ray leaves it once; choose one, or remove it",
        ) from None


# Loads whose coefficients have a reference.
COEFFICIENTS = ("drag", "lift")
LOADS = {
    2: ("drag", "lift", "torque"),
    3: ("drag", "lift", "side_force", "torque_x", "torque_y", "torque"),
}
_MEANINGS = {
    "drag": "force of the flow along x",
    "lift": "force of the flow along y",
    "side_force": "force of the flow along z",
    "torque_x": "torque of the flow about the axis along x",
    "torque_y": "torque of the flow about the axis along y",
    "torque": "torque of the flow, counterclockwise",
}


def unit_of_time(settings: Settings) -> str:
    """Return the unit of time: the given one, by default the unit of length over that of velocity.

    Args:
        settings: settings of a flow.
    """
    units = settings["units"]
    return units["time"] or over(units["length"], units["velocity"])


class Measurements:
    """Observed fields and diagnostics of a flow.

    Attributes:
        dimensions: names of the axes of each observed field, by its name.
        coordinates: centers of the cells along the axes, and the kinds of the sides.
        quantities: unit and meaning of everything.
    """

    def __init__(self, flow: "ComposedFlow") -> None:
        """Collect the fields, coordinates and quantities of a flow.

        Raises:
            UserError: if ``observed`` names an unknown field, or the plane is outside the domain.
        """
        self._flow = flow
        self._domain, self._grid = flow.places.domain, flow.places.domain.grid
        self._plane = self._found_plane()
        fields = self._fields() | self._asked_for()
        chosen = flow.settings["observed"]
        self.quantities = self._described()
        check_observed(chosen or (), fields, self._unnamed(), self._grid.dimension)
        flat = [name for name, axes in self._fields().items() if len(axes) < 3]
        self._names = tuple(flat if chosen is None else dict.fromkeys(chosen))
        if self._domain_moves:
            self._names = (*self._names, "side_velocity")
            fields["side_velocity"] = ("side",)
        self.dimensions = {name: fields[name] for name in self._names}
        axes = dict(zip(flow.places.axes, self._grid.axes, strict=True))
        self.coordinates = coordinates_along(**axes) | {
            "sides": drawn_sides(flow.settings["axes"], flow.sides, flow.places, as_arrays(dict(flow.parameters)))
        }
        used = {axis for of in self.dimensions.values() for axis in of}
        self.coordinates |= points_along(**{name: axis for name, axis in axes.items() if f"{name}_face" in used})
        defaults = as_arrays(dict(flow.parameters))
        self._cells = {
            name: obstacle.cell(self._domain, defaults)
            for name, obstacle in flow.obstacles.items()
            if obstacle.pressures
        }

    @property
    def _is_plane(self) -> bool:
        return self._grid.dimension == 2

    @property
    def _domain_moves(self) -> bool:
        """Whether pictures show sides that move along themselves."""
        kinds = ((axis, side, i) for axis, side, i in self._flow.sides.velocities if i != axis and axis < 2 and i < 2)
        return any(self._domain.side(axis, side).is_wall() for axis, side, _ in kinds)

    @property
    def _is_driven(self) -> bool:
        """Whether a force along a periodic x axis drives the flow, or a flow rate along it is held."""
        return self._grid.axes[0].periodic and (0 in self._flow.force or self._flow.flow_rate is not None)

    def _found_plane(self) -> tuple[int, float]:
        """Return the index of the layer of cells below the plane of pictures, and the weight of the layer above it."""
        place = self._flow.settings["plane"]
        if self._is_plane:
            return 0, 0.0
        centers = self._grid.axes[2].centers
        faces = self._grid.axes[2].faces
        place = (faces[0] + faces[-1]) / 2 if place is None else place
        check_number("plane", place, faces[0], faces[-1])
        below = int(np.clip(np.searchsorted(centers, place) - 1, 0, len(centers) - 2))
        share = (place - centers[below]) / (centers[below + 1] - centers[below])
        return below, float(np.clip(share, 0, 1))

    def _fields(self) -> dict[str, tuple[str, ...]]:
        """Return the axes of all fields that may be observed, by name."""
        names = (*self._flow.places.components, "speed", "pressure", *self._flow.scalars)
        bodies = {BODY_DISTANCE: ("x", "y")} if self._flow.obstacles else {}
        if self._is_plane:
            names = (*names, "vorticity", *bodies)
            return {name: ("x", "y") for name in names}
        return {f"{name}_mid": ("x", "y") for name in names} | {name: ("x", "y", "z") for name in names} | bodies

    def _asked_for(self) -> dict[str, tuple[str, ...]]:
        """Return the axes of the fields that are observed only where they are asked for, by name."""
        axes = self._flow.places.axes
        faces = {
            f"{name}_face": tuple(f"{axis}_face" if i == k else axis for k, axis in enumerate(axes))
            for i, name in enumerate(self._flow.places.components)
        }
        return faces | ({STREAM_FUNCTION: ("x_face", "y_face")} if self._is_plane else {})

    def _unnamed(self) -> set[str]:
        """Return the names of numbers, coordinates and arrays that are stored without being named."""
        numbers = {"time", "kinetic_energy", "largest_velocity", "divergence", "courant_number"}
        numbers |= {f"mean_{name}" for name in self._flow.places.components}
        numbers |= {name for name in self.quantities if "." in name}
        numbers |= {"last_time_step"} if self._flow.courant_number is not None else set()
        numbers |= {"drive"} if self._flow.flow_rate is not None else set()
        return numbers | {*self._flow.places.axes} | ({"side_velocity"} if self._domain_moves else set())

    def observe(self, state: FlowState, params: Params) -> Arrays:
        """Return the fields that frames store."""
        centered = functools.cache(lambda: at_centers(state.velocity, self._grid))
        makers: dict[str, Any] = {
            name: lambda i=i: centered()[i] for i, name in enumerate(self._flow.places.components)
        }
        makers["speed"] = lambda: magnitude(centered())
        makers["pressure"] = lambda: state.pressure
        makers |= {name: lambda name=name: state.scalar[name] for name in self._flow.scalars}
        if self._is_plane:
            makers["vorticity"] = lambda: vorticity(state.velocity, self._on_sides(state, params), self._domain)
        else:
            makers |= {f"{name}_mid": lambda make=make: self._cut(make()) for name, make in makers.items()}
        for i, name in enumerate(self._flow.places.components):
            makers[f"{name}_face"] = lambda i=i: state.velocity[i]
        makers[STREAM_FUNCTION] = lambda: stream_function(state.velocity, self._grid)
        if self._flow.obstacles:
            makers[BODY_DISTANCE] = lambda: self._distance(state, params)
        makers["side_velocity"] = lambda: self._side_velocity(state, params)
        return {name: makers[name]() for name in self._names}

    def diagnose(self, state: FlowState, params: Params) -> Arrays:
        """Return the diagnostics of a state."""
        grid, velocity, bodies = self._grid, state.velocity, self._flow.equations.obstacle
        centered = at_centers(velocity, grid)
        fluid = None
        speed, excess = magnitude(centered), divergence(velocity, grid)
        if isinstance(bodies, Bodies):
            fluid = functools.cache(lambda i: bodies.fluid(i, params, state.time[0]))
            # The velocity inside a body that changes its size has a divergence, which fills it.
            filling = bodies.source(params, state.time[0])
            excess = excess if filling is None else excess - filling
        diagnostics = {
            "time": state.time[0],
            "kinetic_energy": kinetic_energy(velocity, grid, fluid),
            "largest_velocity": jnp.max(speed),
            "divergence": jnp.max(jnp.abs(excess)),
            "courant_number": courant_number(velocity, state.time_step, grid),
        }
        if self._flow.courant_number is not None:
            diagnostics["last_time_step"] = state.time_step
        for name, f in zip(self._flow.places.components, centered, strict=True):
            diagnostics[f"mean_{name}"] = mean_scalar(f, grid)
        if self._is_driven:
            diagnostics["drive"] = self._drive(state, params)
        for axis, side, name in self._passages():
            diagnostics[f"{name}.flow"] = -self._domain.place(axis, side).flux(velocity)
        diagnostics |= shear_on_walls(self._flow, state, params)
        diagnostics |= self._loads(state, params)
        return diagnostics | self._scalars(state, params, None if fluid is None else fluid(None))

    def _on_sides(self, state: FlowState, params: Params) -> Any:
        return self._flow.equations.on_sides(params, state.time[0])

    def _drive(self, state: FlowState, params: Params) -> jax.Array:
        """Return the mean force along x per unit mass, and the acceleration that holds the flow rate."""
        if 0 not in self._flow.force:
            return state.drive
        force = self._flow.equations.force(state.velocity, state.scalar, params, state.time[0])  # type: ignore[misc]
        return state.drive + mean_velocity(force, 0, self._grid)

    def _cut(self, f: jax.Array) -> jax.Array:
        """Return a field in the plane of pictures."""
        below, share = self._plane
        return (1 - share) * f[:, :, below] + share * f[:, :, below + 1]

    def _side_velocity(self, state: FlowState, params: Params) -> jax.Array:
        """Return the mean velocity along each of the left, right, lower and upper side."""
        side_values = self._on_sides(state, params)
        velocities = []
        for axis in (0, 1):
            for side in (0, 1):
                moves = self._domain.sides[axis] is not None and self._domain.side(axis, side).is_wall()
                along = on_side(side_values, axis, side)[1 - axis] if moves else 0.0
                velocities.append(jnp.mean(like(state.time, along)))
        return jnp.stack(velocities)

    def _distance(self, state: FlowState, params: Params) -> jax.Array:
        """Return the distance from the nearest obstacle, negative inside; in space, in the plane of pictures."""
        distance = self._flow.equations.obstacle.distance(params, state.time[0])  # type: ignore[union-attr]
        return distance if self._is_plane else self._cut(distance)

    def _loads(self, state: FlowState, params: Params) -> Arrays:
        """Return force and torque on each obstacle, and the positions of moving ones."""
        loads: Arrays = {}
        names = LOADS[self._grid.dimension]
        for name, obstacle in self._flow.obstacles.items():
            load = self._flow.equations.obstacle.load_on(name, state.load)  # type: ignore[union-attr]
            # What the fluid inside an attached body exerts on the sides is part of the load, and not known.
            loads |= {} if obstacle.attached else {f"{name}.{what}": load[k] for k, what in enumerate(names)}
            if obstacle.reference and not obstacle.attached:
                # A dynamic pressure times the projected area; in the plane, times the length.
                speed, size = (formula.number(params) for formula in obstacle.reference.values())
                scale = speed**2 / 2 * size
                loads |= {f"{name}.{what}_coefficient": loads[f"{name}.{what}"] / scale for what in COEFFICIENTS}
            for scalar in () if obstacle.attached else self._flow.scalars:
                loads[f"{name}.{scalar}_given"] = self._flow.equations.obstacle.heat_of(name, state.load, scalar)  # type: ignore[union-attr]
            if obstacle.moves:
                place = obstacle.at(params, state.time[0])
                loads |= {f"{name}.{axis}": x for axis, x in zip(self._flow.places.axes, place, strict=True)}
            pressures = surface_pressures(name, obstacle, self._flow, self._cells.get(name, 0.0), state, params)
            loads |= {f"{name}.pressure_{where}": value for where, value in pressures.items()}
        return loads

    def _passages(self) -> Iterator[tuple[int, int, str]]:
        """Yield (axis, side, name) of the sides through which fluid passes."""
        domain = self._domain
        for axis, side in sorted({*domain.entrances(), *domain.exits(), *domain.open_sides()}):
            yield axis, side, f"{AXES[axis]}_{ENDS[side]}"

    def _mean_on_side(self, layer: jax.Array, axis: int) -> jax.Array:
        """Return the mean over a side of an array at the centers of its faces."""
        for i, a in enumerate(self._grid.axes):
            layer = layer if i == axis else layer * like(layer, self._grid.along(a.widths / a.length, i))
        return jnp.sum(layer)

    def _scalars(self, state: FlowState, params: Params, fluid: jax.Array | None) -> Arrays:
        statistics: Arrays = {}
        for name, formulas in self._flow.scalars.items():
            c = state.scalar[name]
            statistics[f"{name}.mean"] = mean_scalar(c, self._grid, fluid)
            statistics[f"{name}.variance"] = scalar_variance(c, self._grid, fluid)
            for axis, pair in enumerate(formulas.ends):
                for side, (kind, _) in enumerate(pair or ()):
                    if kind.is_given or kind.has_values:
                        flux = self._flow.carried[name].side_flux(c, params, state.time[0], axis, side, state.scalar)
                        statistics[f"{name}.flux_{AXES[axis]}_{ENDS[side]}"] = self._mean_on_side(flux, axis)
        return statistics

    def _described(self) -> dict[str, Quantity]:
        settings, time = self._flow.settings["units"], unit_of_time(self._flow.settings)
        length, velocity = settings["length"], settings["velocity"]
        table = flow_quantities(length, velocity, time, over("1", time) if settings["time"] else "")
        square = table["kinetic_energy"].unit
        table["w"] = Quantity(velocity, "velocity along z")
        table["z"] = Quantity(length, "position along z")
        table["z_face"] = Quantity(length, "position of cell faces along z")
        table[STREAM_FUNCTION] = Quantity(times(velocity, length), "stream function")
        if self._flow.obstacles:
            table["kinetic_energy"] = Quantity(square, "mean kinetic energy per unit mass, outside obstacles")
            table["largest_velocity"] = Quantity(velocity, "largest speed, the inside of obstacles included")
        table["pressure"] = Quantity(square, "pressure over density")
        ends = dict.fromkeys(f"{each.place} at {each.table.x[-1]:g}" for each in self._flow.tables_in_time)
        table["time"] = Quantity(time, "; ".join(["time", *(f"data end in {end}" for end in ends)]))
        table["last_time_step"] = Quantity(time, "length of the last time step; at the start, of the first")
        acceleration = over(velocity, time) if settings["time"] else over(square, length)
        table["drive"] = Quantity(
            acceleration, "mean acceleration along x by the force and by what holds the flow rate"
        )
        inside = ", the inside of obstacles included" if self._flow.obstacles else ""
        for name in self._flow.places.components:
            table[f"mean_{name}"] = Quantity(velocity, f"mean of {name} over the domain{inside}")
            table[f"{name}_face"] = Quantity(velocity, f"{table[name].doc}, on the faces of cells across it")
        for across, side, name in walls_of(self._flow):
            is_one = self._domain.side(across, side).is_wall()
            where = f"{'the wall' if is_one else 'the walls of'} {name.replace('_', ' ')}"
            for axis in AXES:
                doc = f"mean shear stress over density of the flow on {where}, along {axis}"
                table[f"{name}.shear_{axis}"] = Quantity(square, doc)
        area = raised(length, self._grid.dimension - 1)
        for _, _, name in self._passages():
            where = name.replace("_", " ")
            doc = f"net volume per time{' and length along z' if self._is_plane else ''} that enters by {where}"
            table[f"{name}.flow"] = Quantity(times(velocity, area), doc)
        for name, declared in self._flow.scalars.items():
            unit = declared.settings["unit"]
            table[name] = Quantity(unit, declared.settings["doc"] or name)
            where = f"over the domain{' outside obstacles' if self._flow.obstacles else ''}"
            table[f"{name}.mean"] = Quantity(unit, f"mean of {name} {where}")
            squared = f"({unit})^2" if unit != "1" else "1"
            table[f"{name}.variance"] = Quantity(squared, f"variance of {name} {where}")
            flux = velocity if unit == "1" else f"{unit} {velocity}"
            for axis in AXES:
                for which in ENDS:
                    doc = f"mean amount of {name} that diffuses in through the {which} side of {axis}"
                    table[f"{name}.flux_{axis}_{which}"] = Quantity(flux, doc)
        for name in self._flow.obstacles:
            power = self._grid.dimension - 1
            for what, doc in _MEANINGS.items():
                unit = times(square, raised(length, power + what.startswith("torque")))
                doc = f"{doc} on {name} over density{', per length' if power == 1 else ''}"
                table[f"{name}.{what}"] = Quantity(unit, doc)
            for what in COEFFICIENTS if self._flow.obstacles[name].reference else ():
                table[f"{name}.{what}_coefficient"] = Quantity("1", f"{what} coefficient of {name}")
            for scalar, declared in self._flow.scalars.items():
                unit = declared.settings["unit"]
                flux = velocity if unit == "1" else f"{unit} {velocity}"
                doc = f"amount of {scalar} that {name} gives per time{', per length' if power == 1 else ''}"
                table[f"{name}.{scalar}_given"] = Quantity(times(flux, raised(length, power)), doc)
            for axis in AXES:
                table[f"{name}.{axis}"] = Quantity(length, f"position of {name} along {axis}")
            for where in self._flow.obstacles[name].pressures:
                table[f"{name}.pressure_{where}"] = Quantity(square, f"pressure over density on {name}, {where}")
        cuts = {
            f"{name}_mid": Quantity(q.unit, f"{q.doc}, in the plane shown")
            for name, q in table.items()
            if "." not in name
        }
        return cuts | table
