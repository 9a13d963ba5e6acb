"""Velocities and values on the sides, forces and flow rates that change in time: the order of the method."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import mean_velocity
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import WALLS, solenoidal_noise, uniform_channel

pytestmark = pytest.mark.usefixtures("x64")

CHANNEL = uniform_channel((8, 10), 3.0)
DUCT = domain((bounded_axis(12, 2.0), bounded_axis(8, 1.0)), (("inflow", "outflow"), WALLS))
CAVITY = domain((bounded_axis(8, 1.0), bounded_axis(8, 1.0)), (WALLS, WALLS))
REST = (0.0, 0.0)


def oscillation(time):
    """An oscillation whose rate at the start is not zero."""
    return jnp.sin(4 * time)


def sliding_wall(params, time):
    return None, (REST, (oscillation(time), 0.0))


def sliding_lids(params, time):
    return ((0.0, oscillation(time)), REST), (REST, (1 + oscillation(2 * time), 0.0))


def pulsating_inflow(params, time):
    heights = jnp.asarray(DUCT.grid.axes[1].centers)[None, :]
    return ((6 * heights * (1 - heights) * (1 + 0.5 * oscillation(time)), 0.3 * oscillation(time)), REST), (REST, REST)


def warming_sides(params, time):
    return None, (oscillation(time), 1 + oscillation(2 * time))


def pulling(velocity, scalar, params, time):
    return oscillation(2 * time), 0.0


DATA = {
    "sliding wall, force, value and flux": (
        CHANNEL,
        {
            "boundary": sliding_wall,
            "force": pulling,
            "scalar": TransportedScalar(
                CHANNEL, (None, ("value", "flux")), lambda params: params["viscosity"], warming_sides
            ),
        },
    ),
    "sliding lids": (CAVITY, {"boundary": sliding_lids}),
    "inflow": (DUCT, {"boundary": pulsating_inflow}),
    "flow rate": (CHANNEL, {"flow_rate": lambda params, time: oscillation(time)}),
}


@functools.cache
def orders(name, method, implicit):
    """The orders in time of velocity and scalar, from runs with 40, 80 and 160 steps."""
    place, options = DATA[name]
    start, step = stepper(
        Equations(
            place,
            lambda params: params["viscosity"],
            fixed_time_step,
            method=method,
            implicit=(0, 1) if implicit else (),
            **options,
        )
    )
    velocity = jax.tree.map(lambda f: 0.1 * f, solenoidal_noise(place.grid, 0))
    if name == "inflow":
        heights = jnp.asarray(place.grid.axes[1].centers)
        velocity = (jnp.broadcast_to(6 * heights * (1 - heights), place.grid.shape(0)), 0 * velocity[1])
    if name == "flow rate":
        velocity = (velocity[0] - mean_velocity(velocity, 0, place.grid), velocity[1])
    carried = jnp.zeros(place.grid.cells) if "scalar" in options else ()

    @jax.jit
    def run(steps):
        params = {"viscosity": jnp.asarray(0.05), "time_step": 0.5 / steps}
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(velocity, params, carried))

    runs = [run(steps) for steps in (40, 80, 160)]
    found = {}
    for field in ("velocity", "scalar"):
        leaves = [jax.tree.leaves(getattr(state, field)) for state in runs]
        changes = [
            max((float(jnp.max(jnp.abs(x - y))) for x, y in zip(a, b, strict=True)), default=None)
            for a, b in itertools.pairwise(leaves)
        ]
        if changes[0] is not None:
            found[field] = np.log2(changes[0] / changes[1])
    return found


def cases():
    for name, method, implicit in itertools.product(DATA, ("runge_kutta", "adams_bashforth"), (True, False)):
        label = f"{name}, {method}, {'implicit' if implicit else 'explicit'}"
        yield pytest.param(name, method, implicit, id=label)


@pytest.mark.parametrize(("name", "method", "implicit"), [*cases()])
def test_order_in_time_is_that_of_the_method(name, method, implicit):
    expected = 3 if method == "runge_kutta" and not implicit else 2
    found = orders(name, method, implicit)
    assert found
    for field, order in found.items():
        # The next term of the error is smaller by the rate 8 of the fastest change times the step 0.5/80, 0.05, which
        # shifts the order by less than 2 log2(1.05).
        assert order == pytest.approx(expected, abs=0.14), field
