"""Flow between two walls: the step of jax-cfd in a scenario of simkit, compiled by any jit."""

import jax
import numpy as np
import xarray

import simkit
from simkit import segment


def flow(jit, cells=(96, 48), frames=40):
    """Return the speed at the centers of the cells, ``(frames, *cells)``, as a data set."""
    simulation = simkit.build(simkit.load("jax_cfd_channel", {"cells": list(cells)}))

    @jit
    def advance(state, params):
        return segment(simulation, 25)(state, params)

    @jit
    def seen(state, params):
        return simulation.observe(state, params)["speed"], simulation.diagnose(state, params)["time"]

    params = simulation.params
    state = simulation.init(params, jax.random.key(0))
    pictures = [seen(state, params)]
    for _ in range(frames - 1):
        state = advance(state, params)
        pictures.append(seen(state, params))
    speeds, times = map(np.stack, zip(*pictures, strict=True))
    places = {name: simulation.coordinates[name] for name in ("x", "y")}
    sides = ("side", simulation.coordinates["sides"])
    return xarray.Dataset({"speed": (("time", "x", "y"), speeds)}, {"time": times, "sides": sides, **places})


def draw(speeds, title):
    """Return the animation: bright where the flow is fast."""
    look = {"quantity": "speed", "label": "speed", "unit": "U", "colormap": "inferno", "limits": (0, 2)}
    return simkit.animate(speeds, view="field", size=(480, 210), title=title, **look)


if __name__ == "__main__":
    for name, jit in (("jax", jax.jit), ("onnxruntime", simkit.onnxjit)):
        draw(flow(jit), title=name).save(f"channel_{name}.gif")
