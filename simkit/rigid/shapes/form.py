"""Forms of convex shapes in units of their half lengths: half spaces, a round part, and corners."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np

type Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class Form:
    """A convex set of points u about the origin; a body has it scaled by its half lengths and rounded by its radius.

    The set ``{u: rows . u <= 1, sum_i round_i u_i^2 <= 1}`` is also the hull of the corners, moved by every vector of
    the round part.

    Attributes:
        rows: normals of the half spaces, one for each flat side.
        corners: corners of the part without roundness.
        round: 1 for each axis along which it is round, 0 for the others.
    """

    rows: tuple[Triple, ...]
    corners: tuple[Triple, ...]
    round: Triple = (0.0, 0.0, 0.0)

    @property
    def drawn(self) -> int:
        """How pictures draw it: 0 by half lengths and radius alone, 1 a cylinder, 2 an ellipsoid, 3 by its corners."""
        return {2: 1, 3: 2}.get(int(sum(self.round)), 0 if self == CUBE else 3)


CUBE = Form(
    rows=tuple(tuple(float(sign * (k == axis)) for k in range(3)) for axis in range(3) for sign in (1, -1)),  # type: ignore[misc]
    corners=tuple(itertools.product((-1.0, 1.0), repeat=3)),  # type: ignore[arg-type]
)


@functools.cache
def arrays_of(first: tuple[Form, ...], second: tuple[Form, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows (3, m, 2, pairs), corners (3, n, 2, pairs) and round parts (3, 2, pairs) of pairs of forms.

    Forms with fewer rows have rows of zeros, which hold everywhere; those with fewer corners repeat the first.

    Args:
        first: of the first bodies.
        second: of the second bodies.
    """

    def of(values: Sequence[Triple], count: int, fill: Triple) -> list[Triple]:
        return [*values, *[fill] * (count - len(values))]

    forms = first + second
    rows = max(1, *(len(form.rows) for form in forms))
    corners = max(len(form.corners) for form in forms)
    sides = [
        (
            np.array([of(form.rows, rows, (0.0, 0.0, 0.0)) for form in side]).transpose(2, 1, 0),
            np.array([of(form.corners, corners, form.corners[0]) for form in side]).transpose(2, 1, 0),
            np.array([form.round for form in side]).T,
        )
        for side in (first, second)
    ]
    return tuple(np.stack(each, axis=-2) for each in zip(*sides, strict=True))  # type: ignore[return-value]
