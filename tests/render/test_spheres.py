"""Particles in space: shaded spheres with bonds between neighbors."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.particles import SpherePainter, _pairs
from simkit.render.views import new_painter

SIZE = (200, 160)


def tetrahedron(edge=1.1):
    corners = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * edge / 8**0.5
    return {
        "position": np.stack([corners, 1.4 * corners]),
        "diameter": np.ones((2, 4)),
        "energy": np.tile([0.0, 1.0, 2.0, 3.5], (2, 1)),
    }


def paint(frames, settings, count=2, **options):
    return new_painter(
        frames, {"iteration": np.arange(count)}, {}, "t", settings("particles", "energy"), SIZE, **options
    )


def test_a_nearer_sphere_hides_a_farther_one(settings, window_of):
    from simkit.render.bodies.camera import axes
    from simkit.render.particles import _DIRECTION

    _, _, forward = axes(*_DIRECTION)
    for order in ((0, 1), (1, 0)):
        frames = {
            # The first is nearer to the camera.
            "position": np.array([[-2 * forward, 2 * forward]])[:, order],
            "diameter": np.ones((1, 2)),
            "energy": np.array([[10.5, 0.0]])[:, order],
        }
        painter = paint(frames, settings, 1)
        assert isinstance(painter, SpherePainter)
        shown = window_of(painter, painter.image(0)).astype(int)
        red, _, blue = shown[shown.shape[0] // 2, shown.shape[1] // 2]
        # Yellow stands for the larger energy, violet for the smaller.
        assert red > blue + 60


def test_every_particle_of_every_frame_is_in_the_window(settings):
    position = np.random.default_rng(0).normal(0, 3, (2, 9, 3))
    frames = {"position": position, "diameter": np.ones((2, 9)), "energy": position[..., 0]}
    painter = paint(frames, settings)
    for centers in position:
        left, right, top, bottom = painter._camera.extent(centers, 0.5)
        assert left > 0 and top > 0
        assert right < painter.sheet.box.width and bottom < painter.sheet.box.height


def test_neighbors_are_bonded_and_others_are_not(settings):
    frames = tetrahedron()
    assert len(_pairs(frames["position"][0], frames["diameter"][0])) == 6
    assert len(_pairs(frames["position"][1], frames["diameter"][1])) == 0
    painter = paint(frames, settings)
    assert len(painter._solids(0)) == 4 + 6 and len(painter._solids(1)) == 4


def test_in_a_dense_packing_there_are_no_bonds(settings):
    cubic = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    faces = np.concatenate([cubic + np.array(shift) / 2 for shift in ((0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1))])
    frames = {"position": faces[None], "diameter": np.full((1, 256), 0.65), "box": np.full((1, 3), 4.0)}
    painter = paint(frames | {"energy": np.zeros((1, 256))}, settings, 1)
    assert len(painter._solids(0)) == 256 and len(painter._edges(0)) == 12


def test_lost_particles_do_not_stop_the_picture(settings):
    frames = tetrahedron()
    frames["position"][1, 2] = np.nan
    painter = paint(frames, settings)
    assert len(painter._solids(1)) == 3
    assert painter.image(1).shape == (160, 200, 3)
    frames["position"][:] = np.nan
    assert (paint(frames, settings).image(0) == 255).any()


def test_wrong_shapes_are_named(settings):
    frames = tetrahedron()
    with pytest.raises(UserError, match="'diameter' has shape"):
        paint(frames | {"diameter": np.ones((2, 3))}, settings)
    with pytest.raises(UserError, match="particles have 4 coordinates"):
        paint(frames | {"position": np.zeros((2, 4, 4))}, settings)


def test_an_atom_on_a_side_of_the_box_does_not_jump_to_the_other(settings):
    frames = {
        "position": np.array([[[0.01, 2, 2]], [[-0.01, 2, 2]], [[3.999, 2, 2]]]),
        "diameter": np.ones((3, 1)),
        "box": np.full((3, 3), 4.0),
        "energy": np.zeros((3, 1)),
    }
    np.testing.assert_allclose(paint(frames, settings, 3)._position[:, 0, 0], [0.01, -0.01, -0.001], atol=1e-12)
    # What wanders in time stays inside the box.
    frames["position"] = np.array([[[1.0, 2, 2]], [[3.5, 2, 2]], [[5.0, 2, 2]]])
    painter = new_painter(frames, {"time": np.arange(3)}, {}, "t", settings("particles", "energy"), SIZE)
    np.testing.assert_allclose(painter._position[:, 0, 0], [1.0, 3.5, 1.0])
