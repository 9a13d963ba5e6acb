"""A mistake in the data of a flow gives one line with the key, the column and the remedy."""

import copy

import jax
import pytest

from simkit import flow
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from tests.tables import every, lacking, refusal

pytestmark = pytest.mark.usefixtures("x64")


AROUND = {"cells": 8, "length": 1.0, "periodic": True}
WALLS = {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"}
GOOD = {
    "axes": {"x": AROUND, "y": WALLS},
    "viscosity": "nu",
    "scalars": {"dye": {"diffusivity": 0.1, "sides": {"y": {"lower": 1}}}},
    "parameters": {"nu": 0.1},
}


def changed(path, value):
    settings = copy.deepcopy(GOOD)
    *steps, last = path.split(".")
    table = settings
    for step in steps:
        table = table.setdefault(step, {})
    if value is None:
        del table[last]
    else:
        table[last] = value
    return settings


MISTAKES = {
    "a wall by its name elsewhere": ("axes.y.lower", "no_slip", "axes.y.lower = 'no_slip' is unknown; write 'wall'"),
    "a table of it": ("axes.y.lower", {"kind": "no_slip"}, "axes.y.lower.kind = 'no_slip' is unknown; write 'wall'"),
    "an insulated side by its name elsewhere": ("scalars.dye.sides.y.lower", "adiabatic", "unknown; write 'insulated'"),
    "the center of an obstacle": (
        "obstacles.rod",
        {"shape": "circle", "radius": 0.2, "center": [0, 0]},
        "obstacles.rod.center is no key of shape = 'circle'; write position",
    ),
    "widths of a box": (
        "obstacles.rod",
        {"shape": "box", "half_widths": [0.2, 0.2], "position": [0, 0]},
        "obstacles.rod.half_widths is no key of shape = 'box'; write half_lengths",
    ),
    "one length of a box": (
        "obstacles.rod",
        {"shape": "box", "half_length": 0.2, "position": [0, 0]},
        "obstacles.rod.half_length is no key of shape = 'box'; write half_lengths",
    ),
    "a box in space": (
        "obstacles.rod",
        {"shape": "box", "half_lengths": [0.2, 0.2, 0.2], "position": [0, 0]},
        "obstacles.rod.half_lengths has 3 entries; write 2",
    ),
    "a spin of a box": (
        "obstacles.rod",
        {"shape": "box", "half_lengths": [0.2, 0.2], "position": [0, 0], "spin": 1},
        "obstacles.rod.spin has no effect on shape = 'box', which is not round: its angle turns it",
    ),
    "a distance beside a shape": (
        "obstacles.rod",
        {"shape": "circle", "radius": 1, "distance": "x", "position": [0, 0]},
        "obstacles.rod.distance has no effect on shape = 'circle'; leave it out",
    ),
    "no shape": ("obstacles.rod", {"position": [0, 0]}, "obstacles.rod chooses no shape; give one of shape, distance"),
    "an unknown scalar of an obstacle": (
        "obstacles.rod",
        {"shape": "circle", "radius": 1, "position": [0, 0], "scalars": {"dyee": 1}},
        "obstacles.rod.scalars.dyee is not a known key; did you mean 'dye'?",
    ),
    "a time where there is none": (
        "scalars.dye.initial",
        "time",
        "in other formulas; known names: nu, time_step, x, y",
    ),
    "a velocity along z": ("axes.y.upper", {"kind": "wall", "w": 1}, "axes.y.upper.w has no effect on kind = 'wall'"),
    "an abbreviated time": ("flow_rate", "sin(t)", "flow_rate: column 5 of 'sin(>>>t)': 't' is not known here"),
    "an entry of a coordinate": ("force.x", "nu*y[0]", "force.x: column 4 of 'nu*>>>y[0]'"),
    "an entry of a velocity": ("force.y", "u[2, 3]", "force.y: column 1 of '>>>u[2, 3]': 'u[2, 3]' takes an entry of"),
    "a way to hold obstacles that are not there": ("obstacle_method", "direct_forcing", "obstacle_method has no"),
    "an unknown key": ("axes.y.strething", 1, "axes.y.strething is not a known key; did you mean 'stretching'?"),
    "an unknown side": ("axes.y.lower", "wal", "axes.y.lower = 'wal' is unknown; did you mean 'wall'?"),
    "a pressure on a wall": ("axes.y.lower", {"kind": "wall", "pressure": 1}, "axes.y.lower.pressure has no effect"),
    "a velocity on a pressure side": ("axes.y.lower", {"kind": "pressure", "v": 1}, "axes.y.lower.v has no effect on"),
    "several kinds": ("axes.y.lower", ["wall", "inflow"], "axes.y.lower[1].where is missing"),
    "a side that is missing": ("axes.y.lower", None, "axes.y.lower is missing; give one of free_slip, inflow"),
    "a periodic axis with a side": ("axes.x.lower", "wall", "axes.x.lower has no effect beside periodic; leave it out"),
    "an inflow without velocity": (
        "axes.y",
        {**WALLS, "lower": "inflow", "upper": "outflow"},
        "axes.y.lower.v is missing; give a number or an expression, or a table: velocity along y, through the side",
    ),
    "an inflow alone": ("axes.y", {**WALLS, "lower": {"kind": "inflow", "v": 1}}, "the lower side of axis y"),
    "a velocity through a wall": ("axes.y.upper", {"kind": "wall", "v": 1}, "axes.y.upper.v has no effect on kind ="),
    "a velocity along a free side": ("axes.y.upper", {"kind": "free_slip", "u": 1}, "axes.y.upper.u has no effect on"),
    "a free side drawn as a wall": ("axes.y.upper", {"kind": "free_slip", "drawn": "hot"}, "axes.y.upper.drawn has"),
    "a third component": ("force.z", 1, "force.z is along z, and the flow is plane; remove it, or give axes.z"),
    "two ends": ("axes.x.to", 2, "axes.x.length is given beside to; give one of to, length"),
    "no cells": ("axes.x.cells", None, "axes.x: give one of cells, refined, faces"),
    "faces that fall": (
        "axes.y",
        {"faces": [0, 1, 2, 1, 3], "lower": "wall", "upper": "wall"},
        "axes.y.faces: faces do not increase",
    ),
    "a stream function and components": (
        "initial",
        {"stream_function": "x", "u": "y"},
        "initial.u has no effect beside stream_function",
    ),
    "a flow rate between sides": ("axes", {"x": WALLS, "y": WALLS}, "axis x is bounded"),
    "a scalar with the name of a diagnostic": (
        "scalars.largest_velocity",
        {"diffusivity": 1},
        "scalars.largest_velocity: the name 'largest_velocity' is taken",
    ),
    "a scalar with a name of data sets": ("scalars.frame", {"diffusivity": 1}, "scalars.frame: the name 'frame' is"),
    "a scalar with the name of a component": ("scalars.u", {"diffusivity": 1}, "scalars.u: the name 'u' is taken"),
    "a side of a scalar on a periodic axis": ("scalars.dye.sides.x", {"lower": 1}, "scalars.dye.sides.x is given"),
    "a value and a flux": ("scalars.dye.sides.y.upper", {"value": 1, "flux": 1}, "scalars.dye.sides.y.upper.flux has"),
    "an obstacle without its radius": (
        "obstacles.rod",
        {"shape": "circle", "position": [0, 0]},
        "obstacles.rod.radius is missing; give a number or an expression: radius",
    ),
    "an obstacle for space": (
        "obstacles.rod",
        {"shape": "sphere", "radius": 1, "position": [0, 0]},
        "obstacles.rod.shape = 'sphere' is for 3 axes, and there are 2; choose one of airfoil, box, capsule, circle",
    ),
    "an obstacle in three numbers": (
        "obstacles.rod",
        {"shape": "circle", "radius": 1, "position": [0, 0, 0]},
        "obstacles.rod.position has 3 entries; write 2",
    ),
    "an obstacle with the name of a scalar": (
        "obstacles.dye",
        {"shape": "circle", "radius": 1, "position": [0, 0]},
        "obstacles.dye: the name 'dye' is taken",
    ),
    "an unknown field": ("observed", ["u", "vorticty"], "observed[1] = 'vorticty' is not a field of this flow"),
    "a diagnostic as a field": ("observed", ["kinetic_energy"], "observed[0] = 'kinetic_energy' is stored without"),
    "a field in space": ("observed", ["w_face"], "observed[0] = 'w_face' is of flows in space, and this one is plane;"),
    "a distance from no body": ("observed", ["body_distance"], "observed[0] = 'body_distance' is of flows with"),
    "a plane of a plane flow": ("plane", 0.5, "plane is along z, and the flow is plane; remove it"),
    "a size too many": ("largest_speed", [1, 0, 0], "largest_speed has 3 entries; write 2"),
    "several time steps": ("parameters.time_step", [0.01, 0.02], "parameter 'time_step' is a table or an array"),
    "no time step": ("parameters.time_step", [], "parameter 'time_step' is a table or an array; give one number"),
    "a parameter beyond float64": ("parameters.nu", 10**400, "parameter 'nu' is an integer beyond the range of float"),
    "a parameter that is a coordinate": ("parameters.x", 1.0, "params.x: the name 'x' is taken"),
}


@every(MISTAKES)
def test_a_mistake_names_its_key(path, value, message):
    settings = changed(path, value)
    if path == "axes":
        settings["flow_rate"] = 1
    found = refusal(UserError, flow.system, **settings)
    assert "\n" not in found
    return lacking(found, message)


def test_all_mistakes_of_the_settings_are_reported():
    settings = changed("axes.y.lower", "wal")
    settings["scalars"]["dye"]["difusivity"] = 1
    with pytest.raises(UserError) as refused:
        flow.system(**settings)
    assert len(refused.value.others) == 1


SIZES = [
    ({"shape": "circle", "radius": "size"}, "rod.radius: 'size' = -0.5 at the start is not positive; choose a value"),
    ({"shape": "box", "half_lengths": ["size", 0.5]}, "obstacles.rod.half_lengths[0]: 'size' = -0.5 at the start"),
    ({"shape": "box", "half_lengths": [0.5, 0.4], "rounding": "size"}, "rounding: 'size' = -0.5 at the start is neg"),
    ({"shape": "box", "half_lengths": [0.5, 0.4], "rounding": 0.45}, "obstacles.rod: rounding = 0.45"),
    ({"shape": "capsule", "radius": 0.4, "half_length": "size"}, "obstacles.rod.half_length: 'size' = -0.5"),
    ({"shape": "ellipse", "half_axes": [0.4, "size"]}, "obstacles.rod.half_axes[1]: 'size' = -0.5"),
    ({"shape": "airfoil", "digits": "2412", "chord": "size"}, "obstacles.rod.chord: 'size' = -0.5"),
    ({"shape": "circle", "radius": 0.5, "size": "size"}, "obstacles.rod.size: 'size' = -0.5 at the start is not"),
]


@every([("direct_forcing", *case) for case in SIZES] + [("immersed_boundary", *SIZES[0])])
def test_sizes_of_bodies_that_are_not_above_zero_are_refused(method, body, message):
    axis = {"cells": 16, "to": 3.0, "lower": "wall", "upper": "wall"}

    def made():
        simulation = flow.system(
            axes={"x": axis, "y": axis},
            viscosity=0.1,
            obstacles={"rod": {"position": [1.5, 1.5], **body}},
            obstacle_method=method,
            parameters={"time_step": 0.01, "size": -0.5},
        )
        simulation.check_values(simulation.params, jax.random.key(0))

    return lacking(refusal(UserError, made), message)


def test_an_unknown_argument_is_named():
    with pytest.raises(UserError, match="viscocity is not a known key; did you mean 'viscosity'"):
        flow.system(viscocity=0.1, **GOOD)


def test_a_list_in_a_formula_is_named():
    with pytest.raises(UserError, match=r"viscosity: .*'depths' is a list, and a formula takes single"):
        flow.system(**GOOD | {"viscosity": "nu*depths", "parameters": {"nu": 0.1, "depths": [1.0, 2.0]}})


def test_a_file_names_file_key_and_column():
    with pytest.raises(UserError) as refused:
        build(load("stokes_second_problem", {"config.axes.y.lower.u": "wall_sped*cos(omega*time)"}))
    found = str(refused.value)
    assert "stokes_second_problem.toml: [config]: axes.y.lower.u: column 1 of '>>>wall_sped" in found
    assert "did you mean 'wall_speed'?" in found


def test_the_command_exits_with_2(capsys):
    assert main(["run", "stokes_second_problem", "--set", 'config.viscosity="1/nuu"', "--no-render"]) == 2
    assert "viscosity: column 3 of '1/>>>nuu': 'nuu' is not known here; did you mean 'nu'?" in capsys.readouterr().err


AXES = {
    "x": {"cells": 8, "length": 2, "periodic": True},
    "y": {"cells": 8, "to": 1, "lower": "wall", "upper": {"kind": "wall", "u": "cos(omga*time)"}},
}


def test_unknown_names_in_all_formulas_are_reported_together():
    with pytest.raises(UserError) as caught:
        flow.system(
            axes=AXES,
            viscosity="nuu",
            initial={"u": "sin(q)"},
            scalars={"c": {"diffusivity": "kapa", "sides": {"y": {"lower": 0, "upper": 1}}}},
            parameters={"nu": 0.1, "omega": 1.0, "kappa": 0.1, "time_step": 0.01},
        )
    messages = [str(caught.value), *caught.value.others]
    for name, meant in (("omga", "omega"), ("nuu", "nu"), ("q", ""), ("kapa", "kappa")):
        assert any(f"'{name}' is not known here" in line and meant in line for line in messages), name
    assert len(messages) == 4, messages


def test_an_unknown_argument_and_other_mistakes_are_reported_together():
    text = """\
name = "wrong"
title = "Wrong"
summary = "Wrong."
simulation = "flow.domain"
[config]
viscocity = 3
viscosity = "nu*"
obstacle_method = "magic"
axes.x = { cells = 2.5, length = -4 }
[params]
nu = 0.1
time_step = 0.01
[run]
steps = 1
every = 1
[render]
view = "field"
quantity = "speed"
"""
    with pytest.raises(UserError) as caught:
        build(parse_scenario(text, "wrong.toml"))
    messages = [str(caught.value), *caught.value.others]
    assert "viscocity is not an argument of flow.domain; did you mean 'viscosity'?" in messages[0]
    for words in ("axes.x.cells = 2.5", "axes.x.length = -4", "viscosity: column 1", "obstacle_method = 'magic'"):
        assert any(words in line for line in messages), words


BODIES = {
    "at rest": {"position": [0, 0]},
    "turned and larger": {"position": [0, 0], "angle": 0.3, "size": 1.2},
    "on its way": {"position": ["-0.2 + 0.3*time", "0.1*sin(time)"]},
    "turning": {"position": [0, 0], "angle": "0.5*time"},
    "swelling": {"position": [0, 0], "size": "1 + 0.2*time"},
}

ROOM = {name: {"cells": 12, "from": -1.5, "length": 3, "lower": "wall", "upper": "wall"} for name in "xy"}
CARRIED = {
    # Not in the order of their names.
    "salt": {"diffusivity": 0.3},
    "heat": {"diffusivity": "2*nu"},
    "dye": {"diffusivity": 0.01, "initial": 1},
}
GIVEN = {"heat": "hot*exp(-time)", "salt": {"flux": "0.3*hot"}}


def carrying(body, **more):
    return flow.system(
        axes=ROOM,
        viscosity="nu",
        initial={"stream_function": "0.1*(1 - (x/1.5)**2)**2*(1 - (y/1.5)**2)**2"},
        scalars=CARRIED,
        obstacles={"body": {"shape": "ellipse", "half_axes": [0.6, 0.5], "scalars": GIVEN, **BODIES[body]}},
        parameters={"nu": 0.05, "hot": 1.0, "time_step": 0.02},
        **more,
    )


def test_an_obstacle_of_changing_size_with_scalars_is_refused():
    with pytest.raises(UserError, match="a body that changes its size in time does not support scalars"):
        carrying("swelling")


@every(
    [
        ({"haet": 1}, r"obstacles\.body\.scalars\.haet is not a known key; did you mean 'heat'\?"),
        ({"heat": {"value": 1, "flux": 1}}, r"obstacles\.body\.scalars\.heat\.flux has no effect on kind"),
        ({"heat": "x"}, r"obstacles\.body\.scalars\.heat: column 1 of '>>>x': 'x' is not known here"),
    ]
)
def test_scalar_conditions_of_obstacles_are_checked(given, message):
    body = {"shape": "circle", "radius": 0.5, "position": [0, 0], "scalars": given}
    with pytest.raises(UserError, match=message):
        flow.system(axes=ROOM, viscosity=0.1, scalars=CARRIED, obstacles={"body": body}, parameters={"nu": 0.1})


FRICTIONS_REFUSED = {
    "immersed and implicit": (
        {"obstacle_method": "immersed_boundary", "implicit": ["y"], "scalars": None},
        "an immersed boundary does not support implicit friction; choose method direct_forcing",
    ),
    "immersed and a field": (
        {"obstacle_method": "immersed_boundary", "viscosity": "0.1*(1 + shear_rate)", "scalars": None},
        "an immersed boundary does not support a viscosity that varies",
    ),
    "a field, implicit": (
        {"viscosity": "0.1 + 0.01*y", "implicit": ["y"], "obstacles": None},
        "viscosity is a field, and implicit friction needs a number; give implicit_viscosity",
    ),
    "a field, implicit, in stages": (
        {"viscosity": "0.1 + 0.01*y", "implicit": ["y"], "implicit_viscosity": 0.2, "obstacles": None},
        "method 'runge_kutta' does not support implicit friction with a viscosity field",
    ),
    "a part without a field": (
        {"implicit": ["y"], "implicit_viscosity": 0.2, "obstacles": None},
        "implicit_viscosity is given, but the viscosity is one number",
    ),
}


@every(list(FRICTIONS_REFUSED))
def test_unsupported_friction_is_refused_by_name(case):
    changes, message = FRICTIONS_REFUSED[case]
    body = {"shape": "circle", "radius": 0.5, "position": [0, 0]}
    settings = {"axes": ROOM, "viscosity": 0.1, "scalars": CARRIED, "obstacles": {"body": body}} | changes
    with pytest.raises(UserError, match=message):
        flow.system(**settings, parameters={"nu": 0.1})


def layer(lower, **more):
    given = {
        "axes": {
            "x": {"cells": 8, "length": 2, "lower": lower, "upper": more.pop("upper", "pressure")},
            "y": {"cells": 10, "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        "viscosity": 0.1,
        "parameters": {"stream": 1.0, "half": 0.35, "time_step": 0.01},
    }
    return flow.system(**given | more)


SLOT = ["wall", {"kind": "inflow", "u": "stream*(1 + 0.5*sin(time))", "where": "abs(y) < half"}]


def test_a_part_is_the_program_of_a_velocity_that_is_zero_elsewhere():
    by_hand = {"kind": "inflow", "u": "where(abs(y) < half, (stream*(1 + 0.5*sin(time))), 0)"}
    programs = []
    for lower in (SLOT, by_hand):
        made = layer(lower)
        state = jax.eval_shape(made.init, made.params, jax.random.key(0))
        programs.append(jax.jit(made.step).lower(state, made.params).as_text())
    assert programs[0] == programs[1]


MISTAKES_OF_PARTS = {
    "a rest with a condition": ([{"kind": "wall", "where": "y > 0"}, SLOT[1]], r"x\.lower\[0\]\.where has no effect"),
    "a part without one": (["wall", {"kind": "inflow", "u": 1}], r"x\.lower\[1\]\.where is missing; give a condition"),
    "a pressure": (["wall", {"kind": "pressure", "where": "y > 0"}], r"x\.lower\[1\]\.kind = 'pressure' takes a"),
    "no part": (["wall"], r"x\.lower is a list of 1; write the rest of the side and a part of it"),
    "no list": ({"kind": "wall", "where": "y > 0"}, r"x\.lower\.where has no effect on kind = 'wall', which is all"),
    "no velocity": (["wall", {"kind": "inflow", "where": "y > 0"}], r"x\.lower\[1\]\.u is missing; give a number"),
    "through a wall": (["wall", {"kind": "wall", "u": 1, "where": "y > 0"}], r"\[1\]\.u has no effect on kind ="),
    "a number": (["wall", {"kind": "inflow", "u": 1, "where": "y"}], r"\[1\]\.where: .*'y' is a number where a"),
    "an unknown name": (["wall", {"kind": "inflow", "u": 1, "where": "yy > 0"}], r"\[1\]\.where: .*'yy' is not known"),
}


@every(list(MISTAKES_OF_PARTS))
def test_incompatible_parts_are_refused_by_name(case):
    lower, message = MISTAKES_OF_PARTS[case]
    with pytest.raises(UserError, match=message):
        layer(lower)


@every(
    [
        ([{**SLOT[1], "where": "y > 5"}], r"x\.lower\[1\]\.where holds at the center of no face of the side at the"),
        ([{**SLOT[1], "where": "y < 5"}], r"x\.lower\[1\]\.where leaves nothing of the rest of the side"),
        ([SLOT[1], {**SLOT[1], "where": "y > 0.2"}], r"x\.lower\[2\]\.where holds where another part of the side does"),
    ]
)
def test_conditions_that_select_nothing_everything_or_the_same_are_refused_before_a_run(parts, message):
    made = layer(["wall", *parts])
    with pytest.raises(UserError, match=message):
        made.check_values(made.params, jax.random.key(0))


LONG = {"cells": 8, "length": 2.0, "periodic": True}
KEY = jax.random.key(0)


def begun(**settings):
    """The length of the first step, and the state at the start."""
    parameters = {"time_step": 0.1} | settings.pop("parameters", {})
    simulation = flow.system(
        axes=settings.pop("axes", {"x": LONG, "y": {"cells": 10, "to": 1, "lower": "wall", "upper": "wall"}}),
        viscosity=settings.pop("viscosity", 1e-9),
        courant_number=settings.pop("courant_number", 0.5),
        implicit=settings.pop("implicit", []),
        parameters=parameters,
        **settings,
    )
    simulation.check_values(simulation.params, KEY)
    return float(jax.jit(simulation.init)(simulation.params, KEY).time_step)


REFUSED = {
    "too large": ({"courant_number": 1.8}, r"courant_number: is 1.8 at the start; .* at most 1.73, the limit .* runge"),
    "too large for two levels": (
        {"courant_number": "courant", "method": "adams_bashforth", "parameters": {"courant": 0.6}},
        r"courant_number: is 0.6 at the start; .* at most 0.5, the limit of stability of adams_bashforth",
    ),
    "zero": ({"courant_number": 0}, "courant_number: is 0 at the start; choose a number above 0"),
    "a field": ({"courant_number": "x"}, "courant_number: column 1 of '>>>x': 'x' is not known here"),
    "a speed": ({"largest_speed": 2}, "largest_speed has no effect beside courant_number; leave it out"),
}


@every(list(REFUSED))
def test_a_mistake_is_refused_by_name(case):
    settings, message = REFUSED[case]
    with pytest.raises(UserError, match=message):
        begun(**settings)


def test_the_longest_step_must_be_given():
    with pytest.raises(UserError, match="courant_number is given, and nothing says the longest time step; give the"):
        flow.system(axes=ROOM, viscosity=0.1, courant_number=0.5)
