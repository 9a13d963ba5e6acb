"""Pressure sides on every kind of grid: energy, volume and the pressure equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations, explicit_terms
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.advection import control_lengths, moving
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import WALLS, some, uneven_axis
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

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


@every(some(PLACES, "duct", "corner"))
def test_advection_changes_the_energy_only_by_the_flux_through_open_sides(place):
    model, params = Equations(place, "viscosity", fixed_time_step), params_of(viscosity=0.0)

    @jax.jit
    def balance():
        velocity = solenoidal(place, 0)
        terms = explicit_terms(velocity, (), model, params, jnp.zeros(()))
        gained = sum(
            jnp.sum(moving(f, i, place) * moving(a, i, place) * volumes(i, place))
            for i, (f, a) in enumerate(zip(velocity, terms, strict=True))
        )
        return gained, sum(energy_through(velocity, place, axis, side) for axis, side in place.open_sides())

    gained, passed = balance()
    # Rounding of sums of a hundred numbers of about 1.
    assert gained == pytest.approx(-float(passed), abs=1e-12)
    assert abs(passed) > 0.01


def volumes(component, place):
    """The control volumes of a component of the velocity on the faces that the equations move."""
    found = 1.0
    for k, axis in enumerate(place.grid.axes):
        lengths = control_lengths(k, place) if k == component else axis.widths
        found = found * place.grid.along(np.asarray(lengths), k)
    return found


def energy_through(velocity, place, axis, side):
    """The kinetic energy that leaves through a side: along it the velocity is that of the nearest points."""
    where = place.place(axis, side)
    normal = where.nearest(velocity[axis])
    squares = normal**2
    for k, f in enumerate(velocity):
        if k != axis:
            ends = where.nearest(f) ** 2
            if place.grid.axes[k].periodic:
                ends = jnp.concatenate([jax.lax.slice_in_dim(ends, ends.shape[k] - 1, None, axis=k), ends], k)
            count = ends.shape[k]
            lower, upper = (jax.lax.slice_in_dim(ends, s, count - 1 + s, axis=k) for s in (0, 1))
            squares = squares + (lower + upper) / 2
    return where.flux([normal * squares / 2 if k == axis else f for k, f in enumerate(velocity)])
