"""Animations and pictures of data sets, run directories and trajectories."""

import dataclasses
import io
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from PIL import Image

import simkit
from simkit.export.pictures import drawable_of
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from tests.core.toys import oscillator
from tests.export.runs import CHANNEL
from tests.toys import toy

SIZE = (160, 120)


def pixels(drawing):
    return np.asarray(Image.open(io.BytesIO(drawing.data)).convert("RGB"))


def test_data_set_and_folder_give_the_same_picture(flow):
    run, folder = flow
    expected = simkit.picture(run, size=SIZE)
    assert pixels(expected).shape == (120, 160, 3) and expected.data == simkit.picture(str(folder), size=SIZE).data
    assert expected.data != simkit.picture(run, size=SIZE, frame=0).data


def test_data_set_read_from_a_file_is_drawn_without_the_scenario(flow, tmp_path):
    run, _ = flow
    run.to_netcdf(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as stored:
        plain = simkit.picture(stored, size=SIZE, quantity="speed")
        assert np.ptp(pixels(plain)) > 100
        # A part of the run in time.
        part = simkit.picture(stored.isel(time=slice(0, 2)), size=SIZE, quantity="speed", limits=(0, 1))
        first = simkit.picture(stored, size=SIZE, quantity="speed", limits=(0, 1), frame=1)
    assert part.data == first.data


def test_trajectory_is_drawn():
    swinging = dataclasses.replace(
        oscillator(3),
        observe=lambda state, params: {
            "position": jnp.stack([state.position, state.velocity], -1),
            "diameter": jnp.full(3, 0.2),
        },
    )
    result = jax.jit(simkit.trajectory(swinging, 12, 3))(swinging.params, jax.random.key(0))
    drawing = simkit.animate(result, size=SIZE, title="Thrown", view="particles")
    with Image.open(io.BytesIO(drawing.data)) as film:
        assert film.n_frames == 5
    assert drawing.title == "Thrown" and "data:image/gif;base64," in drawing._repr_html_()
    assert simkit.animate(result[1:], size=SIZE, title="Thrown", view="particles").data == drawing.data


def test_drawing_is_saved(flow, tmp_path):
    drawing = simkit.picture(flow[0], size=SIZE)
    assert drawing.save(tmp_path / "deep" / "a.png").read_bytes() == drawing.data
    assert repr(drawing) == f"<Drawing of {drawing.title}: png, {len(drawing.data)} bytes; save(path) writes it>"


def test_a_file_is_drawn_in_the_format_of_its_ending(flow, tmp_path):
    film, still = simkit.animate(flow[0], size=SIZE, frames=2), simkit.picture(flow[0], size=SIZE)
    assert film.save(tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"
    assert film.save(tmp_path / "a.png").read_bytes() == still.data
    with Image.open(still.save(tmp_path / "b.GIF")) as moving:
        assert moving.n_frames == 3
    video = simkit.animate(flow[0], size=SIZE, frames=2, kind="mp4")
    assert "<video" in video._repr_html_() and video.save(tmp_path / "c.gif").read_bytes() == film.data


def test_file_of_another_kind_is_refused(flow, tmp_path):
    drawing = simkit.picture(flow[0], size="160x120")
    assert pixels(drawing).shape == (120, 160, 3)
    with pytest.raises(simkit.UserError, match=r"which is a png; name it a.gif or a.webp or a.mp4 or a.png"):
        drawing.save(tmp_path / "a.txt")
    chart = simkit.picture(simkit.sweep(toy(steps=2), {"frequency": [1.0, 2.0]}))
    with pytest.raises(simkit.UserError, match=r"which is a png; name it a.png"):
        chart.save(tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())
    with pytest.raises(simkit.UserError, match="kind = 'avi' is unknown"):
        simkit.animate(flow[0], kind="avi")


def test_a_sweep_is_a_chart_and_a_film_through_its_members(factories, tmp_path):
    values = [0.5, 1.0, 2.0]
    scenario = load(parse_scenario(CHANNEL, Path("channel.toml")), {})
    swept = simkit.sweep(scenario, {"forcing": values}, output=tmp_path / "sweep")
    chart = simkit.picture(swept)
    assert chart.kind == "png" and chart.data == simkit.picture(tmp_path / "sweep").data
    with Image.open(io.BytesIO(simkit.animate(swept, size=SIZE).data)) as film:
        assert film.n_frames == len(values)
    # Each of its frames is the last one of that run, on one color scale.
    member = simkit.run(scenario, forcing=2.0)
    drawn = simkit.picture(member, size=SIZE, limits=(0, 1))
    whole = drawable_of(swept, {"limits": (0, 1)})
    np.testing.assert_array_equal(whole["frames"]["speed"][-1], member["speed"].values[-1].T)
    assert whole["diagnostics"] == {"forcing": pytest.approx(values)} and drawn.title == whole["title"]
    with pytest.raises(simkit.UserError, match="frame has no effect on the chart of a sweep"):
        simkit.picture(swept, frame=0)
    with pytest.raises(simkit.UserError, match="has kept no frames of its members"):
        simkit.animate(simkit.sweep(scenario, {"forcing": values}, final_frames=False))


def test_an_optimization_is_a_chart_of_its_iterations(factories, tmp_path):
    best = simkit.optimize(toy(), "frequency", iterations=3, output=tmp_path / "best")
    chart = simkit.picture(best)
    assert chart.data == simkit.picture(tmp_path / "best").data
    assert pixels(simkit.picture(best, size=SIZE, quantity="gradient_norm")).shape == (120, 160, 3)
    with Image.open(io.BytesIO(simkit.animate(best, size=SIZE).data)) as film:
        assert film.n_frames == best.sizes["iteration"]


def test_unit_is_that_of_the_drawn_quantity(flow):
    assert drawable_of(flow[0], {"quantity": "vorticity"})["settings"].unit == "U/h"
    assert drawable_of(flow[0], {"view": "chart", "quantity": "bulk_velocity"})["settings"].unit == "U"
    assert drawable_of(flow[0].isel(time=slice(0, 2)), {"quantity": "vorticity"})["settings"].unit == "U/h"


def test_another_quantity_brings_its_own_colors(flow):
    run, _ = flow
    assert simkit.picture(run, size=SIZE, quantity="vorticity").data != simkit.picture(run, size=SIZE).data
    chart = simkit.picture(run, size=SIZE, view="chart", quantity="bulk_velocity")
    assert pixels(chart).shape == (120, 160, 3)


def test_wrong_setting_is_refused_in_one_line(flow):
    for settings, message in (
        ({"quantty": "speed"}, "render.quantty is not a known key; did you mean 'quantity'"),
        ({"quantity": "pressur"}, "array of the frames = 'pressur' is unknown"),
        ({"view": "film"}, "view = 'film' is unknown"),
        ({"view": "particles"}, "array of the frames = 'position' is unknown"),
        ({"size": (10, 10)}, "side of the size 10x10 = 10 is not an integer from 64 to 4096"),
        ({"frame": 99}, "frame = 99 is not an integer from"),
        ({"colormap": "nonesuch"}, "nonesuch"),
    ):
        with pytest.raises(simkit.UserError) as error:
            simkit.picture(flow[0], **{"size": SIZE} | settings)
        assert message in str(error.value) and "\n" not in str(error.value), settings


def test_result_that_is_not_a_run_is_refused(flow, tmp_path):
    with pytest.raises(simkit.UserError, match=r"int cannot be drawn; give what simkit.run, simkit.sweep or"):
        simkit.animate(3)
    with pytest.raises(simkit.UserError, match="no axis time, iteration or frame"):
        simkit.animate(flow[0].isel(time=0))
    swept = simkit.sweep(toy(steps=2), {"frequency": [1.0, 2.0]})
    with pytest.raises(simkit.UserError, match="or several seeds; draw a whole sweep"):
        simkit.picture(swept.isel(frequency=[0]))
    simkit.value_and_grad(toy(steps=2), "frequency", output=tmp_path / "slope")
    with pytest.raises(simkit.UserError, match="a derivative of toy_pendulums has no frames"):
        simkit.picture(tmp_path / "slope")


def test_a_frame_that_is_no_index_is_refused():
    run = simkit.run(toy(steps=2))
    for frame in ("a", 1.5):
        with pytest.raises(simkit.UserError, match=r"frame = .* is not an integer"):
            simkit.picture(run, frame=frame)


def test_a_title_is_one_bounded_line(flow):
    hostile = "<script>\"'\n\u202egnp.exe " + "x" * 10_000
    title = drawable_of(flow[0], {"title": hostile})["title"]
    assert title.startswith("<script>\"' gnp.exe xxx") and len(title) <= 120 and title.isprintable()
    drawing = simkit.picture(flow[0], size=SIZE, title=hostile)
    assert "<script>" not in drawing._repr_html_() and len(drawing.title) <= 120
