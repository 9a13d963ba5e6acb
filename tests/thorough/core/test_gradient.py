"""Derivatives agree in reverse mode, forward mode and by central differences."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import gradient
from simkit.core.objective import REDUCTIONS, Objective
from tests.core.toys import oscillator
from tests.tables import every


# Every reduction in both modes; its square in one of them, in turns.
@every(
    ("mode", "reduce", "square"),
    [
        (mode, reduce, (place + number) % 2 == 0)
        for place, mode in enumerate(("reverse", "forward"))
        for number, reduce in enumerate(REDUCTIONS)
    ],
)
def test_derivative_equals_central_difference(x64, mode, reduce, square):
    simulation = oscillator()
    objective = Objective(simulation, "position", 200, every=20, reduce=reduce, square=square)
    checked = gradient.check_gradient(objective, simulation.params, jax.random.key(0), ["frequency", "time_step"], mode)
    # Truncation h^2 and rounding eps / h balance near 1e-10 for a smooth function of order one.
    assert max(checked.relative_difference.values()) < 1e-7


def test_derivative_per_member_is_the_vmap_of_the_derivative(x64):
    simulation, key = oscillator(), jax.random.key(0)
    derive = gradient.with_derivative(Objective(simulation, "energy", 50), ["frequency"])
    frequencies = jnp.array([0.5, 1.0, 2.0])
    _, together = jax.vmap(lambda f: derive({**simulation.params, "frequency": f}, key))(frequencies)
    alone = [derive({**simulation.params, "frequency": f}, key)[1]["frequency"] for f in frequencies]
    np.testing.assert_allclose(together["frequency"], np.stack(alone), rtol=1e-12)
