"""Pressure sides on every kind of grid: energy, volume and the pressure equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.accelerations import explicit_terms
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.open_sides import control_lengths, moving
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import WALLS, uneven_axis

pytestmark = pytest.mark.usefixtures("x64")

OPEN = ("pressure", "pressure")


def params_of(**values):
    return {name: jnp.asarray(value) for name, value in values.items()}


def solenoidal(place, seed):
    """White noise without divergence, through the open sides too."""
    grid, components = place.grid, []
    for i, key in enumerate(jax.random.split(jax.random.key(seed), grid.dimension)):
        f = jax.random.normal(key, grid.shape(i))
        for side in (0, 1):
            if place.sides[i] is not None and not place.is_open(i)[side]:
                f = f.at[(slice(None),) * i + (-side,)].set(0)
        components.append(f)
    open_sides = place.open_sides()
    pressure = pressure_solver(grid, open_sides=open_sides)(divergence(tuple(components), grid))
    return jax.tree.map(jnp.subtract, tuple(components), gradient(pressure, grid, open_sides))


PLACES = {
    "duct": domain((uneven_axis(7), bounded_axis(6, 1.0, 0.0, 1.0)), (OPEN, WALLS)),
    "corner": domain((uneven_axis(7), uneven_axis(6)), (("wall", "pressure"), ("pressure", "free_slip"))),
    "all open": domain((uneven_axis(5), bounded_axis(6, 1.0)), (OPEN, OPEN)),
    "layer": domain((periodic_axis(6, 1.0), uneven_axis(7)), (None, ("wall", "pressure"))),
    "3-D": domain((uneven_axis(5), bounded_axis(4, 1.0), periodic_axis(4, 1.0)), (OPEN, ("wall", "pressure"), None)),
}
on_every_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


@on_every_place
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


@on_every_place
@pytest.mark.parametrize("method", ["modes", "elimination"])
def test_pressure_between_open_sides_solves_its_equation(place, method):
    grid, open_sides = place.grid, place.open_sides()
    solve = pressure_solver(grid, method, open_sides)

    @jax.jit
    def solved():
        source, other = jax.random.normal(jax.random.key(1), (2, *grid.cells))
        found = solve(source)
        pulled = jax.grad(lambda b: jnp.sum(other * solve(b)))(source)
        return divergence(gradient(found, grid, open_sides), grid) - source, pulled * source, other * found

    residual, *products = solved()
    # Rounding of slopes of numbers of about 1 between cells above 0.05, and of their differences.
    assert jnp.max(jnp.abs(residual)) < 1e-11
    # Reverse mode is made of the solver itself.
    assert jnp.sum(products[0]) == pytest.approx(float(jnp.sum(products[1])), rel=1e-11)


def test_equal_pressure_on_all_sides_does_not_change_the_flow():
    """A pressure that is equal on all open sides drives no flow, and is added to that inside."""
    place = PLACES["corner"]
    states = []
    for shared in (0.0, 3.0):
        model = Equations(
            place,
            "viscosity",
            fixed_time_step,
            side_pressure=lambda params, time, shared=shared: ((0.0, shared), (shared, 0.0)),
            method="adams_bashforth",
            implicit=(0, 1),
        )
        start, step = stepper(model)

        def run(start=start, step=step):
            params = params_of(viscosity=0.5, time_step=0.004)
            begin = start(jax.tree.map(lambda f: 0.1 * f, solenoidal(place, 2)), params)
            return jax.lax.fori_loop(0, 4, lambda _, s: step(s, params), begin)

        states.append(jax.jit(run)())
    for a, b in zip(states[0].velocity, states[1].velocity, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    np.testing.assert_allclose(states[1].pressure, states[0].pressure + 3, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@on_every_place
def test_flow_through_open_sides_has_no_divergence_and_outflow_equals_inflow(place, dtype):
    dtype = jnp.dtype(dtype)
    start, step = stepper(Equations(place, "viscosity", fixed_time_step, method="adams_bashforth", implicit=(1,)))
    params = {name: value.astype(dtype) for name, value in params_of(viscosity=0.05, time_step=0.002).items()}

    @jax.jit
    def after():
        begin = start(jax.tree.map(lambda f: 0.2 * f.astype(dtype), solenoidal(place, 3)), params)
        state = jax.lax.fori_loop(0, 20, lambda _, s: step(s, params), begin)
        return state, jnp.max(jnp.abs(divergence(state.velocity, place.grid)))

    state, most = after()
    assert state.pressure.dtype == dtype
    width = min(a.widths.min() for a in place.grid.axes)
    # As in test_stepper.py: differences of velocities of about 1, each known to its rounding, over the smallest cells.
    assert most < 40 * jnp.finfo(dtype).eps / width
    passed = [place.place(axis, side).flux(state.velocity) for axis, side in place.open_sides()]
    assert abs(sum(passed)) < 40 * jnp.finfo(dtype).eps
    # Through a single open side as much flows out as in.
    assert len(passed) == 1 or max(abs(f) for f in passed) > 1e-3
