import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, prescribe
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import adaptive_time_step, check_time_step, fixed_time_step
from tests.flow.flows import WALLS, noise, over, uneven_axis

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


def test_outflow_equals_inflow():
    for place in DUCTS.values():
        _, boundary, along, _ = profile(place)
        velocity = jax.jit(lambda v, b=boundary, p=place: prescribe(v, b, p))(noise(place.grid, 0))
        areas = np.ones(())
        for i, axis in enumerate(place.grid.axes):
            if i != along:
                areas = areas * place.grid.along(axis.widths, i)
        ends = [np.sum(np.take(velocity[along], [s], axis=along) * areas) for s in (0, -1)]
        # Sums of at most 24 numbers below 4, rounded.
        assert abs(ends[0] - ends[1]) < 1e-14
        assert abs(ends[0]) > 0.5


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
        check_time_step(0.02, 1.0, 0.1, place, "runge_kutta", (0, 1), diffusivity=1.0)
    # Implicit along both axes, neither has a limit.
    check_time_step(0.02, 1.0, 1.0, place, "runge_kutta", (), diffusivity=1.0)


@over(
    [
        (
            (None, ("inflow", "wall")),
            "lower side of axis y, of kind 'inflow', lets the flow in, and nothing",
        ),
        (
            (None, ("wall", "outflow")),
            "upper side of axis y, of kind 'outflow', lets the flow out, and noth",
        ),
        (
            (None, ("wall", "wal")),
            "side 'wal' of axis y is unknown, did you mean 'wall'|side 'wal' of axis y is unknown",
        ),
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


@over(
    [
        (
            (None, WALLS),
            lambda p: (None, ((0.0, 0.5), REST)),
            "lower side of axis y, which is of kind 'wall',.* along y",
        ),
        (
            (None, WALLS),
            lambda p: (None, (REST, (0.0, p["speed"]))),
            "upper side of axis y.*0, or make the side an infl",
        ),
        ((None, ("free_slip", "wall")), lambda p: (None, ((p["speed"], 0.0), REST)), "'free_slip', a velocity along x"),
        ((("inflow", "outflow"), None), lambda p: (((1.0, 0.0), (1.0, 0.0)), None), "'outflow', a velocity along x"),
        (
            (None, WALLS),
            lambda p: (REST, (REST, REST)),
            r"boundary gives 2 entries, with \[2, 2\] of their own; .* a bounded one, \[0, 2\]",
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


def test_velocities_that_sides_use_are_accepted():
    assert sides_of(None, WALLS, boundary=lambda p: (None, ((p["speed"], 0.0), (1.0, 0))))
    assert sides_of(("inflow", "outflow"), None, boundary=lambda p: (((p["speed"], 0.1), REST), None))
