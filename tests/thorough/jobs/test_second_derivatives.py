"""Second derivatives in Python and on the command line: labeled, checked, and with notes on their validity."""

import json
import warnings

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from tests.toys import toy, toys  # noqa: F401


def test_the_matrix_is_labeled_and_equals_differences_of_the_derivative():
    found = simkit.hessian(toy(), ["time_step", "frequency"])
    assert found.dims == ("row", "column") and list(found["row"].values) == ["frequency", "time_step"]
    frequency = found.sel(row="frequency", column="frequency").item()
    h = 1e-5
    above, below = (simkit.value_and_grad(toy(frequency=1.3 + d), "frequency")[1]["frequency"] for d in (h, -h))
    assert frequency == pytest.approx((above - below) / (2 * h), rel=1e-6)
    forward, reverse = (simkit.hessian(toy(), ["time_step", "frequency"], mode=m) for m in ("forward", "reverse"))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)


def test_effect_of_stepped_contacts_on_second_derivatives_is_noted(capsys):
    few = {"steps": 20, "every": 10}
    with pytest.warns(UserWarning, match="contacts begin, stick and end at whole steps, so second derivatives"):
        simkit.hessian("sliding_block", ["speed"], **few)
    settings = [word for name, value in few.items() for word in ("--set", f"{name}={value}")]
    assert main(["grad", "sliding_block", "--wrt", "speed", "--second", "--json", *settings]) == 0
    assert "take dynamics = Events" in json.loads(capsys.readouterr().out)["note"]
    # First derivatives through a contact that lasts are those of the physics, and events have all of them.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simkit.value_and_grad("sliding_block", ["speed"], **few)
        simkit.hessian("bouncing_ball", ["launch_speed"], objective="final_position", **few)
