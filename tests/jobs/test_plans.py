"""Points of sweeps: zipped values, samples, tables, and values of the configuration."""

import json

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.sweep_functions import planned
from tests.tables import every
from tests.toys import toy

RANGES = {"frequency": (1.0, 4.0), "time_step": (0.001, 0.1, "log")}


TABLE = "frequency, time_step\n1.0,0.01\n2.5,0.02\n1.0,0.03\n\n"


PLANS = {
    "zipped": lambda folder: {
        "over": {"frequency": [1.0, 2.0, 2.0], "time_step": [0.01, 0.02, 0.03]},
        "zip": True,
    },
    "sobol": lambda folder: {"over": RANGES, "sample": "sobol", "members": 4},
    "latin hypercube": lambda folder: {"over": RANGES, "sample": "latin_hypercube", "members": 5},
    "table": lambda folder: {"table": written(folder, TABLE)},
}


def written(folder, text, name="members.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_zipped_values_keep_their_order():
    swept = simkit.sweep(toy(), {"frequency": [3.0, 1.0, 3.0], "time_step": [0.01, 0.02, 0.03]}, zip=True)
    assert swept["frequency"].values.tolist() == [3.0, 1.0, 3.0]
    assert swept["time_step"].values.tolist() == [0.01, 0.02, 0.03]
    run = simkit.run(toy(), frequency=1.0, time_step=0.02)
    np.testing.assert_allclose(swept["energy"][1, 0], run["energy"], rtol=1e-12)


@every("method", ["sobol", "latin_hypercube"])
def test_samples_fill_their_ranges_evenly_and_depend_on_the_seed_alone(method):
    def drawn(seed):
        return planned(toy(seed=seed), RANGES, sample=method, members=64).over

    first, other = drawn(1), drawn(2)
    assert drawn(1) == first and first != other
    for name, (low, high, *log) in RANGES.items():
        values = np.array(first[name])
        assert values.min() >= low and values.max() <= high
        unit = np.log(values / low) / np.log(high / low) if log else (values - low) / (high - low)
        # One point in each of 64 intervals: a property of both, of a Sobol' sequence for powers of 2.
        assert sorted((unit * 64).astype(int).tolist()) == list(range(64))


@every(
    ("asked", "message"),
    [
        (
            {"over": {"frequency": [1.0, 2.0], "time_step": [0.1]}, "zip": True},
            "need equal numbers of values",
        ),
        ({"over": {}, "zip": True}, "need equal numbers of values, at least one"),
        ({"over": RANGES, "sample": "sobl", "members": 4}, "sobol"),
        (
            {"over": RANGES, "sample": "sobol"},
            "a sample needs sample= and members=",
        ),
        ({"over": RANGES, "members": 4}, "a sample needs sample= and members="),
        ({"over": {}, "members": 4, "table": "table.csv"}, "the number of its points; give both, or leave both out"),
        ({"over": {}, "sample": "sobol", "members": 4}, "a range of at least one parameter"),
        ({"over": {"frequency": (0.0, 1.0, "log")}, "sample": "sobol", "members": 4}, "frequency"),
        ({"over": {"frequency": [1.0, 2.0, 3.0]}, "sample": "sobol", "members": 4}, "is not a range to sample"),
        ({"over": RANGES, "sample": "latin_hypercube", "members": 0}, "members = 0"),
        ({"over": RANGES, "sample": "sobol", "members": 4, "zip": True}, "two ways to make points"),
        ({"over": {"config.sizes": [2, 3]}}, "sizes"),
        ({"over": {"config.size": []}}, "size"),
        ({"over": {"frequency": [1.0, 2.0]}, "frequency": 3.0}, "'frequency' is swept"),
        ({"over": RANGES, "sample": "sobol", "members": 4, "time_step": 0.1}, "'time_step' is swept"),
        ({"over": {"config.size": [2, 3]}, "config.size": 4}, "'config.size' is swept"),
    ],
)
def test_invalid_points_give_one_line(asked, message):
    with pytest.raises(UserError, match=message) as caught:
        simkit.sweep(toy(), **asked)
    assert "\n" not in str(caught.value)


@every(
    ("text", "message"),
    [
        ("frequency\n1.0\nabc\n", "row 3, column 'frequency'"),
        ("frequency\n1.0\nnan\n", "row 3, column 'frequency'"),
        ("frequency\n-1e9\n", "row 2, column 'frequency'"),
        ("frequency\n1_000\n", "row 2, column 'frequency'"),
        ("frequency\n\u0661\u0662\n", "row 2, column 'frequency'"),
        ("frequency,time_step\n1.0\n", "row 2 has 1 cells, and the header 2"),
        ("frequency,frequency\n1.0,1.0\n", "is given twice"),
        ("frequenzy\n1.0\n", "did you mean 'frequency'"),
        ("seed\n1\n", "column 'seed' is not a parameter"),
        ("frequency\n", "has no rows"),
        ("", "has no rows"),
        ("frequency;time_step\n1;2\n", "column 'frequency;time_step' is not a parameter"),
        ('frequency\n"1.0\n', "members.csv cannot be read"),
    ],
)
def test_errors_of_tables_name_row_and_column(text, message, tmp_path):
    with pytest.raises(UserError, match=message) as caught:
        simkit.sweep(toy(), table=written(tmp_path, text))
    assert "\n" not in str(caught.value) and "members.csv" in str(caught.value)


def test_overriding_a_column_of_a_table_is_refused(tmp_path):
    with pytest.raises(UserError, match="'time_step' is swept, so the value given for time_step has no effect"):
        simkit.sweep(toy(), table=written(tmp_path, TABLE), time_step=0.1)


def test_invalid_table_files_give_one_line(tmp_path):
    for name, message in (
        ("a.txt", "neither .csv nor .parquet"),
        ("none.csv", "does not exist; check the path"),
        ("bad.parquet", "pyarrow|Parquet"),
    ):
        if name != "none.csv":
            written(tmp_path, "x", name)
        with pytest.raises(UserError, match=message):
            simkit.sweep(toy(), table=tmp_path / name)


def test_a_forecast_counts_members_chunks_and_compilations(tmp_path, capsys):
    file = tmp_path / "toy.toml"
    file.write_text(toy().text)
    words = ["sweep", str(file), "--over", "frequency=1:2:4", "--over", "config.size=2,3", "--chunk", "2"]
    assert main([*words, "--dry-run", "--json", "--output", str(tmp_path / "out")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["members"], told["compilations"], told["chunks"]) == (8, 2, 4)
    assert not (tmp_path / "out").exists()
