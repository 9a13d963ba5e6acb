"""Which contacts act in an impact, and refusals of events."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import UserError
from simkit.rigid import mjcf
from simkit.rigid.articulated.impact_law import complementary, held, inverted, rows_of

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body><joint type="slide" axis="0 0 1" {joint}/><geom size="0.1"/></body></worldbody></mujoco>"""


def rod(length):
    """Return the rows of a rod of 1 kg that lies on its two ends, with the coordinates height and turn, and its speeds.

    Args:
        length: half of the rod over its radius of gyration.
    """
    jacobian = jnp.array([[1.0, length], [1.0, -length]])
    rows = rows_of(inverted(jnp.eye(2)), jnp.concatenate([jacobian, 0 * jacobian, 0 * jacobian]), jnp.zeros(2, bool))
    # It turns about its first end, so that the second one strikes.
    return rows, rows.times(jnp.array([-1.0, 1 / length]))


@pytest.mark.parametrize(("length", "acting"), [(0.5, [False, True]), (2.0, [True, True])])
def test_a_standing_end_leaves_where_the_impact_of_the_other_lifts_it(length, acting):
    """An end rises if it is nearer than the radius of gyration (center of percussion), and else is pressed down."""
    with jax.enable_x64(True):
        rows, speeds = rod(length)
        active, is_solved = complementary(rows, speeds, jnp.ones(2, bool), jnp.array([False, True]))
        impulses = held(rows.mobility, rows.acting(active), speeds[:, None])[:, 0]
        after = speeds + rows.mobility @ impulses
    assert is_solved and np.asarray(active).tolist() == acting
    assert np.min(after[:2]) > -1e-12 and np.min(impulses[:2]) > -1e-12 and abs(after[1]) < 1e-12


def test_redundant_constraints_share_their_impulse_and_have_its_derivative():
    """Two equal rows: each takes half of what one would; rounding moves impulses that cancel between them."""
    with jax.enable_x64(True):

        def impulses(mass):
            return held(jnp.ones((2, 2)) / mass, jnp.ones(2, bool), -jnp.ones((2, 1)))[:, 0]

        values, slopes = jax.jvp(impulses, (3.0,), (1.0,))
    for found, each in ((values, 1.5), (slopes, 0.5)):
        # Rounding over the regularization, eps^(1/4) = 1.2e-4.
        np.testing.assert_allclose(found, each, rtol=1e-4)
        np.testing.assert_allclose(np.sum(found), 2 * each, rtol=1e-12)


@pytest.mark.parametrize(
    ("joint", "options", "reason"),
    [
        ("", {"engine": "mujoco", "events": {}}, "no effect beside engine = 'mujoco'"),
        ('frictionloss="1"', {"engine": "simkit", "events": {}}, "friction in joints"),
        ("", {"engine": "simkit", "events": {"impact_law": "hertz"}}, "poisson"),
    ],
)
def test_what_events_lack_is_refused(joint, options, reason):
    with pytest.raises(UserError, match=reason):
        mjcf(BALL.format(joint=joint), **options)
