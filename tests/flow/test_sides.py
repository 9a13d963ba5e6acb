"""Sides of domains: velocities, open sides, pressures, and sides of one's own."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.sides import NavierSlip, Outflow, Side
from simkit.flow.diagnosis.statistics import ChannelStatistics
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.diffusion import shear
from simkit.flow.scalar import TransportedScalar
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import adaptive_time_step, check_time_step, fixed_time_step
from tests.flow.flows import SCHEMES, WALLS, noise, uneven_axis
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


DUCTS = {
    "rightward": domain((bounded_axis(24, 4.0), bounded_axis(10, 2.0, -1.0)), (("inflow", "outflow"), WALLS)),
    "leftward": domain((bounded_axis(24, 4.0), bounded_axis(10, 2.0, -1.0)), (("outflow", "inflow"), WALLS)),
    "uneven": domain((uneven_axis(24, 0, 4), uneven_axis(11)), (("inflow", "outflow"), WALLS)),
    "upward, 3-D": domain(
        (bounded_axis(6, 2.0, -1.0), bounded_axis(12, 3.0), periodic_axis(4, 1.0)), (WALLS, ("inflow", "outflow"), None)
    ),
}


def profile(place, amplitude=1.0):
    """The Poiseuille profile at the entrance of a duct, and the boundary velocity with it."""
    along = next(i for i in place.bounded() if "inflow" in place.kinds[i])
    side = place.kinds[along].index("inflow")
    across = 1 - along
    shape = [1] * place.grid.dimension
    shape[across] = -1
    entering = amplitude * (1 - place.grid.axes[across].centers ** 2).reshape(shape) * (-1 if side else 1)
    rest = (0.0,) * place.grid.dimension
    moving = tuple(jnp.asarray(entering) if i == along else 0.0 for i in range(place.grid.dimension))
    boundary = []
    for i, sides in enumerate(place.sides):
        pair = [moving if i == along and s == side else rest for s in (0, 1)]
        boundary.append(None if sides is None else tuple(pair))
    return entering, tuple(boundary), along, side


def test_adaptive_step_holds_the_courant_number_and_is_finite_at_rest():
    place = DUCTS["rightward"]

    def entering(params, time):
        return ((params["inflow"], 0.0), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.0))

    def length(velocity, params, **more):
        model = Equations(place, "viscosity", adaptive_time_step(), entering, **more)
        return model.step_length(velocity, (), params, jnp.zeros((), velocity[0].dtype))

    params = {"viscosity": 1e-3, "courant_number": 0.8, "time_step": 0.5, "inflow": 0.0}
    velocity = noise(place.grid, 0)
    u, v = velocity
    crossing = np.abs(u[1:] + u[:-1]) / 2 * 24 / 4 + np.abs(v[:, 1:] + v[:, :-1]) / 2 * 10 / 2
    assert length(velocity, params) == pytest.approx(0.8 / crossing.max(), rel=1e-12)
    rest = jax.tree.map(jnp.zeros_like, velocity)
    assert length(rest, params) == 0.5
    # The inflow enters the first cells before the flow inside moves.
    assert length(rest, params | {"inflow": 3.0}) == pytest.approx(0.8 / (3 * 24 / 4), rel=1e-12)
    # Half of 2.51 over the rate 4 nu (6^2 + 5^2) of the shortest waves.
    assert length(rest, params | {"viscosity": 1.0}) == pytest.approx(2.51 / 2 / (4 * 61), rel=1e-12)
    assert length(rest, params | {"viscosity": 1.0}, implicit=(0,)) == pytest.approx(2.51 / 2 / 100, rel=1e-12)
    ends = ("value", "insulated"), ("insulated", "insulated")
    dye = TransportedScalar(place, ends, lambda params: 1000 * params["viscosity"])
    assert length(rest, params, scalar=dye) == pytest.approx(2.51 / 2 / (4 * 61), rel=1e-12)


def test_time_step_above_the_limit_is_refused_with_the_limit():
    place = DUCTS["rightward"]
    check_time_step(0.01, 1.0, 1e-3, place, "runge_kutta", (0, 1))
    with pytest.raises(UserError, match=r"time_step = 0.5 is above the stability limit of advection .* 0.288;"):
        check_time_step(0.5, 1.0, 1e-3, place, "runge_kutta", (0, 1))
    with pytest.raises(UserError, match=r"explicit friction on this grid, 0.0103;.* implicit_viscosity = 1, its "):
        check_time_step(0.02, 1.0, 1.0, place, "runge_kutta", (0, 1))
    with pytest.raises(UserError, match=r"limit of explicit diffusion of the scalar on this grid, 0.0103;"):
        check_time_step(0.02, 1.0, 0.1, place, "runge_kutta", (0, 1), [(1.0, (0, 1))])
    # Implicit along both axes, neither has a limit.
    check_time_step(0.02, 1.0, 1.0, place, "runge_kutta", (), [(1.0, ())])


@every(
    [
        ((None, ("inflow", "wall")), "lower side of axis y, of kind 'inflow', lets the flow in, and nothing"),
        ((None, ("wall", "outflow")), "upper side of axis y, of kind 'outflow', lets the flow out, and noth"),
        ((None, ("wall", "wal")), "side 'wal' of axis y is unknown"),
        ((WALLS, WALLS), "for a periodic and a bounded axis; give two or three axes, None for each periodic and a"),
        ((None,), r"sides = \(None,\) for a periodic and a bounded axis"),
        ((None, ("navier_slip", "wall")), r"side 'navier_slip' of axis y holds data; .* give NavierSlip\(\.\.\.\)"),
    ]
)
def test_bad_sides_are_refused_in_one_line(sides, message):
    with pytest.raises(UserError, match=message) as error:
        domain((periodic_axis(8, 1.0), bounded_axis(8, 1.0)), sides)
    assert "\n" not in str(error.value)


def sides_of(*pairs, boundary):
    axes = [periodic_axis(6, 1.0) if pair is None else bounded_axis(6, 1.0) for pair in pairs]
    place = domain(tuple(axes), pairs)
    model = Equations(place, lambda params: 0.1, fixed_time_step, boundary=lambda params, time: boundary(params))
    start, _ = stepper(model)
    still = tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))
    return jax.eval_shape(start, still, {"time_step": jnp.asarray(0.01), "speed": jnp.asarray(0.3)})


REST = (0.0, 0.0)


@every(
    [
        ((None, WALLS), lambda p: (None, ((0.0, 0.5), REST)), "lower side of axis y, which is of kind"),
        ((None, WALLS), lambda p: (None, (REST, (0.0, p["speed"]))), "upper side of axis y.*0, or"),
        ((None, ("free_slip", "wall")), lambda p: (None, ((p["speed"], 0.0), REST)), "'free_slip', a velocity along x"),
        ((("inflow", "outflow"), None), lambda p: (((1.0, 0.0), (1.0, 0.0)), None), "'outflow', a velocity along x"),
        (
            (None, WALLS),
            lambda p: (REST, (REST, REST)),
            r"boundary gives 2 entries, with \[2, 2\] of their own; .* \[0, 2\]",
        ),
        (
            (None, WALLS),
            lambda p: (None, (REST,)),
            r"with \[0, 1\] of their own; .* a pair for the lower and the upper",
        ),
        ((None, WALLS), lambda p: (None, (REST, (0.0,))), "upper side of axis y.* 1 entries and not 2 components"),
        ((None, WALLS), lambda p: ((REST, REST),), "1 entries, .* give one for each axis"),
    ]
)
def test_a_velocity_that_a_side_does_not_use_is_refused(pairs, boundary, message):
    with pytest.raises(UserError, match=message):
        sides_of(*pairs, boundary=boundary)


OPEN = ("pressure", "pressure")


def params_of(**values):
    return {name: jnp.asarray(value) for name, value in values.items()}


def solenoidal(place, seed):
    """White noise without divergence, through the open sides too."""
    grid, random = place.grid, np.random.default_rng(seed)
    components = [random.standard_normal(grid.shape(i)) for i in range(grid.dimension)]
    for i, f in enumerate(components):
        for side in (0, 1):
            if place.sides[i] is not None and not place.is_open(i)[side]:
                np.moveaxis(f, i, 0)[-side] = 0
    velocity, open_sides = tuple(map(jnp.asarray, components)), place.open_sides()
    pressure = pressure_solver(grid, open_sides=open_sides)(divergence(velocity, grid))
    return jax.tree.map(jnp.subtract, velocity, gradient(pressure, grid, open_sides))


PLACES = {
    "duct": domain((uneven_axis(7), bounded_axis(6, 1.0, 0.0, 1.0)), (OPEN, WALLS)),
    "corner": domain((uneven_axis(7), uneven_axis(6)), (("wall", "pressure"), ("pressure", "free_slip"))),
    "all open": domain((uneven_axis(5), bounded_axis(6, 1.0)), (OPEN, OPEN)),
    "layer": domain((periodic_axis(6, 1.0), uneven_axis(7)), (None, ("wall", "pressure"))),
    "3-D": domain((uneven_axis(5), bounded_axis(4, 1.0), periodic_axis(4, 1.0)), (OPEN, ("wall", "pressure"), None)),
}
on_every_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def duct(cells=(8, 10), sides=(OPEN, WALLS)):
    return domain((bounded_axis(cells[0], 3.0), bounded_axis(cells[1], 1.0)), sides)


def driven(params, time):
    """The pressure of a duct whose left side is at ``drop (1 + swing sin(9 time))``, its right one at zero."""
    return (params["drop"] * (1 + params["swing"] * jnp.sin(9 * time)), 0.0), (0.0, 0.0)


PARAMS = {"viscosity": 0.5, "drop": 2.0, "swing": 0.0, "time_step": 0.004}


def params_of_pressures(**others):
    return {name: jnp.asarray(value) for name, value in (PARAMS | others).items()}


def equations(place, scheme, **options):
    given = {"side_pressure": driven} | SCHEMES[scheme] | options
    return Equations(place, lambda params: params["viscosity"], fixed_time_step, **given)


@functools.cache
def runner(place, scheme, side_pressure=driven, force=None):
    """``run(velocity, params, steps) -> state``, compiled once for any number of steps."""
    start, step = stepper(equations(place, scheme, side_pressure=side_pressure, force=force))

    @jax.jit
    def run(velocity, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(velocity, params))

    return run


def still(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


def eddies(place, size=0.3):
    """A smooth velocity without divergence, of a stream function that is zero and flat on walls above and below."""
    x, y = (axis.faces for axis in place.grid.axes)
    stream = size * np.outer(np.cos(2 * x + 0.3), (y * (1 - y)) ** 2 * 16)
    u = np.diff(stream, axis=1) / place.grid.axes[1].widths
    v = -np.diff(stream, axis=0) / place.grid.axes[0].widths[:, None]
    return jnp.asarray(u), jnp.asarray(v)


DUCT = duct()


@every(
    [
        (lambda: duct(sides=(("inflow", "pressure"), ("outflow", "wall"))), "the lower side of axis y"),
        (
            lambda: Equations(duct(sides=(WALLS, WALLS)), 1.0, fixed_time_step, side_pressure=driven),
            "side_pressure is given, and no side is of kind 'pressure'",
        ),
        (
            lambda: equations(
                DUCT, "runge_kutta", side_pressure=lambda p, t: ((1.0, 0.0), (1.0, 0.0))
            ).pressure_on_sides({}, jnp.zeros(())),
            "side_pressure is given on the lower side of axis y, which is of kind 'wall'; give the number 0",
        ),
        (
            lambda: equations(DUCT, "runge_kutta", side_pressure=lambda p, t: ((1.0, 0.0),)).pressure_on_sides(
                {}, jnp.zeros(())
            ),
            "side_pressure gives 1 entries, with .2. of their own; give one for each axis",
        ),
    ]
)
def test_invalid_pressures_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


@dataclasses.dataclass(frozen=True)
class Wind(Side):
    """A surface at which the gradient of the first component, stress over viscosity, is given."""

    kind = "wind"

    def values(self, params, time):
        return params["stress"] / params["viscosity"]

    def slope(self, f, component, given, place, values):
        return place.layer(f, values * place.outward) if component == 0 else None


@dataclasses.dataclass(frozen=True)
class PorousWall(Outflow):
    """A wall at rest with suction through it."""

    kind = "porous"
    takes_along = True
    sticks = True

    def share(self, component, place, values):
        return 1.0


@dataclasses.dataclass(frozen=True)
class PressureOutlet(Outflow):
    kind = "pressure_outlet"
    gives_pressure = True


@dataclasses.dataclass(frozen=True)
class Unfinished(Side):
    kind = "unfinished"

    def share(self, component, place, values):
        return None


SLIP = NavierSlip(lambda params, time: params["slip_length"])

OWN_PARAMS = {"viscosity": 1.0, "force": 0.6, "upper": 0.5, "slip_length": 0.3, "time_step": 0.01}


def params_of_own_sides(**others):
    return {name: jnp.asarray(value) for name, value in (OWN_PARAMS | others).items()}


def equations_of_own_sides(place, scheme, boundary=None, **options):
    return Equations(
        place,
        lambda params: params["viscosity"],
        fixed_time_step,
        boundary=boundary or (lambda params, time: (None, ((0.0, 0.0), (params["upper"], 0.0)))),
        force=lambda velocity, scalar, params, time: (params["force"], 0.0),
        **SCHEMES[scheme] | options,
    )


def test_own_sides_are_drawn_as_declared():
    place = domain((bounded_axis(4, 1.0), bounded_axis(4, 1.0)), ((Wind(), SLIP), ("wall", PorousWall())[:1] * 2))
    assert [str(word) for word in place.drawn_sides()] == ["free_slip", "wall", "wall", "wall"]


def test_unsupported_sides_are_refused_by_name():
    axes = periodic_axis(4, 1.0), bounded_axis(6, 2.0, -1.0)
    with pytest.raises(UserError, match="axis y, of kind 'pressure_outlet', gives both the pressure and the velocity"):
        domain(axes, (None, ("wall", PressureOutlet())))
    place = domain(axes, (None, (SLIP, SLIP)))
    with pytest.raises(UserError, match="side 'unfinished' has the share None and no slope of its own; define either"):
        unfinished = domain(axes, (None, (Unfinished(), "wall")))
        shear(jnp.zeros(unfinished.grid.cells), 0, 1, no_motion(unfinished), unfinished)
    with pytest.raises(UserError, match="side 'navier_slip' of axis y has values of its own, which are missing here"):
        shear(jnp.zeros(place.grid.cells), 0, 1, no_motion(place), place)
    with pytest.raises(UserError, match=r"sides \(None, \('navier_slip', 'navier_slip'\)\) are not those of a channel"):
        ChannelStatistics(place, lambda params: 1.0)
    with pytest.raises(UserError, match="lower side of axis y, which is of kind 'navier_slip', a velocity along y"):
        model = equations_of_own_sides(place, "runge_kutta", lambda params, time: (None, ((0.0, 1.0), (0.0, 0.0))))
        model.on_sides(params_of_own_sides(), jnp.zeros(()))
    box = domain((bounded_axis(4, 1.0),) * 2, ((SLIP, SLIP), (SLIP, "wall")))
    start, step = stepper(equations_of_own_sides(box, "adams_bashforth, implicit", lambda params, time: no_motion(box)))
    state = jax.eval_shape(start, still(box), params_of_own_sides())
    # One component after the other: each has only the sides along which it flows.
    assert jax.eval_shape(step, state, params_of_own_sides())
    cube = domain((bounded_axis(4, 1.0),) * 3, ((SLIP, SLIP),) * 3)
    _, step = stepper(
        Equations(cube, lambda p: p["viscosity"], fixed_time_step, method="adams_bashforth", implicit=(0, 1, 2))
    )
    with pytest.raises(UserError, match=r"sides of the axes y and z depend on parameters.* support one such axis"):
        jax.eval_shape(
            step,
            jax.eval_shape(stepper(equations_of(cube))[0], still(cube), params_of_own_sides()),
            params_of_own_sides(),
        )


def equations_of(place):
    return Equations(place, lambda params: params["viscosity"], fixed_time_step, method="adams_bashforth")
