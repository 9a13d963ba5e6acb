import numpy as np

from simkit.storage.datasets import join, split, to_dataset

LABELS = {
    "dimensions": {"speed": ["x", "y"], "wrong": ["x"]},
    "coordinates": {"x": [0.5, 1.5], "y": [1.0, 2.0, 3.0], "z": [0.0]},
}


def arrays(**more):
    return {
        "observed.speed": np.zeros((4, 2, 3)),
        "diagnosed.time": np.arange(4.0),
        "diagnosed.energy": np.arange(4.0) ** 2,
        "status": np.zeros(4, np.int32),
        **more,
    }


def test_observed_arrays_have_their_dimensions_and_coordinates():
    dataset = to_dataset(arrays(), LABELS, {"title": "A flow"})
    # The rows of a field are along y, as in a picture; stored arrays are unchanged.
    assert dataset["speed"].dims == ("time", "y", "x") and dataset["speed"].shape == (4, 3, 2)
    np.testing.assert_array_equal(dataset["x"], [0.5, 1.5])
    np.testing.assert_array_equal(dataset["y"], [1.0, 2.0, 3.0])
    assert "z" not in dataset.coords  # no array has this dimension
    assert dataset.attrs == {"title": "A flow"}


def test_time_is_a_coordinate_and_diagnostics_are_series():
    dataset = to_dataset(arrays(), LABELS, {})
    assert dataset["energy"].dims == ("time",)
    np.testing.assert_array_equal(dataset.coords["time"], np.arange(4.0))
    assert "time" not in dataset.data_vars
    iterated = to_dataset(arrays(**{"diagnosed.iteration": np.arange(4)}), LABELS, {})
    assert {"time", "iteration"} <= set(iterated.coords)
    untimed = arrays()
    untimed.pop("diagnosed.time")
    assert to_dataset(untimed, LABELS, {})["energy"].dims == ("frame",)


def test_arrays_without_fitting_names_get_dimensions_of_their_own():
    dataset = to_dataset(
        arrays(**{"observed.free": np.zeros((4, 7)), "observed.wrong": np.zeros((4, 2, 2))}), LABELS, {}
    )
    assert dataset["free"].dims == ("time", "free_0")
    assert dataset["wrong"].dims == ("time", "wrong_0", "wrong_1")


def test_name_both_observed_and_diagnosed_gives_two_variables():
    dataset = to_dataset(arrays(**{"observed.energy": np.zeros((4, 7))}), LABELS, {})
    assert dataset["energy"].dims == ("time",) and dataset["observed_energy"].dims == ("time", "energy_0")


def test_segments_are_joined_along_their_frames():
    joined = join([{"a": np.arange(1), "b": np.zeros((1, 2))}, {"a": np.arange(1, 3), "b": np.ones((2, 2))}])
    np.testing.assert_array_equal(joined["a"], [0, 1, 2])
    assert joined["b"].shape == (3, 2)


def test_groups_are_split_by_name():
    observed, diagnosed = split(arrays())
    assert list(observed) == ["speed"] and list(diagnosed) == ["time", "energy"]


def test_component_dimensions_have_labels():
    dataset = to_dataset(
        arrays(**{"observed.place": np.zeros((4, 5, 2)), "observed.turn": np.zeros((4, 5, 4))}),
        {"dimensions": {"place": ["body", "axis"], "turn": ["body", "quaternion"]}, "coordinates": {}},
        {},
    )
    assert dataset["axis"].values.tolist() == ["x", "y"] and "body" not in dataset.coords
    assert dataset["turn"].sel(quaternion="w").shape == (4, 5)
