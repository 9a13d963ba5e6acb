"""Particles: disks of true size, periodic images, one color per contact number; shaded spheres with bonds."""

import matplotlib
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.color import color_scale
from simkit.render.particles import SpherePainter, _pairs, periodic_images
from simkit.render.selection import drawn_cell
from simkit.render.views import new_painter
from tests.tables import every

WHITE = np.array([255, 255, 255])


def one_disk(center, diameter=2.0, box=8.0, **more):
    frames = {
        "position": np.array([[center]], float),
        "diameter": np.array([[diameter]]),
        "box": np.full((1, len(center)), box),
        "contacts": np.array([[3]]),
    }
    return frames | more, {"iteration": np.zeros(1, int)}, {}


def covered(painter, window_of):
    """Area of what is not paper inside the box, in units of the box; the outline's own pixels left out."""
    shown = window_of(painter, painter.image(0)).astype(float)[2:-2, 2:-2]
    darkness = (WHITE - shown).sum(axis=-1)
    return (darkness > 0.5 * darkness.max()).sum() / painter.sheet.box.width**2


def test_a_disk_has_its_true_area(settings, window_of):
    # Large enough for the edge line, 0.5 points or 1.6 pixels here, to be distinguished from the disk.
    painter = new_painter(*one_disk((4, 4)), "disk", settings("particles", "contacts"), (1280, 960))
    area = covered(painter, window_of)
    # The rim is decided to half a pixel: its length times half a pixel, in units of the box.
    assert area == pytest.approx(np.pi / 64, abs=np.pi * 2 / 8 * 0.5 / painter.sheet.box.width)


def test_a_disk_on_a_corner_is_seen_in_all_four(settings, window_of):
    painter = new_painter(*one_disk((0, 8)), "disk", settings("particles", "contacts"), (640, 480))
    shown = window_of(painter, painter.image(0))
    inset = 6
    corners = shown[[inset, inset, -inset, -inset], [inset, -inset, inset, -inset]]
    assert (corners != WHITE).any(axis=-1).all()
    # Within half a pixel of the rim, and two pixels on each side of the box left to its outline.
    margin = (np.pi * 2 / 8 * 0.5 + 4 * 2 * 0.25) / painter.sheet.box.width
    assert covered(painter, window_of) == pytest.approx(np.pi / 64, abs=margin)


@every("periodic", [(True, True), (True, False), (False, True)])
def test_periodic_images_are_exactly_those_that_overlap_the_cell(periodic):
    generator = np.random.default_rng(0)
    position, diameter = generator.uniform(-9, 9, (40, 2)), generator.uniform(0.2, 1.5, 40)
    box = np.array([3.0, 4.0])
    repeats = np.array(periodic)
    centers, source = periodic_images(position, diameter, np.diag(box), repeats)
    found = {(s, *np.round(c, 9)) for c, s in zip(centers, source, strict=True)}
    expected = set()
    for particle in range(40):
        for i in range(-6, 7) if periodic[0] else (0,):
            for j in range(-6, 7) if periodic[1] else (0,):
                image = position[particle] + box * (i, j)
                nearest = np.where(repeats, np.clip(image, 0, box), image)
                if np.linalg.norm(image - nearest) < diameter[particle] / 2 or (image == nearest).all():
                    expected.add((particle, *np.round(image, 9)))
    assert found == expected


def test_images_in_an_oblique_cell_are_its_lattice_images():
    # A row of touching disks along the second vector: the last touches the image of the first.
    vectors = np.array([[4.0, 0.0], [1.8, 2.4]])
    position = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]) @ np.array([[0.6, 0.8], [0, 0]]) + [0.5, 0.0]
    centers, source = periodic_images(position, np.ones(3), vectors, np.array([True, True]))
    assert [*np.round(position[0] + vectors[1], 9)] in np.round(centers[source == 0], 9).tolist()
    shifts = (centers - position[source]) @ np.linalg.inv(vectors)
    np.testing.assert_allclose(shifts, np.rint(shifts), atol=1e-12)


def test_an_oblique_cell_is_drawn_as_a_parallelogram():
    vectors = np.array([[[4.0, 0.0], [1.8, 2.4]]])
    frames = {
        "position": np.ones((1, 1, 2)),
        "diameter": np.ones((1, 1)),
        "box": np.array([[4.0, 3.0]]),
        "cell": vectors,
    }
    np.testing.assert_allclose(drawn_cell(frames).corners[0], [[0, 0], [1.8, 2.4], [4, 0], [5.8, 2.4]])
    straight = frames | {"cell": np.array([[[4.0, 0.0], [0.0, 3.0]]])}
    np.testing.assert_allclose(drawn_cell(straight).corners[0], [[0, 0], [0, 3], [4, 0], [4, 3]])


def test_contact_numbers_have_one_flat_color_each(settings, window_of):
    frames = {
        "position": np.array([[[1.0, 1.0], [3.0, 1.0], [5.0, 1.0]]]),
        "diameter": np.full((1, 3), 1.5),
        "box": np.full((1, 2), 6.0),
        "contacts": np.array([[2, 3, 4]]),
    }
    painter = new_painter(frames, {"iteration": [0]}, {}, "three", settings("particles", "contacts"))
    shown = window_of(painter, painter.image(0))
    row, unit = shown.shape[0] - round(shown.shape[0] / 6), shown.shape[1] / 6
    colors = [shown[row, round(unit * x)] for x in (1, 3, 5)]
    expected = np.rint(matplotlib.colormaps["viridis"]([0.0, 0.5, 1.0])[:, :3] * 255)
    np.testing.assert_array_equal(colors, expected)
    assert [text.get_text() for text in painter.sheet.bar.axes.get_yticklabels()] == ["2", "3", "4"]


@every(
    ("quantity", "arrays", "message"),
    [
        ("position", {}, "'position' has shape"),
        ("contacts", {"box": np.ones((4, 3))}, "'box' has shape"),
        ("contacts", {"diameter": np.ones((4, 3))}, "'diameter' has shape"),
        ("contacts", {"position": np.zeros((4, 32, 4))}, "particles have 4 coordinates"),
        ("contacts", {"box": np.ones((3, 2))}, "differ in their number of frames"),
    ],
)
def test_wrong_shapes_are_named(quantity, arrays, message, particle_run, settings):
    frames, diagnostics, coordinates = particle_run()
    with pytest.raises(UserError, match=message):
        new_painter(frames | arrays, diagnostics, coordinates, "packing", settings("particles", quantity))


@every("limits", [None, (-0.5, 1.5), (0.0, 1.0), (-0.4, 1.9)])
def test_each_species_has_one_color_of_the_scale(limits):
    scale = color_scale(np.array([0, 1, 1, 0]), None, limits, default="viridis", whole=True, names=["A", "B"])
    assert scale.levels == (0, 1) and (scale.low, scale.high) == (-0.5, 1.5)


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
