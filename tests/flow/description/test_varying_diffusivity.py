"""A diffusivity that is a formula of position, time and other scalars."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError

pytestmark = pytest.mark.usefixtures("x64")

WALLS = {"lower": "wall", "upper": "wall"}


def axes(cells):
    return flow.bounded_axis(cells, 1.0, 0.0, 1.0), flow.periodic_axis(4, 4.0)


def steady(cells):
    """Largest error of the steady solution cos(pi x) of ``0 = d/dx(D dc/dx) + source`` with D = 1/2 + x^2/2 + x/10."""
    grid = flow.Grid(axes(cells))
    x = jnp.asarray(grid.axes[0].centers)[:, None]
    source = (x + 0.1) * -jnp.pi * jnp.sin(jnp.pi * x) - (0.5 + x**2 / 2 + x / 10) * jnp.pi**2 * jnp.cos(jnp.pi * x)
    scalar = flow.TransportedScalar(
        flow.domain(grid.axes, (("wall", "wall"), None)),
        (("insulated", "value"), None),
        lambda scalar, params, time: jnp.broadcast_to(0.5 + x**2 / 2 + x / 10, grid.cells),
        values=lambda params, time: ((0.0, -1.0), None),
    )
    at_rest = tuple(jnp.zeros(grid.shape(i)) for i in range(2))

    def rate(c):
        # Friction is implicit along x, and the diffusion that varies stays explicit.
        c = jnp.broadcast_to(c[:, None], grid.cells)
        return scalar.rate(c, at_rest, {}, jnp.zeros(()), (1,))[:, 0] - source[:, 0]

    nothing = jnp.zeros(cells)
    given, slopes = jax.jit(lambda: (rate(nothing), jax.jacfwd(rate)(nothing)))()
    return np.abs(np.linalg.solve(slopes, -given) - np.cos(np.pi * x[:, 0])).max()


def test_varying_diffusivity_is_of_second_order():
    coarse, fine = steady(32), steady(64)
    assert coarse < 1e-3
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.1)


@functools.cache
def layer():
    """The same diffusivity as a formula, beside a scalar that stays as it is, and ``a -> rate at the start``."""
    layer = flow.system(
        axes={"x": {"cells": 16, "length": 1, **WALLS}, "y": {"cells": 4, "length": 4, "periodic": True}},
        viscosity=0.0,
        method="adams_bashforth",
        scalars={
            "place": {"diffusivity": 0, "initial": "x"},
            "c": {"diffusivity": "a + x**2/2 + place/10 + time", "initial": "cos(pi*x)", "sides": {"x": {"upper": -1}}},
        },
        parameters={"a": 0.5, "time_step": 5e-4},
    )
    return layer, lambda a: layer.init({**layer.params, "a": a}, jax.random.key(0)).explicit[-1]["c"]


def test_derivative_by_a_parameter_of_the_diffusivity_is_that_of_central_differences():
    size = jax.jit(jax.value_and_grad(lambda a: jnp.sum(layer()[1](a) ** 2)))
    differences = (size(0.5 + 1e-4)[0] - size(0.5 - 1e-4)[0]) / 2e-4
    # Quadratic in the parameter: round-off over the step.
    assert float(size(0.5)[1]) == pytest.approx(float(differences), rel=1e-9)


def test_the_largest_diffusivity_limits_the_time_step():
    simulation = layer()[0]
    limit = 1 / (4 * 16**2 + 4) / (0.5 + (31 / 32) ** 2 / 2 + 31 / 320)
    simulation.check({**simulation.params, "time_step": 0.999 * limit}, jax.random.key(0))
    with pytest.raises(UserError, match="stability limit of explicit diffusion of the scalar"):
        simulation.check({**simulation.params, "time_step": 1.001 * limit}, jax.random.key(0))
