"""Members that failed in any way count in every report."""

from simkit.core.status import FAILURES
from tests.cli.test_failures import check_reports
from tests.every import every


@every("code", FAILURES, ids=lambda code: code.name)
def test_every_failed_member_counts_in_every_report(code, tmp_path, capsys):
    check_reports(code, tmp_path, capsys)
