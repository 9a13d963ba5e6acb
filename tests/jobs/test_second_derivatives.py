"""Second derivatives in Python and on the command line: labeled, checked, and with notes on their validity."""

import numpy as np
import pytest

import simkit
from tests.toys import toy, toys  # noqa: F401


def test_a_matrix_of_too_many_rows_is_refused_in_a_line():
    many = simkit.Simulation(
        init=lambda params, key: params["start"],
        step=lambda state, params: 0.9 * state,
        observe=lambda state, params: {"place": state},
        diagnose=lambda state, params: {"size": (state**2).sum()},
        params={"start": np.ones(300)},
    )
    with pytest.raises(simkit.UserError, match=r"second derivatives by 300 numbers .*hessian_vector_product"):
        simkit.hessian(many, "start", objective="size", steps=2)
