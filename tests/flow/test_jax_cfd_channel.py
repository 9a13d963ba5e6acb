"""The channel of jax-cfd: initial state, discrete steady flow, and refusals."""

import jax
import pytest

from simkit.errors import UserError
from simkit.flow import jax_cfd_channel
from tests.tables import every

pytest.importorskip("jax_cfd.base")
KEY = jax.random.key(0)
CELLS = (4, 8)


@pytest.fixture(scope="module")
def channel():
    with jax.enable_x64(True):
        return jax_cfd_channel(cells=CELLS)


@every([8, [8], [2, 8], ["a", 8]])
def test_invalid_cells_are_refused(cells):
    with pytest.raises(UserError, match=r"cells"):
        jax_cfd_channel(cells=cells)


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"time_step": 1.1}, "advection"), ({"reynolds": 1.0, "time_step": 0.031}, "explicit friction")],
)
def test_time_step_beyond_stability_is_refused(channel, values, reason, x64):
    # Cells of 1.5 x 0.25: 1.5 U crosses one in 1 h/U, and friction at Re = 1 bears 1 / (2/1.5^2 + 2/0.25^2) = 0.0304.
    with pytest.raises(UserError, match=f"above the stability limit of {reason} on this grid"):
        channel.check(channel.with_params(**values).params, KEY)
