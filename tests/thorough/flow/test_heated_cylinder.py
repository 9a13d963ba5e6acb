"""A heated cylinder in an unbounded stream."""

import jax
import jax.numpy as jnp
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import refined_axis
from simkit.flow.obstacles import Body, ScalarSurface, ball, bodies_in, points_around
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step

REYNOLDS, PRANDTL, CELLS = 20.0, 0.7, 12


def test_nusselt_number_of_a_heated_cylinder_is_the_published_one():
    """Bharti, Chhabra and Eswaran, Heat Mass Transfer 43, 639 (2007), doi:10.1007/s00231-006-0155-1: 2.4653."""
    axes = (
        refined_axis(1 / CELLS, (-1.0, 1.0), 45.0, 0.06, -15.0),
        refined_axis(1 / CELLS, (-1.0, 1.0), 50.0, 0.06, -25.0),
    )
    place = domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
    still, diffusivity = (0.0, 0.0), 1 / (REYNOLDS * PRANDTL)
    warm = Body(
        lambda p: ball((0.0, 0.0), 0.5),
        lambda p: (0.0, 0.0),
        points=points_around(3.1416, 1 / CELLS),
        scalar=ScalarSurface(value=lambda p, t: 1.0),
    )
    held = bodies_in(place, "immersed_boundary", {"cylinder": warm}, 1 / REYNOLDS)
    scalar = TransportedScalar(place, (("value", "insulated"), ("insulated", "insulated")), lambda p: diffusivity)
    stream = (((1.0, 0.0), still), (still, still))
    equations = Equations(
        place, 1 / REYNOLDS, fixed_time_step, boundary=lambda p, t: stream, obstacle=held, scalar=scalar
    )
    start, step = stepper(equations)
    params = {"time_step": jnp.asarray(0.024)}

    @jax.jit
    def last():
        velocity = jnp.ones(place.grid.shape(0)), jnp.zeros(place.grid.shape(1))
        first = start(velocity, params, jnp.zeros(place.grid.cells))
        return jax.lax.scan(lambda s, _: (step(s, params), None), first, None, length=1050)[0].load

    # Measured after 25 units of time: 2.4525, after 40 units 2.4494.
    assert held.heat_of("cylinder", last()) / (jnp.pi * diffusivity) == pytest.approx(2.4653, rel=0.015)
