"""Pictures of runs whose numbers leave the range of single precision, without warnings of NumPy."""

import warnings

import numpy as np

from simkit.render.views import new_painter
from tests.tables import every


def blown_up(array, ends):
    """The array in double precision, whose last frames are huge, and at the end in part not finite."""
    array = np.array(array, float)
    array[-2:] *= 1e200
    if ends:
        flat = array[-1].reshape(-1)
        flat[::3], flat[1::3] = np.inf, np.nan
    return array


@every("limits, ends", [(None, True), ((0.0, 1.0), False)])
@every(
    ("view", "name", "quantity"),
    [
        ("field", "field_run", "speed"),
        ("particles", "particle_run", "contacts"),
        ("particles", "particle_run", "position"),
        ("bodies", "body_run", "velocity"),
        ("bodies", "body_run", "position"),
        ("chart", "field_run", "energy"),
    ],
)
def test_a_run_that_blows_up_is_drawn_without_warnings(view, name, quantity, limits, ends, settings, request):
    frames, diagnostics, coordinates = request.getfixturevalue(name)(3)
    if view == "bodies":
        frames = frames | {"velocity": frames["position"]}
    if quantity in frames:
        frames = frames | {quantity: blown_up(frames[quantity], ends)}
    else:
        diagnostics = diagnostics | {"energy": blown_up(diagnostics["time"], ends)}
    shown = "contacts" if quantity == "position" and view == "particles" else quantity
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        painter = new_painter(frames, diagnostics, coordinates, "run", settings(view, shown, limits=limits))
        for index in range(len(painter)):
            painter.image(index)
