"""Names that the formulas of a flow described as data may contain, by the key of the formula."""

from simkit.flow.composed.places import SHEAR_RATE, TIME
from simkit.flow.composed.scalars import INSULATED


def names_at(where: str, axes: tuple[str, ...], fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that a formula may contain besides parameters and derived values.

    Args:
        where: path of its key.
        axes: names of the axes.
        fields: coordinates, time, components of the velocity, names of scalars, and the speed.
    """
    match where.partition("[")[0].split("."):
        case ["viscosity" | "derived", *_]:
            return (*fields, SHEAR_RATE)
        case ["scalars", _, "source"]:
            return fields
        case ["force", _]:
            return fields[:-1]
        case (
            ["initial", "u" | "v" | "w" | "stream_function"] | ["scalars", _, "initial"] | ["obstacles", _, "distance"]
        ):
            return axes
        case ["scalars", _, "sides", _, _]:
            return (*axes, TIME, INSULATED)
        case ["axes", *_] | ["scalars", _, "sides", *_]:
            return (*axes, TIME)
        case ["obstacles", _, "scalars", _]:
            return (TIME, INSULATED)
        case ["flow_rate"] | ["obstacles", _, "position" | "angle" | "size" | "pressure_at" | "scalars", *_]:
            return (TIME,)
    return ()
