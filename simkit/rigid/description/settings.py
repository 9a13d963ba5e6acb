"""Settings of a scene of rigid bodies described as data."""

from typing import Any

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE
from simkit.core.parts import Choice, PartTable
from simkit.core.settings import (
    Setting,
    either,
    excludes,
    flag,
    formula,
    line,
    named,
    needs,
    several,
    table,
    tabulated,
    text,
    whole,
    word,
)
from simkit.rigid.bodies.bodies import MAX_BODIES
from simkit.rigid.loads import BODY as BODY_STATE
from simkit.rigid.parts import JOINT_KINDS, LOADS, METHODS_BY_NAME, MOTORS, SOLIDS
from simkit.rigid.shapes.solid import COPY

# Names that some formulas take besides parameters, and so may derived values.
LOCAL = tuple(dict.fromkeys((*COPY, *BODY_STATE)))
NAME = line("name, by which joints, loads and quantities call it", "", 64, pattern=r"|[^\W\d]\w*", form="a name")


def of_copies(doc: str, default: float | None = None, **options: Any) -> Setting:
    """Return a setting that is a number or a formula of the number of the body among the copies of its entry."""
    return formula(doc, default, **{"takes": COPY, **options})


def vector_of_copies(doc: str, default: Any = None, counts: tuple[int, ...] = (3,), **options: Any) -> Setting:
    """Return a setting that is a list of such numbers, by default of three."""
    return several(of_copies("a component", **options), doc, counts, default)


