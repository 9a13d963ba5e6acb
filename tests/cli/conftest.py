"""Fixtures: the command line, called in this process."""

import dataclasses
import re

import pytest

from simkit.cli.main import main


@dataclasses.dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def line(self):
        """The one line on stderr, without the progress lines of slow machines."""
        lines = [line for line in self.err.strip().splitlines() if not re.fullmatch(r"\w+ +\d+ %.*", line)]
        assert len(lines) == 1, self.err
        return lines[0]


@pytest.fixture
def simkit(tmp_path, monkeypatch, capsys):
    """Run ``simkit ...`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
