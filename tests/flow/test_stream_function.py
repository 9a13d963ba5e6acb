"""The stream function of plane flows: the inverse of the curl, with flow through sides and around periodic axes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError
from simkit.flow.diagnosis.measures import stream_function
from simkit.flow.grid import Grid, bounded_axis, periodic_axis
from simkit.flow.operators.differences import curl
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

KINDS = list(itertools.product(("periodic", "bounded"), repeat=2))
AROUND = {"cells": 8, "length": 2.0, "periodic": True}
WALLS = {"cells": 6, "to": 1.0, "stretching": 1.0, "lower": "wall", "upper": "wall"}


def axis_of(kind, cells):
    return periodic_axis(cells, 2.0, -0.5) if kind == "periodic" else bounded_axis(cells, 1.5, -0.5, 1.2)


@every([(kinds,) for kinds in KINDS])
def test_stream_function_is_the_inverse_of_the_curl(kinds):
    grid = Grid((axis_of(kinds[0], 7), axis_of(kinds[1], 5)))
    shape = [len(axis.points) for axis in grid.axes]
    psi = np.random.default_rng(0).standard_normal(shape)
    found = jax.jit(lambda psi: stream_function(curl(psi, grid), grid))(psi)
    # The corner at the lower ends is the last one of periodic axes.
    corner = tuple(-1 if kind == "periodic" else 0 for kind in kinds)
    np.testing.assert_allclose(found, psi - psi[corner], rtol=0, atol=1e-13)


@every([(kinds,) for kinds in KINDS])
def test_stream_function_of_a_uniform_flow_is_a_plane(kinds):
    grid = Grid((axis_of(kinds[0], 7), axis_of(kinds[1], 5)))
    uniform = jnp.full(grid.shape(0), 2.0), jnp.full(grid.shape(1), 3.0)
    found = jax.jit(lambda v: stream_function(v, grid))(uniform)
    x, y = (axis.points - axis.faces[0] for axis in grid.axes)
    np.testing.assert_allclose(found, 2 * y - 3 * x[:, None], rtol=0, atol=1e-13)


def test_faces_and_stream_function_are_observed_only_on_request():
    settings = {"axes": {"x": AROUND, "y": WALLS}, "viscosity": 0.1}
    assert not {"stream_function", "u_face"} & set(flow.system(**settings).dimensions)
    assert "x_face" not in flow.system(**settings).coordinates
    simulation = flow.system(**settings, observed=["u_face", "speed"])
    assert simulation.dimensions["u_face"] == ("x_face", "y")
    assert "y_face" not in simulation.coordinates
    # Around a periodic axis as many faces as cells; between walls each stands for the halves of cells beside it.
    np.testing.assert_allclose(simulation.coordinates["x_face"], np.linspace(0, 2, 9)[1:])
    between = flow.system(**settings, observed=["v_face"])
    np.testing.assert_allclose(between.coordinates["y_face_widths"].sum(), 1.0)


def test_stream_function_in_space_is_refused_by_name():
    with pytest.raises(UserError, match=r"^observed\[0\] = 'stream_function' is of plane flows"):
        flow.system(axes={"x": AROUND, "y": WALLS, "z": AROUND}, viscosity=0.1, observed=["stream_function"])


def test_velocity_on_faces_is_observed_in_space():
    simulation = flow.system(axes={"x": AROUND, "y": WALLS, "z": AROUND}, viscosity=0.1, observed=["w_face"])
    assert simulation.dimensions == {"w_face": ("x", "y", "z_face")}
