"""Mixed conditions on sides as data: walls with a slip length, and sides through which heat is transferred."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.flow.description.test_mixed_sides import channel, slippery
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def test_slip_and_heat_transfer_give_poiseuille_flow_and_steady_conduction_with_their_derivatives():
    """Velocity G/nu ((H^2 - 4 y^2)/8 + slip H/2); temperature 3 - 2 Bi/(1 + Bi) (y + H/2)/H with Bi = h H/D."""
    simulation = channel()
    y = jnp.asarray(simulation.coordinates["y"])

    @jax.jit
    def steady(slip, h):
        params = jax.tree.map(jnp.asarray, simulation.params | {"slip": slip, "h": h})
        begin = simulation.init(params, jax.random.key(0))
        state = jax.lax.scan(lambda s, _: (simulation.step(s, params), None), begin, length=600)[0]
        return state.velocity[0][0], state.scalar["heat"][0]

    def exact(slip, h):
        biot = h * 2.0
        velocity = 8.0 / 2.0 * ((4 - 4 * y**2) / 8 + slip)
        return velocity, 3 - 2 * biot / (1 + biot) * (y + 1) / 2

    # Both are exact on equal cells; the slowest mode decays by exp(-2 0.55^2 60) = 2e-16, for the largest slip length.
    for values in ((0.2, 0.5), (0.0, 0.0), (3.0, 1e9)):
        for found, wanted in zip(steady(*values), exact(*values), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-9 * np.max(wanted))
    for direction in ((1.0, 0.0), (0.0, 1.0)):
        found, wanted = (jax.jvp(f, (0.2, 0.5), direction)[1] for f in (steady, exact))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


@every(["runge_kutta", "adams_bashforth"])
def test_friction_on_walls_with_slip_is_implicit_by_default_and_of_second_order(method):
    errors = []
    for cells in (16, 32):
        # The thinnest cells allow explicit steps of 1e-3 and 7e-5.
        simulation = slippery(cells, method=method)
        simulation.check(simulation.params, jax.random.key(0))

        @jax.jit
        def end(params, simulation=simulation):
            begin = simulation.init(params, jax.random.key(0))
            return jax.lax.fori_loop(0, 600, lambda _, state: simulation.step(state, params), begin)

        y = simulation.coordinates["y"]
        # The slowest mode decays at a rate of 1.4: exp(-1.4 * 30) is below round-off.
        errors.append(np.max(np.abs(end(simulation.params).velocity[0][0] - (1 - y**2 + 0.6) / 2)))
    assert 3.5 < errors[0] / errors[1] < 4.5
