"""A scenario file that uses every key, and the toy simulation it runs."""

import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.simulation import Simulation

GOOD = """\
name = "toy_decay"
title = "Decay"
summary = "A field that decays to rest."
simulation = "toy.decay"
tags = ["toy", "test"]
references = ["doi:10.1000/182"]

[config]
cells = [4, 3]
width = 2.0
method = "euler"
periodic = true

[params.rate]
default = 0.5
bounds = [0.1, 10]
unit = "1/s"
doc = "decay rate"

[params.time_step]
default = 1e-2
bounds = [1e-4, 1.0]
unit = "s"
doc = "time step"

[params.coupling]
default = [[1, 0.5], [0.5, 1]]
bounds = [0.0, 2.0]
doc = "coupling matrix"

[run]
steps = 100
every = 10
precision = "float32"
seed = 3

[objectives.amplitude]
doc = "largest value at the end"

[objectives.decayed]
doc = "distance from rest"
quantity = "amplitude"
reduce = "mean"
square = true
goal = "maximize"

[render]
view = "field"
quantity = "height"
label = "surface height"
unit = "m"
colormap = "viridis"
limits = [-1.0, 1.0]
frames_per_second = 25

[[validation]]
quantity = "amplitude"
expected = 0.606
tolerance = 1e-2
source = "exponential decay"
set = {rate = 0.5, steps = 200}

[[validation]]
derivative = "rate"
objective = "amplitude"
expected = -0.606
tolerance = 1e-2
source = "exponential decay"
"""


def lenient(**config) -> Simulation:
    """Return the same simulation for any arguments."""
    del config
    return decay()


def decay(*, cells=(2, 2), width=1.0, method="euler", periodic=True) -> Simulation:
    """Make a field that decays at the given rate."""
    if method not in ("euler", "exact"):
        raise ValueError(f"method {method!r} does not exist\nchoose euler or exact")
    nx, ny = cells

    def step(state, params):
        return {
            "time": state["time"] + params["time_step"],
            "height": state["height"] * (1.0 - params["rate"] * params["time_step"]),
        }

    return Simulation(
        init=lambda params, key: {"time": jnp.zeros_like(params["rate"]), "height": jnp.full((nx, ny), params["rate"])},
        step=step,
        observe=lambda state, params: {"height": state["height"], "profile": state["height"][0]},
        diagnose=lambda state, params: {"time": state["time"], "amplitude": jnp.max(state["height"])},
        params={
            "rate": jnp.asarray(1.0, dtype=float),
            "time_step": Parameter(0.1, POSITIVE),
            "coupling": jnp.asarray(jnp.eye(2), dtype=float),
            "offset": jnp.asarray(7.0, dtype=float),
        },
    )
