"""A small flow and a chaotic map, which compile quickly."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.core.simulation import Quantity, Simulation
from tests.toys import PENDULUMS, pendulums

CHANNEL = """\
name = "toy_channel"
title = "Flow"
summary = "Flow between walls, whose velocity grows in proportion to time."
simulation = "toy.channel"

[params.forcing]
default = 1.0
bounds = [0.1, 10.0]
unit = "U/h"
doc = "growth of the velocity"

[params.time_step]
default = 0.01
bounds = [1e-4, 0.1]
unit = "h/U"
doc = "time step"

[run]
steps = 20
every = 10
precision = "float64"

[objectives.bulk_velocity]
doc = "mean velocity"

[render]
view = "field"
quantity = "speed"
unit = "U"
"""


@pytree
class Flow:
    time: jax.Array


def channel() -> Simulation:
    """Make a flow (1 - y^2) t with waves along x."""
    x, y = (np.arange(8) + 0.5) / 4, (np.arange(6) + 0.5) / 3 - 1
    profile = jnp.asarray((1 + 0.2 * np.sin(np.pi * x))[:, None] * (1 - y**2))
    shear = jnp.asarray((1 + 0.2 * np.sin(np.pi * x))[:, None] * (2 * y))

    def observe(state, params):
        u = params["forcing"] * state.time * profile
        speed, vorticity = jnp.hypot(u, u / 4), params["forcing"] * state.time * shear
        return {"u": u, "v": u / 4, "speed": speed, "vorticity": vorticity}

    def diagnose(state, params):
        u = params["forcing"] * state.time * profile
        return {"time": state.time, "bulk_velocity": u.mean(), "kinetic_energy": 0.5 * (u**2).mean()}

    return Simulation(
        init=lambda params, key: Flow(time=jnp.zeros_like(params["time_step"])),
        step=lambda state, params: Flow(time=state.time + params["time_step"]),
        observe=observe,
        diagnose=diagnose,
        params={"forcing": jnp.asarray(1.0, dtype=float), "time_step": jnp.asarray(0.01, dtype=float)},
        dimensions={name: ("x", "y") for name in ("u", "v", "speed", "vorticity")},
        coordinates={"x": x, "y": y},
        quantities={
            "speed": Quantity("U", "speed"),
            "vorticity": Quantity("U/h", "vorticity"),
            "bulk_velocity": Quantity("U", "mean velocity"),
        },
    )


LOGISTIC = PENDULUMS.replace("toy.pendulums", "toy.logistic").replace("steps = 20\nevery = 2", "steps = 64\nevery = 64")


def logistic(*, size: int = 3) -> Simulation:
    """Make logistic maps with the growth 3 times the frequency, whose neighbors separate by 1.6 in each step at 3.9."""

    def step(state, params):
        position = 3 * params["frequency"] * state.position * (1 - state.position)
        return dataclasses.replace(state, position=position, time=state.time + params["time_step"])

    return dataclasses.replace(pendulums(size=size), step=step)
