"""Start fields from files, arrays and stored runs."""

import jax
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.errors import UserError
from simkit.scenario.catalog import read_scenario
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

BOX = {"x": {"cells": 8, "length": 1.0, "periodic": True}, "y": {"cells": 10, "length": 2.0, "periodic": True}}
DYE = {"dye": {"diffusivity": 0.01, "initial": "sin(2*pi*x)"}}
CONFIG = """
name = "later"
simulation = "flow.domain"
[config]
viscosity = 0.02
scalars.dye.diffusivity = 0.01
start = START
[config.axes]
x = { cells = 8, length = 1, periodic = true }
y = { cells = 10, length = 2, periodic = true }
[run]
steps = 3
every = 1
precision = "float64"
[render]
view = "chart"
quantity = "kinetic_energy"
"""


def after(simulation, steps):
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    step = jax.jit(simulation.step)
    for _ in range(steps):
        state = step(state, simulation.params)
    return state


def test_arrays_at_the_centers_are_interpolated_and_made_solenoidal(tmp_path):
    x, y = (np.arange(8)[:, None] + 0.5) / 8, (np.arange(10) + 0.5) / 5
    u, v = np.sin(np.pi * y) + 0 * x, np.cos(2 * np.pi * x) + 0.5 * np.sin(np.pi * y)
    np.savez(tmp_path / "start.npz", u=u, v=v, dye=x + 0 * y)
    np.save(tmp_path / "start.npy", np.stack([u, v]))
    (tmp_path / "later.toml").write_text(CONFIG.replace("START", '{ file = "start.npz" }'))
    scenario = read_scenario(tmp_path / "later.toml")
    given = flow.system(axes=BOX, viscosity=0.02, start={"file": str(tmp_path / "start.npy")})
    arrays = flow.system(axes=BOX, viscosity=0.02, start={"u": u, "v": jax.numpy.asarray(v)})
    for simulation in (simkit.build(scenario), given, arrays):
        state = after(simulation, 0)
        assert float(simulation.diagnose(state, simulation.params)["divergence"]) < 1e-13
        # The velocity along x has no divergence: it stays as it is, and its means over two cells are those along x.
        np.testing.assert_allclose(state.velocity[0], u, rtol=0, atol=1e-14)
        # Of the velocity along y the part that varies along y goes, and the other stays.
        np.testing.assert_allclose(state.velocity[1], np.cos(2 * np.pi * x) + 0 * y, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(after(simkit.build(scenario), 0).scalar["dye"], x + 0 * y)


ONES = np.ones((8, 10))


@every(
    [
        ({"u": ONES}, {}, "start has no 'v', at the cell centers, nor 'v_face', but only u"),
        ({"u": ONES, "v": ONES.T}, {}, r"start: 'v' has shape \(10, 8\); give one number at each point, \(8, 10\)"),
        ({"u": ONES, "v": ONES * np.nan}, {}, r"start\.v: the number at index \[0, 0\] of \[8, 10\] is not finite"),
        ({"u": ONES, "v": ONES}, {"initial": {"u": 1}}, "initial.u is given beside start"),
        ({"u": ONES, "v": ONES, "dye": ONES}, {"scalars": DYE}, "scalars.dye.initial is in start, too"),
        (
            {"u": ONES, "v": ONES},
            {"scalars": {"dye": {"diffusivity": 1}}},
            "initial is missing, and start has no 'dye'",
        ),
        (
            {"u": ONES, "v": ONES, "x": np.arange(8.0)},
            {},
            "start has its cells at x = 0 to 7, and the flow at 0.06",
        ),
        (
            {"u": ONES, "v": ONES, "x": np.zeros(0)},
            {},
            "start has its cells at x = no place, and the flow at 0.06",
        ),
        ({"u": ONES, "u_face": ONES, "v": ONES}, {}, "start has both 'u' and 'u_face'; give one of them"),
        ({"u": ONES, "v": ONES, "w": ONES}, {}, "start: 'w' is not an array of this flow; leave it out"),
        ({"u": ONES, "v": ONES, "z": ONES}, {}, "start: 'z' is not an array of this flow; leave it out"),
        (
            {"u": ONES, "v": ONES, "dye": ONES},
            {},
            "start: 'dye' is unknown; leave it out, it takes u, v, u_face, v_face, x",
        ),
        (3, {}, "start = 3 has no arrays"),
        ("text", {}, "start is no file of arrays"),
    ]
)
def test_arrays_that_are_not_those_of_the_flow_are_refused(start, more, message):
    with pytest.raises(UserError, match=message):
        flow.system(axes=BOX, viscosity=0.02, start=start, **more)


def test_a_file_of_arrays_that_is_cut_short_is_refused_by_its_name(tmp_path):
    np.savez(tmp_path / "start.npz", u=ONES, v=ONES)
    np.save(tmp_path / "start.npy", np.stack([ONES, ONES]))
    (tmp_path / "later.toml").write_text(CONFIG.replace("START", '{ file = "start.npz" }'))
    for name in ("start.npz", "start.npy"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(UserError, match=f"start: {name} is cut short or no file of arrays"):
            flow.system(axes=BOX, viscosity=0.02, start={"file": str(tmp_path / name)})
    with pytest.raises(UserError, match=r"start: start\.npz is cut short"):
        simkit.build(read_scenario(tmp_path / "later.toml"))