SHAPE = Choice(SOLIDS, "shape", "shape of the body")
BODY = PartTable(
    (SHAPE,),
    {
        "name": NAME,
        "count": whole("number of bodies of this kind; left out, 1, or that of the grid", None, low=1, high=MAX_BODIES),
        "mass": of_copies("mass", unit="kg", bounds=POSITIVE),
        "density": of_copies("mass per volume, in place of a mass", unit="kg/m^3", bounds=POSITIVE),
        "inertia": vector_of_copies("principal moments of inertia, in place of those of the shape, in kg m^2"),
        "friction": of_copies("coefficient of friction; a contact has the larger of two", 0.0, bounds=NOT_NEGATIVE),
        "restitution": of_copies("coefficient of restitution; a contact has the larger of two", 0.0, bounds=SHARE),
        "motion": word(
            "free; held, which keeps its velocity whatever acts on it; or prescribed by formulas of the time for "
            "position and orientation",
            ("free", "held", "prescribed"),
            "free",
        ),
        "position": vector_of_copies(
            "center of mass at the start, in m; of a grid, that of the first body", [0, 0, 0], takes=(*COPY, "time")
        ),
        "grid": table(
            "places in rows, columns and layers along x, y and z",
            {
                "counts": several(whole("a number of bodies", low=1), "numbers along x, y and z", (3,)),
                "spacing": several(formula("a distance", unit="m"), "distances along x, y and z", (3,)),
            },
        ),
        "random": table(
            "random places within a box without overlap of the spheres around the bodies, drawn from the seed",
            {
                "from": several(formula("a coordinate", unit="m"), "lower corner of the box", (3,)),
                "to": several(formula("a coordinate", unit="m"), "upper corner of the box", (3,)),
            },
        ),
        "orientation": vector_of_copies(
            "rotation at the start: a rotation vector in rad, or a quaternion w, x, y, z",
            [0, 0, 0],
            (3, 4),
            takes=(*COPY, "time"),
        ),
        "velocity": vector_of_copies("velocity of the center at the start, in m/s", [0, 0, 0]),
        "angular_velocity": vector_of_copies("angular velocity at the start, in rad/s", [0, 0, 0]),
        "scatter": table(
            "standard deviations of random changes of each body at the start, drawn from the seed",
            {
                "position": formula("of each coordinate", None, unit="m", bounds=NOT_NEGATIVE),
                "rotation": formula("of each component of a rotation vector", None, unit="rad", bounds=NOT_NEGATIVE),
                "velocity": formula("of each component", None, unit="m/s", bounds=NOT_NEGATIVE),
                "angular_velocity": formula("of each component", None, unit="rad/s", bounds=NOT_NEGATIVE),
            },
        ),
    },
    (
        *excludes("density", ("mass",)),
        *excludes("grid", ("count",)),
        *excludes("random", ("position", "grid")),
        *excludes("motion", ("velocity", "angular_velocity", "random", "scatter"), "prescribed"),
        *excludes("motion", ("mass", "density", "inertia"), "prescribed", "held"),
    ),
)
PLACE_OF_JOINT = {
    "first": text(
        "name of a body; `NAME[2]` is the third of its kind, `NAME[-1]` the last, and `NAME[index + 1]` depends on the "
        "joint"
    ),
    "second": text("name of another body; left out, the world", None),
    "at": several(
        formula("a coordinate", takes=("index",)),
        "place of the joint in the world at the start, in m; the axis is then that in the world, and the angle at the "
        "start is zero",
        (3,),
        None,
    ),
    "anchor": several(
        formula("a coordinate", takes=("index",)), "place of the joint in the frame of the first body, in m", (3,), None
    ),
    "base": several(
        formula("a coordinate", takes=("index",)),
        "place in the frame of the second body, or the world, in m",
        (3,),
        None,
    ),
}
JOINT = Choice(JOINT_KINDS, "joint", "kind of the joint")
JOINTS = PartTable(
    (JOINT,),
    {"name": NAME, "count": whole("number of joints of this kind", 1, low=1, high=MAX_BODIES), **PLACE_OF_JOINT},
    excludes("at", ("anchor", "base")),
)
ON_JOINT = {"joint": text("name of the joint that it acts in; `NAME[2]` is the third of its kind")}
MOTOR = Choice(MOTORS, "motor", "kind of the motor")
LOAD = Choice(LOADS, "load", "kind of the load")
LOAD_TABLE = PartTable(
    (LOAD,),
    {
        "joint": text("name of a joint that the load acts in", None),
        "on": several(text("name of a body"), "bodies that it acts on; left out, all", (), None, least=1),
    },
)
METHOD = PartTable((Choice(METHODS_BY_NAME, "name", "the method"),), {})
POINT = table(
    "a point of a body, or of the world",
    {
        "body": text("name of the body; left out, the world", None),
        "at": several(
            formula("a coordinate", unit="m", takes=("time",)), "its place in the frame of the body, or the world", (3,)
        ),
        "drawn": word("how pictures show it", ("nothing", "path", "target"), "nothing"),
    },
)
FORCE = table(
    "the force on a body by what it touches, or by a joint",
    {
        "first": text("name of the body", None),
        "second": text("name of the other body, or of a plane; left out, all that touch the first", None),
        "joint": text("name of a joint, in place of bodies: its force on the first of its bodies", None),
    },
    excludes("joint", ("first", "second")) + needs(("second",), "first"),
)
IMPACT = table(
    "an impact of a body",
    {
        "first": text("name of the body"),
        "second": text("name of the other body, or of a plane; left out, any", None),
        "number": whole("of the impact whose time is wanted, 1 for the first", 1, low=1, high=1000),
    },
)
STATISTIC = table(
    "one number of many bodies",
    {
        "of": formula("a number of each body, such as 'x*x + y*y'", takes=tuple(n for n in BODY_STATE if n != "time")),
        "take": word("which number of theirs", ("mean", "sum", "largest", "smallest"), "mean"),
        "on": several(text("name of a body"), "bodies, or all copies of an entry; left out, all", (), None, least=1),
        "unit": line("unit of the number", ""),
    },
)
SETTINGS = {
    "bodies": several(BODY.setting("a kind of body"), "bodies, and planes that bound them"),
    "joints": several(JOINTS.setting("a kind of joint"), "joints, and pairs of anchors for springs", (), []),
    "close_joints": flag("whether bodies are moved at the start, as little as possible, so that all joints are closed"),
    "motors": several(PartTable((MOTOR,), ON_JOINT).setting("a motor"), "motors, each in a hinge", (), []),
    "loads": several(LOAD_TABLE.setting("a load"), "springs, dampers, drag, forces and potential energies", (), []),
    "gravity": either(
        "acceleration of free fall in m/s^2, along -z, or a vector",
        formula("along -z", unit="m/s^2"),
        several(formula("a component", unit="m/s^2"), "along x, y and z", (3,)),
        default=0.0,
    ),
    "method": either(
        "method of time stepping, or a table with its name and options",
        METHOD.by_name("its name"),
        METHOD.setting("its name and options"),
    ),
    "points": named("points by name, each with diagnostics of its place and velocity, `NAME.x` and `NAME.vx`", POINT),
    "forces": named(
        "forces by name, each with diagnostics: that on the first body `NAME.fx`; of contacts the normal force "
        "`NAME.normal`, the friction `NAME.friction` and the center of pressure `NAME.x`; of a joint the size "
        "`NAME.force`",
        FORCE,
    ),
    "impacts": named("impacts by name, each with diagnostics: how many so far `NAME.impacts`, and `NAME.time`", IMPACT),
    "statistics": named("numbers of many bodies by name, each a diagnostic", STATISTIC),
    "measured": several(
        text("a name"),
        "bodies and joints with diagnostics of their own: `NAME.x`, `NAME.vx`, `NAME.wx`, `NAME.speed`, `NAME.tilt` of "
        "a body; `NAME.angle` and `NAME.rate` of a hinge, `NAME.displacement` of a slider, `NAME.length` of anchors; "
        "and of all free bodies together `center_of_mass.x` and `energy.potential`, by the names `center_of_mass` and "
        "`energy`",
        (),
        [],
    ),
    "derived": named("values derived of parameters and of those before them", formula("a value", takes=LOCAL)),
    "tables": named("tables of numbers by name, which formulas read by `interp(x, NAME)`", tabulated("a table")),
}
