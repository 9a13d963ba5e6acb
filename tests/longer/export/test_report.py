"""Reports of stored work: what they show is what is stored, and the call in them computes it again."""

import re

import numpy as np

import simkit
from tests.export.test_report import SHORT, shown


def test_the_report_of_a_sweep_shows_every_member_with_its_objective(tmp_path, monkeypatch):
    sweep = simkit.sweep("bouncing_ball", {"launch_speed": [3.0, 5.0]}, seeds=2, output=tmp_path / "sweep", **SHORT)
    text, _, (call, scenario) = shown(simkit.report(tmp_path / "sweep", tmp_path / "page.html"))
    rows = re.search('<table class="sorted">.*?<tbody>(.*?)</tbody>', text, re.DOTALL)[1].split("</tr>")[:-1]
    cells = [re.findall("<td[^>]*>(.*?)</td>", row) for row in rows]
    heads = re.findall("<th[^>]*>(.*?)</th>", text[text.index('<table class="sorted">') :])
    miss = [float(row[heads.index("miss")]) for row in cells]
    np.testing.assert_allclose(miss, sweep["miss"].values.ravel(), rtol=1e-6)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bouncing_ball.toml").write_text(scenario)
    np.testing.assert_array_equal(eval(call)["miss"], sweep["miss"])
