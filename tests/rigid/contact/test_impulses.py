"""Sequential impulses: propagation of impacts, conservation of momenta, and rest."""

import jax
import pytest

from simkit.errors import UserError
from simkit.rigid.contact.impulses import Impulses
from tests.tables import every

EPSILON = {"float64": 2.2e-16, "float32": 1.2e-7}


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    with jax.enable_x64(request.param == "float64"):
        yield EPSILON[request.param]


@every(
    "wrong, message",
    [({"sweeps": 0}, "sweeps = 0"), ({"impacts": -1}, "impacts = -1"), ({"correction": 1.5}, "correction = 1.5")],
)
def test_numbers_out_of_range_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        Impulses(**wrong)
