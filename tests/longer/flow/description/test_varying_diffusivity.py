"""A diffusivity that is a formula of position, time and other scalars."""

import jax
import jax.numpy as jnp
import pytest

from simkit import flow, segment
from simkit.core.status import Status
from tests.flow.description.test_varying_diffusivity import layer

pytestmark = pytest.mark.usefixtures("x64")


def test_fluxes_of_a_varying_diffusivity_conserve_the_scalar():
    layer_, rate = layer()
    # Through the lower side nothing flows, and through the upper one what the diagnostic says.
    state = layer_.init(layer_.params, jax.random.key(0))
    entering = layer_.diagnose(state, layer_.params)["c.flux_x_upper"]
    assert float(jnp.mean(rate(0.5))) == pytest.approx(float(entering), rel=1e-12)


def test_a_diffusivity_or_drag_that_leaves_its_range_after_the_start_stops_the_run():
    missed = []
    for diffusivity, coefficient in (("0.001 + 500*time", 1), ("0.1 - 20*time", 1), (0.01, "1 - 100*time")):
        box = flow.system(
            axes={
                "x": {"cells": 4, "length": 1.0, "periodic": True},
                "y": {"cells": 8, "length": 1.0, "periodic": True},
            },
            viscosity=0.01,
            drag={"coefficient": coefficient},
            scalars={"c": {"diffusivity": diffusivity, "initial": "sin(2*pi*y)"}},
            parameters={"time_step": 1e-3},
        )
        box.check(box.params, jax.random.key(0))
        state = jax.jit(segment(box, 20))(box.init(box.params, jax.random.key(0)), box.params)
        code = int(box.status(state, box.params))
        missed += [] if code == Status.VISCOSITY_OUT_OF_RANGE else [(diffusivity, coefficient, code)]
    assert not missed
