"""A stack of a box, a cylinder and a mesh, beside an ellipsoid, on a floor: it stands, loses energy, and resumes."""

import itertools

import numpy as np
import pytest

import simkit
from simkit import rigid
from tests.rigid.collision.test_convex import surface

pytestmark = pytest.mark.usefixtures("x64")
# Of different lengths, so that its principal axes are those of the file.
BLOCK = surface(np.array(list(itertools.product((-1, 1), repeat=3))) * (0.14, 0.12, 0.1))
TIME_STEP = 0.002


def stack() -> simkit.Simulation:
    """Return the simulation; the lowest box is pushed, so that what stands on it is moved by friction."""
    shapes = [
        rigid.box(2.0, (0.6, 0.6, 0.2), friction=0.5),
        rigid.cylinder(1.0, 0.15, 0.3, friction=0.5),
        rigid.mesh(0.5, BLOCK, friction=0.5),
        rigid.ellipsoid(1.0, (0.2, 0.15, 0.1), friction=0.5),
    ]

    def start(params, bodies, key):
        return rigid.motion_of(
            bodies,
            [(0.0, 0.0, 0.1), (0.0, 0.0, 0.35), (0.0, 0.0, 0.6), (1.0, 0.0, 0.12)],
            velocity=np.outer((1, 1, 1, 0), (1, 0, 0)) * params["speed"],
        )

    return rigid.simulate(
        rigid.Scene(
            params={"gravity": 9.81, "speed": 0.1, "time_step": TIME_STEP},
            bodies=rigid.gather(shapes),
            start=start,
            dynamics=rigid.Impulses(),
            planes=rigid.floor(),
            loads=(rigid.gravity(),),
        )
    )


def test_it_stands_and_never_gains_energy() -> None:
    run = simkit.run(stack(), steps=int(2 / TIME_STEP), every=1)
    overlap = float(run["largest_penetration"][-1])
    # The largest was 4.3e-6 m.
    assert overlap < 1e-4
    # The box comes to rest after 1 mm, and the others with it up to 0.2 mm.
    place, energy = np.array(run["position"][-1]), np.array(run["energy"])
    assert np.ptp(place[:3, 0]) < 3e-4
    assert place[:, 2] == pytest.approx([0.1, 0.35, 0.6, 0.1], abs=1e-4)
    # Overlaps are pushed out, so a weight may be lifted by as much.
    gained = energy - np.minimum.accumulate(energy)
    assert gained.max() < 9.81 * 4.5 * overlap
