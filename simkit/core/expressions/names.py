"""Constants and functions of expressions: names, usage and documentation."""

import dataclasses
import math

# Names of functions elsewhere, and here.
OTHER_NAMES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
CONSTANTS = {"pi": math.pi, "e": math.e}


@dataclasses.dataclass(frozen=True)
class Function:
    """Signature of a function of expressions.

    Attributes:
        usage: an example of a call.
        doc: its result in a few words.
        least: smallest number of arguments.
        most: largest number of arguments.
        keywords: names of its options.
        over_frames: whether it reduces the frames of a run to one.
        by_axis: whether its options are coordinates by name of their axis.
        needs_axis: whether the option ``axis`` is required.
    """

    usage: str
    doc: str
    least: int = 1
    most: int = 1
    keywords: tuple[str, ...] = ()
    over_frames: bool = False
    by_axis: bool = False
    needs_axis: bool = False


def _elementwise() -> dict[str, Function]:
    docs = {
        "abs": "absolute value",
        "sign": "-1, 0 or 1",
        "sqrt": "square root",
        "exp": "exponential",
        "log": "natural logarithm",
        "log10": "decimal logarithm",
        "sin": "sine, of radians",
        "cos": "cosine, of radians",
        "tan": "tangent, of radians",
        "asin": "inverse sine",
        "acos": "inverse cosine",
        "atan": "inverse tangent",
        "sinh": "hyperbolic sine",
        "cosh": "hyperbolic cosine",
        "tanh": "hyperbolic tangent",
        "erf": "error function",
    }
    return {name: Function(f"{name}(x)", doc) for name, doc in docs.items()}


def _over_space() -> dict[str, Function]:
    docs = {
        "mean": "mean of all numbers of a frame, or along one axis, weighted by the widths of unequal cells",
        "sum": "sum of all numbers of a frame, or along one axis",
        "rms": "square root of the mean of squares",
        "norm": "square root of the sum of squares",
    }
    return {name: Function(f'{name}(u, axis="x")', doc, keywords=("axis",)) for name, doc in docs.items()}


def _over_frames() -> dict[str, Function]:
    docs = {
        "time_mean": "mean over the frames at times of at least ``after``",
        "time_sum": "sum over these frames",
        "time_rms": "square root of the mean of the squares over these frames",
        "largest": "largest value of these frames",
        "smallest": "smallest value of these frames",
    }
    reductions = {
        name: Function(f"{name}(x, after=20)", doc, keywords=("after",), over_frames=True) for name, doc in docs.items()
    }
    ends = {
        "final": Function("final(x)", "value in the last frame", over_frames=True),
        "first": Function("first(x)", "value in the first frame", over_frames=True),
    }
    in_time = {
        "at_time": Function("at_time(x, 20)", "value at a time, by cubics between the frames", 2, 2, over_frames=True),
        "time_integral": Function(
            "time_integral(x, after=20, before=60)",
            "integral over time, linear between the frames; by default from the first to the last",
            keywords=("after", "before"),
            over_frames=True,
        ),
    }
    return reductions | in_time | ends


FUNCTIONS = {
    **_elementwise(),
    "atan2": Function("atan2(y, x)", "angle of the point (x, y)", 2, 2),
    "hypot": Function("hypot(x, y)", "length of (x, y)", 2, 2),
    "clip": Function("clip(x, low, high)", "x, but at least low and at most high", 3, 3),
    "where": Function("where(condition, one, other)", "one value where a comparison is true, else the other", 3, 3),
    "max": Function("max(a, b) or max(u)", "the largest of several, or of a frame", 1, 16, ("axis",)),
    "min": Function("min(a, b) or min(u)", "the smallest of several, or of a frame", 1, 16, ("axis",)),
    **_over_space(),
    "at": Function(
        "at(u, x=0.5)",
        "value of a field at coordinates along one axis or several, by linear interpolation",
        keywords=("x", "y", "z"),
        by_axis=True,
    ),
    "cubic_at": Function(
        "cubic_at(u, x=0.5)",
        "the same by cubic interpolation through four points, more accurate for smooth fields",
        keywords=("x", "y", "z"),
        by_axis=True,
    ),
    "parabola_min": Function(
        "parabola_min(u)", "minimum of a frame, by parabolas through its smallest number and the neighbors"
    ),
    "parabola_min_at": Function(
        'parabola_min_at(u, axis="x")',
        "coordinate of that minimum along an axis",
        keywords=("axis",),
        needs_axis=True,
    ),
    **_over_frames(),
}
