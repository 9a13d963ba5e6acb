"""Tools of a Model Context Protocol server: verbs, each in a process of its own, with bounds on files and work."""

import dataclasses
import functools
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from simkit import __version__
from simkit.cli.main import FAILED, TERMINATED, WRONG_INPUT
from simkit.cli.progress import AS_JSON
from simkit.core.arguments import check_number
from simkit.errors import UserError, one_line
from simkit.scenario.catalog import find_scenario

# Seconds in which a process that is stopped stores what it has.
GRACE = 20.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_WORD = re.compile(r"[A-Za-z0-9_.]{1,200}")
INSTRUCTIONS = """\
Differentiable physics: scenarios of molecules, flow and rigid bodies by name. Begin with `list` and `show`; `check` a
text of your own before it runs. `run`, `sweep`, `grad` and `optimize` compute, and store under the name that you give;
`report` writes a page about what is stored. Settings are parameters, `config.KEY` and keys of a run such as steps, by
name, as `show` lists them. A mistake is returned as data: `error` with code, key, allowed values and remedy.
"""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on the work of one call.

    Attributes:
        seconds: wall-clock time, after which a process is stopped; it stores what it has.
        steps: of a run.
        members: points and seeds of a sweep, seeds of a derivative, starts and iterations of an optimization.
    """

    seconds: float = 300.0
    steps: int = 100_000
    members: int = 256

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        for name, value in vars(self).items():
            check_number(f"--{name}", value)

    def check(self, what: str, value: int, limit: int) -> None:
        """Refuse more work than is allowed.

        Raises:
            UserError: with the limit as data.
        """
        if value > limit:
            raise UserError(
                f"{what} = {value} is above the limit of this server, {limit}", key=what, allowed=(1, limit)
            )


class Sandbox:
    """The one folder that tools write to.

    Args:
        root: the folder, which is made.
    """

    def __init__(self, root: Path) -> None:
        """Make the folder."""
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()

    def run(self, name: str) -> str:
        """Return the name of a run within the folder.

        Raises:
            UserError: if it is no plain name, or leads through a link.
        """
        if not _NAME.fullmatch(name):
            problem = "letters, digits, '_', '-' and '.', at most 64, no folder"
            raise UserError(f"name = {one_line(name, 40)!r} is not the name of a run; use {problem}", key="name")
        folder = self.root / name
        if any(path.is_symlink() for path in (folder, *folder.rglob("*"))):
            raise UserError(f"name = '{name}' is or holds a link, which is not followed; use another name", key="name")
        return name

    def scenario(self, name: str, toml: str) -> str:
        """Return the word that names a scenario: its name, or the file to which its text is written.

        Raises:
            UserError: unless one of both is given, or if the name is a path.
        """
        if bool(name) == bool(toml):
            raise UserError("give the name of a scenario, or the text of a file as toml", key="scenario")
        if name:
            return word("scenario", name)
        folder = self.root / "scenarios"
        folder.mkdir(exist_ok=True)
        file = folder / f"{hashlib.sha256(toml.encode()).hexdigest()[:16]}.toml"
        if folder.is_symlink() or file.is_symlink():
            raise UserError(f"{file} is a link, which is not followed; remove it", key="toml")
        file.write_text(toml, encoding="utf-8")
        return str(file.relative_to(self.root))


def word(key: str, text: str) -> str:
    """Return a name of a scenario, a parameter or an objective, which is no path and no option.

    Raises:
        UserError: if it is something else.
    """
    if not _WORD.fullmatch(text) or text.endswith(".toml"):
        raise UserError(f"{key} = {one_line(text, 40)!r} is not a name; paths are not allowed here", key=key)
    return text


def settings_of(values: Mapping[str, Any]) -> list[str]:
    """Return the options that set values.

    Raises:
        UserError: if a value names a file, or a key is not a name.
    """
    return [f"--set={word('settings', key)}={_toml(value, key)}" for key, value in values.items()]


def _toml(value: Any, key: str) -> str:
    if isinstance(value, Mapping):
        if {"file", "run"} & value.keys():
            raise UserError(f"{key} names a file, and files are not read here; give values", key=key)
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(each, key)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each, key) for each in value) + "]"
    if value is None:
        raise UserError(f"{key} is null; leave it out", key=key)
    return json.dumps(value)


def steps_of(scenario: str, sandbox: Sandbox, settings: Mapping[str, Any]) -> int:
    """Return the number of steps of a run with settings."""
    path = sandbox.root / scenario if scenario.endswith(".toml") else scenario
    given = [value for key, value in settings.items() if key.removeprefix("run.") == "steps"]
    return next((int(value) for value in given if isinstance(value, int | float)), find_scenario(path).run.steps)


class Caller:
    """Runs verbs in processes, one after another, and returns their JSON.

    Args:
        sandbox: their working folder.
        limits: bounds on their work.
    """

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        """Store the arguments."""
        self.sandbox, self.limits = sandbox, limits
        self._turn = anyio.Lock()

    async def __call__(self, context: Context, words: Iterable[str]) -> CallToolResult:
        """Return what a verb prints, or its error; progress goes to the client."""
        command = [sys.executable, "-P", "-m", "simkit.cli.main", *words, "--json"]
        environment = os.environ | {AS_JSON: "json", "NO_COLOR": "1"}
        printed, told = bytearray(), list[str]()
        async with self._turn:
            process = await anyio.open_process(command, stdin=DEVNULL, cwd=self.sandbox.root, env=environment)

            async def read() -> None:
                assert process.stdout
                async for part in process.stdout:
                    printed.extend(part)

            async def follow() -> None:
                assert process.stderr
                rest = b""
                async for part in process.stderr:
                    *lines, rest = (rest + part).split(b"\n")
                    for line in lines:
                        await self._tell(context, line.decode(errors="replace"), told)

            is_late = True
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read)
                    tasks.start_soon(follow)
                    with anyio.move_on_after(self.limits.seconds):
                        await process.wait()
                        is_late = False
                    if is_late:
                        process.terminate()
                        with anyio.move_on_after(GRACE):
                            await process.wait()
                        if process.returncode is None:
                            process.kill()
            finally:
                if process.returncode is None:  # the client has cancelled the call
                    process.terminate()
                    with anyio.CancelScope(shield=True), anyio.move_on_after(GRACE):
                        await process.wait()
                await process.aclose()
        return self._result(bytes(printed), told, is_late, process.returncode or 0)

    @staticmethod
    async def _tell(context: Context, line: str, told: list[str]) -> None:
        """Send a line of progress to the client, or keep a warning or error."""
        if line.startswith("{"):
            progress = json.loads(line)
            await context.report_progress(progress["fraction"], 1.0, progress["words"])
        elif line:
            told.append(line)

    def _result(self, printed: bytes, told: list[str], is_late: bool, code: int) -> CallToolResult:
        try:
            data = json.loads(printed)
        except ValueError:
            data = failure(UserError(told[-1] if told else "the process ended without a result"), code or FAILED)
        if is_late:
            reason = f"stopped after {self.limits.seconds:g} s, the limit of this server; make the work smaller"
            data = failure(UserError(reason, key="seconds"), TERMINATED, "terminated")
        warnings = [line.partition("warning: ")[2] for line in told if "warning: " in line]
        return answer(data | ({"warnings": warnings} if warnings else {}), is_error="error" in data or code != 0)


def failure(error: UserError, code: int, kind: str = "") -> dict[str, Any]:
    """Return an error as data, as verbs print it."""
    return {"error": error.as_data | ({"code": kind} if kind else {}), "exit_code": code}


def answer(data: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    """Return the result of a tool, as data and as text."""
    text = TextContent(type="text", text=json.dumps(data))
    return CallToolResult(content=[text], structured_content=data, is_error=is_error)


class Server(MCPServer):
    """A server that tells a wrong argument in one line, as data."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context | None = None) -> Any:
        """Call a tool."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.__cause__.errors()]
            words = "; ".join(f"{key}: {message}" for key, message in wrong)
            return answer(failure(UserError(f"{name}: {one_line(words)}", key=wrong[0][0]), WRONG_INPUT), is_error=True)


def server(output: Path, limits: Limits) -> MCPServer:
    """Return the server.

    Args:
        output: the one folder that tools write to.
        limits: bounds on the work of a call.
    """
    sandbox = Sandbox(output)
    call = Caller(sandbox, limits)
    made = Server("simkit", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    def tool(function: Any) -> Any:
        """Register a tool, whose mistakes of the caller are returned as data."""

        @made.tool(name=function.__name__.rstrip("_"))
        @functools.wraps(function)
        async def guarded(*arguments: Any, **keywords: Any) -> CallToolResult:
            try:
                return await function(*arguments, **keywords)
            except UserError as error:
                return answer(failure(error, WRONG_INPUT), is_error=True)

        return guarded

    def begun(name: str, toml: str, settings: Mapping[str, Any] | None) -> list[str]:
        """Return the words for a scenario with settings, within the bounds."""
        chosen = sandbox.scenario(name, toml)
        limits.check("steps", steps_of(chosen, sandbox, settings or {}), limits.steps)
        return [chosen, *settings_of(settings or {})]

    def stored(name: str, *, overwrite: bool) -> list[str]:
        return [f"--output={sandbox.run(name)}", *(["--overwrite"] if overwrite else [])]

    @tool
    async def list_(context: Context, tag: str = "") -> CallToolResult:
        """List scenarios with domain and summary; of one tag, such as flow, molecular, rigid or validation."""
        return await call(context, ["list", *([f"--tag={word('tag', tag)}"] if tag else [])])

    @tool
    async def show(context: Context, scenario: str, part: str = "", quantities: bool = False) -> CallToolResult:
        """Show a scenario or a simulation: parameters with units and bounds, configuration, objectives, numbers.

        `part` is a dotted path such as config.start or params.mass; `quantities` adds observed arrays and diagnostics.
        """
        words = ["show", word("scenario", scenario), *([word("part", part)] if part else [])]
        return await call(context, [*words, *(["--quantities"] if quantities else [])])

    @tool
    async def check(
        context: Context, toml: str = "", scenario: str = "", settings: dict[str, Any] | None = None
    ) -> CallToolResult:
        """List all mistakes in the text of a scenario file (toml), or in a named scenario with settings."""
        return await call(context, ["check", sandbox.scenario(scenario, toml), *settings_of(settings or {})])

    @tool
    async def run(
        context: Context,
        name: str,
        scenario: str = "",
        toml: str = "",
        settings: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> CallToolResult:
        """Run a scenario and store it under `name`; returns status and diagnostics at the end. `report` draws it."""
        words = ["run", *begun(scenario, toml, settings), "--no-render"]
        return await call(context, [*words, *stored(name, overwrite=overwrite)])

    @tool
    async def sweep(
        context: Context,
        name: str,
        over: dict[str, Any],
        scenario: str = "",
        toml: str = "",
        settings: dict[str, Any] | None = None,
        seeds: int = 1,
        overwrite: bool = False,
    ) -> CallToolResult:
        """Run a scenario over lists of parameter values (`over`: a grid) and seeds; returns objectives and numbers."""
        lists = {word("over", key): values for key, values in over.items()}
        for key, values in lists.items():
            if not isinstance(values, list) or not values:
                raise UserError(f"over.{key} is no list of values; give one", key=f"over.{key}")
        limits.check("members", math.prod([seeds, *map(len, lists.values())]), limits.members)
        ranges = [f"--over={key}={','.join(_toml(each, key) for each in values)}" for key, values in lists.items()]
        words = ["sweep", *begun(scenario, toml, settings), *ranges, f"--seeds={seeds}", "--no-render", "--no-frames"]
        return await call(context, [*words, *stored(name, overwrite=overwrite)])

    @tool
    async def grad(
        context: Context,
        wrt: str,
        scenario: str = "",
        toml: str = "",
        objective: str = "",
        settings: dict[str, Any] | None = None,
        check: bool = False,
        name: str = "",
        overwrite: bool = False,
    ) -> CallToolResult:
        """Differentiate an objective by parameters (`wrt`: names with commas between).

        `check` compares with central differences; `name` stores the derivative, which `report` then shows.
        """
        names = ",".join(word("wrt", each.strip()) for each in wrt.split(","))
        words = ["grad", *begun(scenario, toml, settings), f"--wrt={names}", *(["--check"] if check else [])]
        words += [f"--objective={word('objective', objective)}"] if objective else []
        return await call(context, [*words, *(stored(name, overwrite=overwrite) if name else [])])

    @tool
    async def optimize(
        context: Context,
        name: str,
        wrt: str,
        scenario: str = "",
        toml: str = "",
        objective: str = "",
        settings: dict[str, Any] | None = None,
        iterations: int = 50,
        starts: int = 0,
        overwrite: bool = False,
    ) -> CallToolResult:
        """Minimize (or maximize, if that is its goal) an objective over parameters within their bounds."""
        limits.check("iterations", iterations, limits.members)
        limits.check("starts", starts, limits.members)
        names = ",".join(word("wrt", each.strip()) for each in wrt.split(","))
        words = ["optimize", *begun(scenario, toml, settings), f"--wrt={names}", f"--iterations={iterations}"]
        words += [f"--objective={word('objective', objective)}"] if objective else []
        words += [f"--starts={starts}"] if starts else []
        return await call(context, [*words, "--no-render", *stored(name, overwrite=overwrite)])

    @tool
    async def report(context: Context, name: str) -> CallToolResult:
        """Write an HTML page about what is stored under `name`: film, charts, parameters; returns its file."""
        return await call(context, ["report", sandbox.run(name)])

    return made
