"""Pressure sides: exact flows between them, order, conservation, derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import SCHEMES, WALLS
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

OPEN = ("pressure", "pressure")

on_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def duct(cells=(8, 10), sides=(OPEN, WALLS)):
    return domain((bounded_axis(cells[0], 3.0), bounded_axis(cells[1], 1.0)), sides)


def driven(params, time):
    """The pressure of a duct whose left side is at ``drop (1 + swing sin(9 time))``, its right one at zero."""
    return (params["drop"] * (1 + params["swing"] * jnp.sin(9 * time)), 0.0), (0.0, 0.0)


PARAMS = {"viscosity": 0.5, "drop": 2.0, "swing": 0.0, "time_step": 0.004}


def params_of(**others):
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
            "side_pressure gives 1 entries; give one pair of sides for each of the 2 axes",
        ),
    ]
)
def test_invalid_pressures_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()
