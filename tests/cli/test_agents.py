"""The server of tools for agents: what it offers, its bounds on files and work, and mistakes as data."""

import json

import anyio
import pytest

mcp = pytest.importorskip("mcp")

from simkit.cli.agents import Limits, Sandbox, server, settings_of  # noqa: E402
from simkit.errors import UserError  # noqa: E402

TOOLS = {"list", "show", "check", "run", "sweep", "grad", "optimize", "report"}


def called(folder, *calls, limits=Limits(steps=5000, members=8)):  # noqa: B008
    """Return the tools and the results of calls ``(name, arguments)``, and what was told of their progress."""
    told = []

    async def told_of(progress, total, message):
        told.append((progress, message))

    async def talk():
        async with mcp.Client(server(folder, limits), mode="legacy") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            results = [await client.call_tool(name, words, progress_callback=told_of) for name, words in calls]
            return tools, results

    return *anyio.run(talk), told


REFUSED = {
    "a path": ("run", {"name": "a", "scenario": "../x.toml"}, "paths are not allowed"),
    "an option": ("run", {"name": "a", "scenario": "--help"}, "paths are not allowed"),
    "an output elsewhere": ("run", {"name": "../a", "scenario": "projectile"}, "is not the name of a run"),
    "a hidden output": ("report", {"name": ".ssh"}, "is not the name of a run"),
    "a link": ("report", {"name": "link"}, "is or holds a link"),
    "a file": (
        "run",
        {"name": "a", "scenario": "silicon", "settings": {"config.start": {"file": "/etc/passwd"}}},
        "files are not read here",
    ),
    "a run elsewhere": (
        "run",
        {"name": "a", "scenario": "silicon", "settings": {"config.start": {"x": [{"run": "/runs"}]}}},
        "files are not read here",
    ),
    "steps": ("run", {"name": "a", "scenario": "projectile", "settings": {"steps": 5001}}, "steps = 5001 is above"),
    "steps of a text": ("run", {"name": "a", "toml": 'name = "x"'}, "simulation"),
    "nothing": ("check", {}, "give the name of a scenario, or the text"),
    "members": (
        "sweep",
        {"name": "a", "scenario": "projectile", "over": {"mass": [1, 2, 3]}, "seeds": 3},
        "members = 9 is above the limit",
    ),
    "no name": ("run", {"scenario": "projectile"}, "run: name: Field required"),
    "a number in words": (
        "sweep",
        {"name": "a", "scenario": "projectile", "over": {"mass": [1]}, "seeds": "many"},
        "sweep: seeds: Input should be a valid integer",
    ),
    "iterations": (
        "optimize",
        {"name": "a", "scenario": "projectile", "wrt": "mass", "iterations": 9},
        "iterations = 9 is above the limit",
    ),
}


def test_tools_refuse_other_files_and_more_work_than_allowed_as_data(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    tools, results, _ = called(folder, *((name, words) for name, words, _ in REFUSED.values()))
    assert set(tools) == TOOLS and all(tool.description for tool in tools.values())
    for name, result in zip(REFUSED, results, strict=True):
        assert result.is_error and REFUSED[name][2] in result.structured_content["error"]["message"], name
        assert json.loads(result.content[0].text) == result.structured_content
    steps = results[list(REFUSED).index("steps")].structured_content
    assert steps["error"]["code"] == "out_of_range" and steps["error"]["allowed"] == [1, 5000]
    assert steps["exit_code"] == 2
    assert {path.name for path in tmp_path.rglob("*") if not path.is_symlink()} <= {"agent", "link", "scenarios"} | {
        path.name for path in (folder / "scenarios").iterdir()
    }


def test_a_text_is_no_option_and_no_path_of_a_file():
    assert settings_of({"run.stop": "time > 1", "config.a": {"b": [1, True, "@x"]}}) == [
        '--set=run.stop="time > 1"',
        '--set=config.a={ "b" = [1, true, "@x"] }',
    ]
    with pytest.raises(UserError, match="is not a name"):
        settings_of({"a=b": 1})


def test_limits_that_allow_nothing_are_refused(tmp_path):
    with pytest.raises(UserError, match="--seconds = 0 is not positive"):
        Limits(seconds=0)
    assert Sandbox(tmp_path / "a" / "b").root.is_dir()
