"""Derivatives through impacts of `Impulses` are not those of the physics, and every report says so."""

import jax.numpy as jnp

from simkit.core.status import CAUTIONS, Status


def test_cautions_do_not_stop():
    from simkit.core.status import stops

    assert not any(bool(stops(jnp.int32(code))) for code in (Status.OK, *CAUTIONS))
