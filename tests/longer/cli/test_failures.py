"""Failed members and runs in all reports: table, messages, exit code, JSON, chart and data set."""

import argparse
import json

from simkit.cli.reports import sweep
from simkit.core.status import FAILURES, Status
from simkit.jobs.sweeps import Sweep
from simkit.scenario.catalog import find_scenario
from tests.cli.test_failures import result_of
from tests.tables import every


@every("code", FAILURES, ids=lambda code: code.name)
def test_every_failed_member_counts_in_every_report(code, tmp_path, capsys):
    result, job = result_of(Status.OK, code, code, code), Sweep(find_scenario("bouncing_ball"), {})
    assert sweep.finish(result, job, tmp_path, argparse.Namespace(json=False), None) == 3
    table = capsys.readouterr()
    assert [line.split() for line in table.out.splitlines()[:4]] == [
        ["launch_speed", "seeds", "fine", "energy"],
        ["-" * 12, "-" * 10, "-" * 6],
        ["3", "1", "1"],  # the mean over the seeds that did not fail
        ["4", "0", "-"],
    ]
    assert len(table.err.splitlines()) == 3
    assert sweep.finish(result, job, tmp_path, argparse.Namespace(json=True), None) == 3
    assert len(json.loads(capsys.readouterr().out)["failed"]) == 3
