"""Errors name Python arguments, and the options of the command line in their place."""

import pytest

import simkit
from simkit.cli.main import main
from simkit.cli.output import option
from simkit.errors import argument, spelled


def test_an_argument_is_written_as_in_python_and_as_an_option():
    written = {
        ("output",): ("output=", "--output"),
        ("learning_rate",): ("learning_rate=", "--learning-rate"),
        ("overwrite", "True"): ("overwrite=True", "--overwrite"),
        ("mode", '"forward"'): ('mode="forward"', "--mode forward"),
        ("batch", "16"): ("batch=16", "--batch 16"),
        ("final_frames", "False"): ("final_frames=False", "--no-frames"),
        ("KEY", '{"run": "..."}'): ('KEY={"run": "..."}', "--set KEY='{ run = \"...\" }'"),
    }
    assert {each: argument(*each) for each in written} == {each: told for each, (told, _) in written.items()}
    with spelled(option):
        assert {each: argument(*each) for each in written} == {each: told for each, (_, told) in written.items()}


def test_a_mistake_is_reported_for_python_and_for_the_command_line(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(simkit.UserError, match=r"is not a run directory; choose another with output=$"):
        simkit.run("projectile", output=tmp_path / "run")
    assert main(["run", "projectile", "--output", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.endswith("is not a run directory; choose another with --output\n")
