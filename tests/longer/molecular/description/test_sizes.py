"""Structures of different sizes as one system: equal to each by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.molecular.description.test_sizes import made


def test_energy_arrays_and_derivatives_are_those_of_each_structure_by_itself(x64):
    def start(simulation):
        def energy(depth, params):
            params = {**params, "depth": depth}
            state = simulation.init(params, jax.random.key(0))
            return simulation.diagnose(state, params)["energy"], (
                simulation.diagnose(state, params),
                simulation.observe(state, params),
            )

        return jax.jit(jax.value_and_grad(energy, has_aux=True))

    every, one = made("member"), made(2, particles={"Ar": {}})
    (energy, (numbers, arrays)), slope = start(every)(0.01, {**every.params, "member": jnp.asarray(2.0)})
    (own, (own_numbers, own_arrays)), own_slope = start(one)(0.01, one.params)
    assert [float(energy), float(slope)] == pytest.approx([float(own), float(own_slope)], rel=1e-12)
    assert {"particles"} == numbers.keys() - own_numbers.keys() and numbers["particles"] == 4
    for name, number in own_numbers.items():
        assert float(numbers[name]) == pytest.approx(float(number), rel=1e-12), name
    for name, array in own_arrays.items():
        np.testing.assert_allclose(arrays[name][: len(array)], array, rtol=1e-13, err_msg=name)
    assert np.isnan(arrays["position"][4:]).all() and len(arrays["position"]) == 8
