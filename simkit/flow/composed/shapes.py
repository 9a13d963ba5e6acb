"""Shapes of obstacles described as data, around the origin of their own coordinates."""

from collections.abc import Callable, Mapping

import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.composed.places import AXES
from simkit.flow.obstacles.polygons import airfoil, polygon
from simkit.flow.obstacles.shapes import Shape, ball, box, capsule, cylinder, superellipse, translate

# For each shape: the number of axes, or None for any; its required keys, and its optional keys.
SHAPES: dict[str, tuple[int | None, tuple[str, ...], tuple[str, ...]]] = {
    "circle": (2, ("radius",), ()),
    "sphere": (3, ("radius",), ()),
    "cylinder": (3, ("radius",), ("half_length",)),
    "capsule": (None, ("radius", "half_length"), ()),
    "polygon": (2, ("corners",), ()),
    "airfoil": (2, ("digits", "chord"), ()),
    "ellipse": (2, ("half_axes",), ()),
    "ellipsoid": (3, ("half_axes",), ()),
    "box": (None, ("half_widths",), ("rounding",)),
}
KEYS = tuple(dict.fromkeys(key for _, needed, allowed in SHAPES.values() for key in (*needed, *allowed)))

# Lengths that are above zero.
SIZES = ("radius", "half_length", "half_axes", "half_widths", "chord")

type Shaped = Callable[[Params], Shape]


def shape_of(settings: Settings, scope: Scope, dimension: int) -> tuple[Shaped, dict[str, tuple[Formula, ...]]]:
    """Return the shape of an obstacle as a function of the parameters, around the origin, and its formulas by key.

    Args:
        settings: settings of the obstacle.
        scope: of formulas.
        dimension: number of axes.

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    word, distance = settings["shape"], settings["distance"]
    if (word is None) == (distance is None):
        ways = "both a shape and a distance are given" if word else "neither a shape nor a distance is given"
        raise settings.refuse("shape", f": {ways}; give one")
    axes, needed, allowed = SHAPES.get(word, (None, (), ()))
    if axes not in (None, dimension):
        fitting = ", ".join(name for name, (count, _, _) in SHAPES.items() if count in (None, dimension))
        raise settings.refuse("shape", f"= '{word}' is not for a flow of {dimension} axes; choose one of {fitting}")
    for key in needed:
        if settings[key] is None:
            raise settings.refuse(key, f"is missing; a shape '{word}' needs it")
    for key in KEYS:
        if settings[key] is not None and key not in (*needed, *allowed):
            raise settings.refuse(key, f"is given, which a {f"shape '{word}'" if word else 'distance'} does not take")
    if distance is not None:
        return _by_distance(scope.formula(distance, AXES[:dimension]), dimension), {}
    given = [key for key in (*needed, *allowed) if settings[key] is not None and key != "digits"]
    numbers = {key: _formulas(settings, key, scope, dimension) for key in given}

    def shape(params: Params) -> Shape:
        values = {key: tuple(formula.number(params) for formula in formulas) for key, formulas in numbers.items()}
        # The compiler would evaluate shapes of constant size beforehand, with other rounding in every program.
        values = computed_once(values)
        center = (0.0,) * dimension
        match word:
            case "circle" | "sphere":
                return ball(center, values["radius"][0])
            case "cylinder" if "half_length" in values:
                return cylinder(center, values["radius"][0], values["half_length"][0])
            case "cylinder":
                return ball(center[:2], values["radius"][0])
            case "capsule":
                ends = [(way * values["half_length"][0], *center[1:]) for way in (-1, 1)]
                return capsule(ends[0], ends[1], values["radius"][0])
            case "polygon":
                return polygon(jnp.stack(values["corners"]).reshape(-1, 2))
            case "airfoil":
                chord = values["chord"][0]
                return translate(airfoil(settings["digits"], chord), (-chord / 4, 0.0))
            case "ellipse" | "ellipsoid":
                return superellipse(center, values["half_axes"])
        return box(center, values["half_widths"], *values.get("rounding", ()))

    return shape, numbers


def refuse_sizes(numbers: Mapping[str, tuple[Formula, ...]], params: Params) -> None:
    """Refuse sizes that are not above zero, and edges of a box with a radius that is negative or beyond its sides.

    Args:
        numbers: formulas of a shape, by key.
        params: concrete parameters.

    Raises:
        UserError: naming the formula.
    """
    found = {key: [float(formula.number(params)) for formula in formulas] for key, formulas in numbers.items()}
    for key, values in found.items():
        for formula, value in zip(numbers[key], values, strict=True):
            if key in SIZES and not value > 0:
                raise UserError(f"{formula.where}: is {value:g} at the start; choose a length above 0")
    for formula, value in zip(numbers.get("rounding", ()), found.get("rounding", ()), strict=True):
        most = min(found["half_widths"])
        if not 0 <= value <= most:
            raise UserError(f"{formula.where}: is {value:g} at the start; choose 0 to {most:g}, the least half width")


def _formulas(settings: Settings, key: str, scope: Scope, dimension: int) -> tuple[Formula, ...]:
    said = settings[key]
    if isinstance(said, FormulaText):
        return (scope.formula(said),)
    if key == "corners":
        return tuple(scope.formula(one) for corner in said for one in corner)
    if len(said) != dimension:
        raise settings.refuse(key, f"has {len(said)} entries; write {dimension}, one for each axis")
    return tuple(scope.formula(one) for one in said)


def _by_distance(formula: Formula, dimension: int) -> Shaped:
    """Return the shape where a formula of the coordinates is negative."""

    def shape(params: Params) -> Shape:
        def distance(*points: jnp.ndarray) -> jnp.ndarray:
            points = tuple(jnp.broadcast_arrays(*points))
            axes = tuple(f"points_{k}" for k in range(points[0].ndim))
            given = {name: Named(x, axes) for name, x in zip(AXES[:dimension], points, strict=True)}
            found = formula.on(axes, params, **given) if axes else formula.number(params, **given)
            return jnp.broadcast_to(found, points[0].shape)

        return distance

    return shape
