"""Tools for agents at work: each in a process, with progress, a limit of time, and files in one folder."""

import json
import os
import sys

import anyio
import mcp
import pytest

from simkit.cli.agents import Limits
from tests.cli.test_agents import called

THROW = {"scenario": "bouncing_ball", "settings": {"steps": 60, "every": 10}}


def test_an_agent_finds_checks_runs_and_reports(tmp_path):
    folder = tmp_path / "agent"
    _, results, told = called(
        folder,
        ("list", {"tag": "rigid"}),
        ("show", {"scenario": "bouncing_ball", "part": "params.target"}),
        ("check", {"toml": 'name = "x"\nsimulation = "rigid.bouncing_ball"\n[params]\nmas = 3\n'}),
        ("run", {"name": "ball", **THROW}),
        ("sweep", {"name": "balls", "over": {"launch_speed": [3.0, 4.0]}, "seeds": 2, **THROW}),
        ("grad", {"wrt": "launch_speed,launch_angle", "objective": "final_position", "check": True, **THROW}),
        ("optimize", {"name": "best", "wrt": "launch_speed", "iterations": 3, **THROW}),
        ("report", {"name": "ball"}),
        ("run", {"name": "ball", **THROW}),
        ("run", {"name": "again", "scenario": "bouncing_bal"}),
    )
    data = [result.structured_content for result in results]
    listed, shown, checked, ran, swept, differentiated, optimized, reported, again, unknown = data
    assert "bouncing_ball" in {each["name"] for each in listed["scenarios"]}
    assert shown["value"]["unit"] == "m"
    assert any("mas" in mistake["key"] for mistake in checked["mistakes"]) and results[2].is_error
    assert ran["status"] == "ok" and ran["directory"] == "ball"
    assert swept["members"] == 4 and len(swept["objectives"]["miss"]) == 2
    assert {row["verdict"] for row in differentiated["wrt"].values()} == {"agrees"}
    assert optimized["best_loss"] <= optimized["loss"][0]
    assert (folder / reported["report"]).read_text().startswith("<!doctype html>")
    assert "overwrite" in again["error"]["message"] and again["exit_code"] == 2
    assert unknown["error"]["did_you_mean"] == "bouncing_ball" and unknown["exit_code"] == 2
    assert told[0][0] == 0 and any("compiling" in words for _, words in told)
    assert {path.name for path in folder.iterdir()} == {"scenarios", "ball", "balls", "best"}
    assert set(tmp_path.iterdir()) == {folder}


def test_work_that_takes_too_long_is_stopped_and_said_so(tmp_path):
    words = {"name": "long", "scenario": "turbulent_channel"}
    _, (result,), _ = called(tmp_path, ("run", words), limits=Limits(seconds=4))
    error = result.structured_content["error"]
    assert result.is_error and error["code"] == "terminated" and "stopped after 4 s" in error["message"]
    assert result.structured_content["exit_code"] == 143


def test_the_command_serves_over_standard_input_and_output(tmp_path):
    words = ["-P", "-m", "simkit.cli.main", "mcp", "--output", str(tmp_path / "agent")]

    async def talk():
        parameters = mcp.StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with mcp.Client(parameters) as client:
            return await client.call_tool("show", {"scenario": "bouncing_ball"})

    result = anyio.run(talk)
    assert json.loads(result.content[0].text)["domain"] == "rigid"


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--output", "/dev/null/x"]])
def test_a_server_that_cannot_work_is_refused_in_one_line(words, capsys):
    from simkit.cli.main import main

    assert main(["mcp", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
