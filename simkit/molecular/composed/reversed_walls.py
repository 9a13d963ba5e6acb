"""Walls whose distance has the wrong sign, found where random positions have no room."""

import itertools
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import precision_of
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.composed.fields import Field
from simkit.molecular.composed.names import TIME
from simkit.molecular.composed.placing import Placing
from simkit.molecular.composed.starts import carried

# Places along each axis at which distances from walls are looked at.
PLACES = 5


def refuse_reversed_walls(fields: Iterable[Field], placing: Placing, params: Params) -> None:
    """Raise if the whole region of random positions is behind one wall.

    Args:
        fields: external energies and walls.
        placing: random starting positions.
        params: parameters.

    Raises:
        UserError: names the distance of the wall.
    """
    assert placing.random is not None and placing.frame is not None  # random places fill something
    middles = (np.arange(PLACES) + 0.5) / PLACES
    frame = placing.frame(params)
    fractions = np.array(list(itertools.product(middles, repeat=len(placing.random.periodic))))
    places = carried(jnp.asarray(fractions - placing.random.is_ball / 2, frame.dtype), frame)
    for field in fields:
        if field.distance is None or field.wall is None or not field.on.any():
            continue
        if (_away(field, places, params)[:, field.on] < 0).all():
            where, text = field.wall.where, field.wall.expression.syntax.text
            raise UserError(f"{where} = '{text}' is below 0 throughout the cell; reverse its sign, or move the wall")


def _away(field: Field, places: jax.Array, params: Params) -> np.ndarray:
    """Return the distances of each particle at each place, (places, N)."""
    assert field.distance is not None  # only walls have one
    distance = field.distance
    now = {**params, TIME: jnp.zeros((), precision_of(params))} if field.takes_time else params

    def at(place: jax.Array) -> jax.Array:
        return distance(tuple(jnp.full(len(field.on), x) for x in place), now)

    return np.asarray(jax.vmap(at)(places))
