"""Members that failed in any way count in every report."""

from simkit.core.status import FAILURES, Status
from tests.cli.test_failures import check_reports
from tests.tables import every


@every("code", FAILURES, ids=lambda code: code.name)
def test_every_failed_member_counts_in_every_report(code, tmp_path, capsys):
    check_reports(code, tmp_path, capsys)


def test_a_failed_member_counts_in_every_report(tmp_path, capsys):
    check_reports(Status.STALLED, tmp_path, capsys)
