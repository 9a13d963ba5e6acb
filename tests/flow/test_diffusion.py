import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.diffusion import diffusion_solver
from simkit.flow.grid import uniform_grid
from simkit.flow.operators import laplacian
from tests.flow.flows import noise, on_every_grid

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("coefficient", [0.0, 1e-3, 10.0])
@on_every_grid
def test_solution_satisfies_the_discrete_equation(grid, coefficient):
    source = noise(grid, 0)
    change = diffusion_solver(grid)(source, jnp.asarray(coefficient))
    viscous = laplacian(change, (0.0, 0.0), grid)
    residual = jax.tree.map(lambda c, d, s: c - coefficient * d - s, change, viscous, source)
    # Rounding of the solution, 1e-15 for a source of size 3, is magnified by 1 + coefficient times the largest
    # eigenvalue. That is at most 3000, and then the solution is smaller by as much except for its largest scales, which
    # the factor 10/24 of the smallest eigenvalue keeps below 1.
    assert max(float(jnp.max(jnp.abs(r))) for r in residual) < 1e-10 * max(coefficient, 1e-2)
    assert jnp.all(change[1][:, -1] == 0)


def test_solution_converges_at_second_order_up_to_the_walls():
    # u = sin(pi (y + 1)/2)(2 + cos(pi x)) e^y and v = sin(pi (y + 1)) cos(pi x) vanish on both walls.
    def exact_u(x, y):
        return jnp.sin(jnp.pi * (y + 1) / 2) * (2 + jnp.cos(jnp.pi * x)) * jnp.exp(y)

    def exact_v(x, y):
        return jnp.sin(jnp.pi * (y + 1)) * jnp.cos(jnp.pi * x)

    def source(f):
        def evaluate(x, y):
            second = jax.grad(jax.grad(f))(x, y) + jax.grad(jax.grad(f, 1), 1)(x, y)
            return f(x, y) - 0.5 * second

        return jax.vmap(jax.vmap(evaluate))

    @functools.partial(jax.jit, static_argnums=0)
    def error(n):
        grid = uniform_grid((n, n), 2.0)
        at_u = jnp.meshgrid(grid.x + grid.dx / 2, grid.y, indexing="ij")
        at_v = jnp.meshgrid(grid.x, grid.faces[1:], indexing="ij")
        u, v = diffusion_solver(grid)((source(exact_u)(*at_u), source(exact_v)(*at_v)), jnp.asarray(0.5))
        return jnp.array([jnp.max(jnp.abs(u - exact_u(*at_u))), jnp.max(jnp.abs(v - exact_v(*at_v)))])

    # The next term of the error is of relative size h, one-sided at the wall: 1/16 and 1/32 here.
    assert np.log2(error(32) / error(64)) == pytest.approx([2, 2], abs=0.1)
