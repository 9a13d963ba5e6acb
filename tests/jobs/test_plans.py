"""Points of sweeps: zipped values, samples, tables, values of the configuration; and their Sobol indices."""

import json

import numpy as np
import pytest
from scipy.stats import qmc

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.points import tabulated
from simkit.jobs.sweep_functions import planned
from simkit.jobs.sweep_results import FEWEST, first_order_indices
from tests.tables import every
from tests.toys import toy

RANGES = {"frequency": (1.0, 4.0), "time_step": (0.001, 0.1, "log")}


TABLE = "frequency, time_step\n1.0,0.01\n2.5,0.02\n1.0,0.03\n\n"


PLANS = {
    "zipped": lambda folder: {"over": {"frequency": [1.0, 2.0, 2.0], "time_step": [0.01, 0.02, 0.03]}, "zip": True},
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
        ({"over": {"frequency": [1.0, 2.0], "time_step": [0.1]}, "zip": True}, "need equal numbers of values"),
        ({"over": {}, "zip": True}, "need equal numbers of values, at least one"),
        ({"over": RANGES, "sample": "sobl", "members": 4}, "sobol"),
        (
            {"over": RANGES, "sample": "sobol"},
            "a sample needs sample= and members=",
        ),
        ({"over": RANGES, "members": 4}, "a sample needs sample= and members="),
        ({"over": {}, "members": 4, "table": "table.csv"}, "the number of its points; give both, or leave both out"),
        ({"over": {}, "sample": "sobol", "members": 4}, "a range of at least one parameter"),
        ({"over": RANGES, "sample": "sobol", "members": 4, "zip": True}, "two ways to make points"),
        ({"over": {"config.size": []}}, "size"),
        ({"over": {"frequency": (0.0, 1.0, "log")}, "sample": "sobol", "members": 4}, "frequency"),
        ({"over": {"frequency": [1.0, 2.0, 3.0]}, "sample": "sobol", "members": 4}, "is not a range to sample"),
        ({"over": RANGES, "sample": "latin_hypercube", "members": 0}, "members = 0"),
        ({"over": {"config.sizes": [2, 3]}}, "sizes"),
        ({"over": {"config.size": "23"}}, "over config.size = '23' is of type str; give a list of values"),
        ({"over": {"frequency": 1.0}}, "over frequency = 1.0 is of type float; give a list of values"),
        ({"over": {"frequency": {1.0, 2.0}}}, "over frequency = {1.0, 2.0} is of type set; give a list of values"),
        ({"over": {"frequency": []}}, "over frequency has no values; give a list of them"),
        ({"over": {"frequency": [[1.0], [2.0, 3.0]]}}, r"over frequency = \[1\] is no number"),
        ({"over": {"frequency": [1.0, 2.0]}, "frequency": 3.0}, "'frequency' is swept"),
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
        ("frequency,time_step\n1.0\n", "row 2 has 1 cells, and the header 2"),
        ("frequency,frequency\n1.0,1.0\n", "header has 'frequency' twice"),
        ("frequenzy\n1.0\n", "did you mean 'frequency'"),
        ("seed\n1\n", "column 'seed' is not a parameter"),
        ("frequency\n", "has no rows"),
        ("", "has no rows"),
        ("frequency;time_step\n1;2;3\n", "row 2 has 3 cells, and the header 2"),
        ('frequency\n"1.0\n', "members.csv, line 2 opens a quotation mark; close it"),
        ("frequency\n\u0661\n", "row 2, column 'frequency'"),
    ],
)
def test_errors_of_tables_name_row_and_column(text, message, tmp_path):
    with pytest.raises(UserError, match=message) as caught:
        simkit.sweep(toy(), table=written(tmp_path, text))
    assert "\n" not in str(caught.value) and "members.csv" in str(caught.value)


@every(
    "text",
    [
        "# frequency; time_step\n1; 0.01\n2.5; 0.02",
        "\ufefffrequency\ttime_step\n1\t.01\n\n2.5\t2e-2",
        '"frequency" time_step\n1 0.01\n2.5  0.02\n',
    ],
)
def test_tables_of_other_programs_are_read(text, tmp_path):
    points, words = tabulated(toy(), written(tmp_path, text))
    assert points == {"frequency": (1.0, 2.5), "time_step": (0.01, 0.02)} and words == "table members.csv"


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


def ishigami(x, a=7.0, b=0.1):
    return np.sin(x[0]) + a * np.sin(x[1]) ** 2 + b * x[2] ** 4 * np.sin(x[0])


def ishigami_indices(a=7.0, b=0.1):
    """Return the exact indices: T. Ishigami and T. Homma, ISUMA 1990, doi:10.1109/ISUMA.1990.151285."""
    total = a**2 / 8 + b * np.pi**4 / 5 + b**2 * np.pi**8 / 18 + 0.5
    return [0.5 * (1 + b * np.pi**4 / 5) ** 2 / total, a**2 / 8 / total, 0.0]


def sample(method, dimensions, count, seed=0):
    return (getattr(qmc, method)(dimensions, rng=np.random.default_rng(seed)).random(count)).T


@every("method", ["Sobol", "LatinHypercube"])
@every("count", [1024, 8192])
def test_indices_of_the_ishigami_function(method, count):
    x = np.pi * (2 * sample(method, 3, count) - 1)
    found = first_order_indices(dict(zip("abc", x, strict=True)), ishigami(x))
    # Statistical errors are about 1 / sqrt(n); variation within classes, up to 0.01, is missed.
    np.testing.assert_allclose([found[name] for name in "abc"], ishigami_indices(), atol=1.2 / np.sqrt(count) + 0.01)


def test_indices_of_the_g_function():
    # A. Saltelli and I. M. Sobol', 1995: product of (|4 x - 2| + a) / (1 + a), whose parts have variance 1/(3 (1+a)^2).
    a = np.array([0.0, 1.0, 4.5, 9.0])
    x = sample("Sobol", 4, 4096)
    y = np.prod((np.abs(4 * x - 2) + a[:, None]) / (1 + a[:, None]), axis=0)
    parts = 1 / (3 * (1 + a) ** 2)
    found = first_order_indices(dict(zip("abcd", x, strict=True)), y)
    np.testing.assert_allclose(list(found.values()), parts / (np.prod(1 + parts) - 1), atol=0.03)


def test_parameters_without_effect_have_none_on_average():
    x = sample("LatinHypercube", 40, 256)
    y = np.random.default_rng(3).normal(size=256)
    found = np.array(list(first_order_indices({str(i): values for i, values in enumerate(x)}, y).values()))
    # Without the correction for chance, each would be 15 / 255.
    assert found.mean() < 0.025


def test_failed_points_are_omitted():
    x = sample("Sobol", 2, 512)
    y = x[0] + 0.5 * x[1]
    y[::5] = np.nan
    found = first_order_indices({"a": x[0], "b": x[1]}, y)
    error = 1.2 / np.sqrt(np.isfinite(y).sum())
    assert found["a"] == pytest.approx(0.8, abs=error) and found["b"] == pytest.approx(0.2, abs=error)


def test_too_few_points_and_constants_have_no_indices():
    x = sample("Sobol", 1, 64)[0]
    assert first_order_indices({"a": x[: FEWEST - 1]}, x[: FEWEST - 1]) == {}
    assert first_order_indices({"a": x}, np.full(64, 3.0)) == {}
