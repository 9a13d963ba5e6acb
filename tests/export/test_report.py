"""Reports of stored work: what they show is what is stored, and the call in them computes it again."""

import html
import json
import re

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError

SHORT = {"steps": 60, "every": 3, "restitution": 0.5}
LOADED = r"""<(?:script|img|link|iframe|video)[^>]+(?:src|href)=["'](?!data:)"""


def shown(file):
    """Return the page, its embedded data and its blocks of code."""
    text = file.read_text()
    assert not re.findall(LOADED, text)
    data = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    codes = [html.unescape(code) for code in re.findall("<pre[^>]*><code>(.*?)</code>", text, re.DOTALL)]
    return text, json.loads(data[1]) if data else None, codes


def test_the_report_of_a_run_shows_its_diagnostics_and_the_call_that_repeats_it(tmp_path, monkeypatch, capsys):
    run = simkit.run("bouncing_ball", **SHORT, output=tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "run" / "report.html")
    text, data, (call, scenario) = shown(tmp_path / "run" / "report.html")
    assert 'src="data:image/gif;base64,' in text
    np.testing.assert_array_equal(data["clock"]["values"], run["time"])
    assert {each["name"] for each in data["series"]} == {n for n, a in run.data_vars.items() if a.dims == ("time",)}
    for each in data["series"]:
        np.testing.assert_array_equal(each["values"], run[each["name"]])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bouncing_ball.toml").write_text(scenario)
    np.testing.assert_array_equal(eval(call)["position"], run["position"])
    assert "<td>float64</td>" in text
    # The report belongs to the run, which may be replaced with it.
    simkit.run("bouncing_ball", **SHORT, output=tmp_path / "run", overwrite=True)


def test_texts_of_a_file_are_shown_as_they_are(tmp_path):
    words = "</script><script>alert(1)</script> <img src=x onerror=alert(2)> & 'quoted'"
    scenario = simkit.load("bouncing_ball")
    file = tmp_path / "hostile.toml"
    file.write_text(re.sub("(?m)^title = .*", f"title = {json.dumps(words)}", scenario.text))
    simkit.run(str(file), **SHORT, output=tmp_path / "run")
    text, _, _ = shown(simkit.report(tmp_path / "run"))
    assert words not in text and html.escape(words) in text
    assert text.count("<script") == 2  # the data and the program of the page


def test_the_report_of_an_unfinished_run_says_so_and_an_unfinished_sweep_has_none(tmp_path):
    simkit.run("bouncing_ball", **SHORT, output=tmp_path / "run")
    simkit.sweep("bouncing_ball", {"launch_speed": [3.0, 5.0]}, output=tmp_path / "sweep", **SHORT)
    for name in ("run", "sweep"):
        (tmp_path / name / "summary.json").unlink()
    assert "is not finished (stored up to step 60)" in shown(simkit.report(tmp_path / "run"))[0]
    with pytest.raises(UserError, match="simkit resume"):
        simkit.report(tmp_path / "sweep")
