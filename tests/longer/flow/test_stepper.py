"""Flow steps: both formulations with their derivatives, and the order of every method in time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.formulation import formulated_for
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.stepping.stepper import FlowState, stepper
from tests.flow.flows import solenoidal_noise, some
from tests.flow.test_stepper import CHANNEL, KINDS, eddies, equations, flow
from tests.tables import every


def difference(a: FlowState, b: FlowState) -> float:
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(a.velocity, b.velocity, strict=True))


@pytest.mark.usefixtures("x64")
@every([("adams_bashforth, implicit", (-0.5, 1.0))])
def test_velocity_has_the_order_of_its_method_in_time(scheme, walls):
    velocity = eddies(CHANNEL)
    # With implicit friction, of second order, Runge-Kutta's third-order error still dominates at these steps.
    least, most = {"runge_kutta": (3, 3), "runge_kutta, implicit": (2, 3)}.get(scheme, (2, 2))

    def after(steps):
        return flow(CHANNEL, scheme, velocity, steps, time_step=0.5 / steps, force=0.06, lower=walls[0], upper=walls[1])

    runs = [after(steps) for steps in (40, 80, 160)]
    order = np.log2(difference(runs[0], runs[1]) / difference(runs[1], runs[2]))
    # The next term of the error is smaller by the largest rate times the step: eddies turn at a rate of about 5, and
    # 5 * 0.5/80 = 0.03 shifts the measured order by less than log2(1 + 0.03).
    assert least - 0.05 < order < most + 0.05


def rounded_apart(a, b):
    """The largest difference of two trees of arrays, in roundings of the largest number of each array."""
    pairs = zip(*map(jax.tree.leaves, (a, b)), strict=True)
    return max(np.abs(x - y).max() / max(np.abs(y).max(), 1e-3) / np.finfo(y.dtype).eps for x, y in pairs if x.size)


def of_both_formulations(place, scheme, options, dtype):
    """Two members after a step, and the derivatives of their energy, in the formulation of either device."""
    start, step = stepper(dataclasses.replace(equations(place, scheme), **options))
    velocity = jax.tree.map(lambda f: 0.3 * f.astype(dtype), solenoidal_noise(place.grid, 1))
    scalar = jnp.zeros(place.grid.cells, dtype) if "scalar" in options else ()
    numbers = {"viscosity": [0.02, 0.05], "time_step": [0.01] * 2, "force": [1.0] * 2, "lower": [0.0] * 2}
    params = {name: jnp.asarray(pair, dtype) for name, pair in (numbers | {"upper": [0.5] * 2}).items()}

    def energy(params):
        state = step(start(velocity, params, scalar), params)
        return kinetic_energy(state.velocity, place.grid), (state.velocity, state.scalar, state.load, state.pressure)

    def run(params):
        results = []
        for device in ("cpu", "accelerator"):
            with formulated_for(device):
                results.append(jax.vmap(jax.value_and_grad(energy, has_aux=True))(params))
        return results

    # Unoptimized machine code compiles in a third of the time.
    program = jax.jit(run).lower(params).compile({"xla_backend_optimization_level": 0})
    return jax.tree.map(np.asarray, program(params))


# Velocities, scalars and derivatives are sums of some ten numbers, rounded in another order; the pressure is made of
# them by a division by the time step, 0.01.
ROUNDINGS, ROUNDINGS_OF_PRESSURE = 10, 10 / 0.01


@pytest.mark.usefixtures("x64")
@every(some(KINDS, "friction along both axes"))
def test_a_step_and_its_derivatives_agree_in_both_formulations(place, scheme, options):
    for dtype in (jnp.float32, jnp.float64):
        cpu, accelerator = of_both_formulations(place, scheme, options, dtype)
        (energies, (*fields, pressure)), slopes = cpu
        (other_energies, (*other_fields, other_pressure)), other_slopes = accelerator
        assert rounded_apart(pressure, other_pressure) < ROUNDINGS_OF_PRESSURE
        assert rounded_apart((energies, fields, slopes), (other_energies, other_fields, other_slopes)) < ROUNDINGS
