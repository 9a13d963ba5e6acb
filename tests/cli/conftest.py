"""Calling the command line in this process."""

import dataclasses

import pytest

from simkit.cli.main import main


@dataclasses.dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def line(self):
        """The one line on stderr."""
        lines = self.err.strip().splitlines()
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
