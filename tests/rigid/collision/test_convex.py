"""Gaps of any two convex shapes are those of MuJoCo, and their derivatives central differences."""

import itertools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from simkit import rigid
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.collision.convex import convex_convex
from simkit.rigid.collision.near_pairs import rounds_at_start
from simkit.rigid.collision.points import Placed

PAIRS = 12
# Symmetric about all planes, so that its principal axes are those of the file.
CORNERS = np.array(
    [[0.5 * (k == 0) * s, 0.4 * (k == 1) * s, 0.3 * (k == 2) * s] for k in range(3) for s in (1, -1)]
    + [[0.3 * x, 0.2 * y, 0.15 * z] for x, y, z in itertools.product((1, -1), repeat=3)]
)
SHAPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "mesh")
# Pairs of shapes that have a method of their own; the default must agree for them, too.
SERVED_OTHERWISE = [
    set(pair) <= {"sphere", "capsule", "box"} for pair in itertools.combinations_with_replacement(SHAPES, 2)
]


def surface(corners: np.ndarray) -> str:
    """Return the hull of points about the origin as an OBJ file."""
    faces = [
        face if np.linalg.det(corners[face]) > 0 else face[::-1] for face in ConvexHull(corners).simplices.tolist()
    ]
    lines = [f"v {x} {y} {z}" for x, y, z in corners.tolist()]
    return "\n".join([*lines, *(f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces)])


MESH = surface(CORNERS)


def body_of(kind: str, size: np.ndarray) -> Bodies:
    a, b, c = size
    return {
        "sphere": lambda: rigid.sphere(1.0, a),
        "capsule": lambda: rigid.capsule(1.0, a, 2 * b),
        "box": lambda: rigid.box(1.0, (2 * a, 2 * b, 2 * c)),
        "cylinder": lambda: rigid.cylinder(1.0, a, 2 * b),
        "ellipsoid": lambda: rigid.ellipsoid(1.0, (a, b, c)),
        "mesh": lambda: rigid.mesh(1.0, MESH),
    }[kind]()


def geom_of(kind: str, size: np.ndarray, place: np.ndarray, turn: np.ndarray) -> str:
    what = 'mesh="hull"' if kind == "mesh" else f'size="{size[0]} {size[1]} {size[2]}"'
    at, quat = (" ".join(map(str, values)) for values in (place, turn))
    return f'<geom type="{kind}" {what} pos="{at}" quat="{quat}"/>'


def random_pairs(one: str, other: str, seed: int) -> tuple[list, np.ndarray, np.ndarray, list[float]]:
    """Return bodies, places and turns of pairs at random, and their gaps by MuJoCo."""
    rng = np.random.default_rng(seed)
    text = " ".join(map(str, CORNERS.ravel()))
    asset = f'<asset><mesh name="hull" vertex="{text}"/></asset>'
    bodies, places, turns, gaps = [], [], [], []
    while len(gaps) < PAIRS:
        sizes, turn = rng.uniform(0.1, 0.5, (2, 3)), rng.normal(size=(2, 4))
        turn /= np.linalg.norm(turn, axis=1)[:, None]
        place = np.zeros((2, 3))
        place[0] = rng.normal(size=3)
        place[0] *= rng.uniform(0.2, 1.0) / np.linalg.norm(place[0])
        geoms = "".join(map(geom_of, (one, other), sizes, place, turn))
        option = '<option ccd_tolerance="1e-12" ccd_iterations="500"/>'
        model = mujoco.MjModel.from_xml_string(
            f"<mujoco>{option}{asset}<worldbody><body>{geoms}</body></worldbody></mujoco>"
        )
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        gap = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        # Deeper overlaps have several axes that are locally best.
        if gap > -0.03:
            bodies.append([body_of(kind, size) for kind, size in zip((one, other), sizes, strict=True)])
            places.append(place)
            turns.append(turn)
            gaps.append(gap)
    return bodies, np.array(places), np.array(turns), gaps


def gaps_of(bodies: list, places: jax.Array, turns: jax.Array) -> jax.Array:
    """Return the gaps of pairs, places (n, 2, 3) and turns (n, 2, 4)."""
    sides = [rigid.gather([pair[k] for pair in bodies]) for k in range(2)]
    one, other = (
        Placed(
            position=vector.vector(places[:, k]),
            orientation=quaternion.quaternion(turns[:, k]),
            half_lengths=side.half_lengths,
            radius=side.radius,
        )
        for k, side in enumerate(sides)
    )
    return convex_convex(one, other, (sides[0].forms, sides[1].forms), np.zeros(len(bodies), bool)).gap[0]


@pytest.fixture(scope="module")
def pairs() -> tuple[list, np.ndarray, np.ndarray, np.ndarray]:
    """Return bodies, places, turns and gaps of random pairs of all shapes."""
    kinds = itertools.combinations_with_replacement(SHAPES, 2)
    with jax.enable_x64(True):
        bodies, places, turns, gaps = zip(*(random_pairs(*pair, seed) for seed, pair in enumerate(kinds)), strict=True)
    flat = [pair for group in bodies for pair in group]
    return flat, np.concatenate(places), np.concatenate(turns), np.concatenate(gaps)


@pytest.fixture(scope="module")
def gap_and_slope(pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gaps, their derivatives along random displacements and rotations, and central differences."""
    bodies, places, turns, _ = pairs
    rng = np.random.default_rng(1)
    shift, twist = rng.normal(size=places.shape), rng.normal(size=turns.shape)
    step = 1e-4

    def gaps(change: jax.Array) -> jax.Array:
        moved = jnp.asarray(turns) + change * twist
        moved = moved / jnp.linalg.norm(moved, axis=-1, keepdims=True)
        return gaps_of(bodies, jnp.asarray(places) + change * shift, moved)

    with jax.enable_x64(True):
        program = jax.jit(lambda change: jax.jvp(gaps, (change,), (1.0,)))
        (gap, slope), (more, _), (less, _) = map(program, (0.0, step, -step))
    return np.array(gap), np.array(slope), np.array(more - less) / (2 * step)


def test_gaps_are_those_of_mujoco(pairs, gap_and_slope) -> None:
    # The largest of 252 differences was 9e-7, of sizes of 0.1 to 0.5; nine of ten were below 1e-8.
    error = np.abs(gap_and_slope[0] - pairs[-1])
    assert error.max() < 3e-6
    assert np.quantile(error, 0.9) < 3e-8


def test_derivatives_of_gaps_are_central_differences(gap_and_slope) -> None:
    _, slope, difference = gap_and_slope
    error = np.abs(slope - difference)[[not served for served in SERVED_OTHERWISE for _ in range(PAIRS)]]
    # Gaps are exact to about 1e-8, so their differences over 2e-4 to 1e-4; of a few pairs another edge or side comes
    # nearest within the step.
    assert np.quantile(error, 0.9) < 1e-5
    assert error.max() < 2e-3


def test_many_bodies_with_a_cylinder_have_all_pairs_visited() -> None:
    # Lists of near pairs have no method for it.
    assert rounds_at_start(("sphere",) * 80) > 0
    assert rounds_at_start(("sphere",) * 80 + ("cylinder",)) == 0
