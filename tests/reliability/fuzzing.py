"""Random wrong input of the command line: texts, tables, models, structures, expressions and words, by kind."""

import copy
import dataclasses
import functools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.reliability.mutations import NUMBERS, WORDS, Moments, as_bytes, changed_tree, mutated, to_toml
from tests.reliability.samples import ARTICULATED, LINES, MOLECULES, OPTIONS, PENDULUM, POINTS, QUICK, SHIPPED, XYZ

SETTABLE = ("projectile", "bouncing_ball", "channel_flow", "lennard_jones_cluster")

type Command = list[str] | Callable[[], int]
"""Words of a command line, or a function that reads input as the command line does and returns an exit code."""
type Input = Callable[[Moments, Path], Command]
"""Generator of a command; it may write files into the folder, the current one of the command."""


def scenario_text(moments: Moments, names: list[str], in_tree: float = 0.6, weight: float = 0.5) -> bytes:
    """Return a shipped scenario with mistakes: in its tree, a share of them in ``[config]``, or in its text."""
    name, another = moments.choice(names), moments.choice(list(SHIPPED))
    if moments.random() < in_tree:
        return to_toml(changed_tree(moments, _tree(name), _tree(another), weight)).encode("utf-8", "surrogatepass")
    text, other = SHIPPED[name], SHIPPED[another]
    words = ["[params]", "[config]", "steps", "default", "= {", "\n[[validation]]\n"]
    words += ["cells = 1000000000", "expression"]
    return as_bytes(moments, mutated(moments, text, words, (other, text)))


@functools.cache
def _tree(name: str) -> dict[str, Any]:
    return tomllib.loads(SHIPPED[name])


def expression_text(moments: Moments) -> str:
    """Return an expression: random, or of a shipped scenario, with mistakes."""
    if moments.random() < 0.5:
        return _random_expression(moments, moments.choice([1, 2, 3, 4, 6]))
    shipped = re.findall(r'expression = "([^"]+)"', "".join(SHIPPED.values()))
    text = moments.choice(shipped) if moments.random() < 0.4 else _random_expression(moments, 3)
    words = [*"uvpxy", "time", "time_integral(", "at(", "axis=", "after=", "final(", "**", "//", "and", "not", "lambda"]
    return mutated(
        moments, text, [*words, "[0]", "[99]", "[-1]", "[:]", ":=", "@", "`", ".__class__", "''"], tuple(shipped)
    )


def _random_expression(moments: Moments, depth: int) -> str:
    from simkit.core.expressions.syntax import FUNCTIONS

    def inner() -> str:
        return _random_expression(moments, depth - 1)

    if depth <= 0 or moments.random() < 0.1:
        names = [*"uvp", "time", *"xyz", "speed", "speed.x", "flag", "n", "pi", "e", "u[0]", "u[0, 1]", "v[7]"]
        return moments.choice([*names, *NUMBERS[:12], "1e155", "700", "0.0"])
    match moments.randrange(8):
        case 0 | 1:
            return (
                f"({inner()} {moments.choice(['+', '-', '*', '/', '**', *['//', '%', '@'] * (depth == 6)])} {inner()})"
            )
        case 2:
            return f"({inner()})**{moments.choice(['2', '-1', '0.5', '64', '1000', inner()])}"
        case 3:
            comparison = moments.choice(["<", "<=", "==", "!=", "<", ">", "is"])
            return f"where({inner()} {comparison} {inner()}, {inner()}, {inner()})"
        case 4:
            return f"-{inner()}"
        case _:
            name = moments.choice(list(FUNCTIONS))
            function = FUNCTIONS[name]
            count = moments.choice([function.least, function.least, function.most, 0, 2])
            options = [
                f"{key}={moments.choice(['"x"', '"y"', '"frame"', inner()]) if key == 'axis' else inner()}"
                for key in function.keywords
                if moments.random() < 0.6
            ]
            return f"{name}({', '.join([inner() for _ in range(count)] + options)})"


def _file(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return f"./{name}"


def scenario_read(moments: Moments, folder: Path) -> Command:
    """Return the reading of a scenario file, without building its simulation."""
    from simkit.scenario.catalog import read_scenario

    file = _file(folder, "mine.toml", scenario_text(moments, list(SHIPPED)))
    return lambda: bool(read_scenario(file)) and 0


def scenario_checked(moments: Moments, folder: Path) -> Command:
    """Return ``check`` of a scenario file, which builds its simulation."""
    return ["check", _file(folder, "mine.toml", scenario_text(moments, QUICK, 0.9, 0.8))]


def setting(moments: Moments, folder: Path) -> Command:
    """Return a change of a value of a shipped scenario."""
    from simkit.scenario.overrides import apply_overrides

    name = moments.choice(SETTABLE)
    known = re.findall(r"^(?:\[params\.)?([a-z_]+)", SHIPPED[name], re.MULTILINE)
    key = moments.choice([*known, "config.cells", "run.steps", "run.stop", "config.cells.0", "seed", "render.view"])
    value = moments.choice([*NUMBERS, *WORDS, "2*pi/3", "e/a.xyz", "[1, 2]", "{a = 1}", "1979-05-27", "pi*", "inf+"])
    text = f"{key}={expression_text(moments) if moments.random() < 0.2 else value}"
    text = mutated(moments, text, [".0", "params.", "config.", "=="]) if moments.random() < 0.5 else text
    if moments.random() < 0.03:
        return ["show", name, "--set", text]
    return lambda: bool(apply_overrides(_shipped(name), [text])) and 0


@functools.cache
def _shipped(name: str) -> Any:
    from simkit.scenario.catalog import find_scenario

    return find_scenario(name)


def table(moments: Moments, folder: Path) -> Command:
    """Return the reading of a table of members, CSV or Parquet."""
    from simkit.jobs.points import tabulated

    name = f"points.{moments.choice(['csv', 'csv', 'csv', 'parquet', 'CSV', 'txt'])}"
    content = as_bytes(moments, mutated(moments, POINTS, [",", "\n", '"', "seed", "gravity", ",,", "\r", ";"]))
    if name == "points.parquet" and moments.random() < 0.8:
        content = _parquet(moments)
    file = _file(folder, name, content)
    if moments.random() < 0.02:
        return ["sweep", "projectile", "--table", file, "--chunk", "1", "--dry-run"]
    return lambda: bool(tabulated(_shipped("projectile"), file)) and 0


def _parquet(moments: Moments) -> bytes:
    import io

    import pyarrow
    import pyarrow.parquet

    columns: list[Any] = [[1.0, 2.0], [1, 2], ["a", "b"], [None, 1.0], [b"a", b"b"], [True, False], [[1], [2]]]
    columns.append([{"a": 1}] * 2)
    names = moments.sample(["launch_speed", "gravity", "drag", "seed", "\x00", "a" * 300], moments.choice([0, 1, 1, 2]))
    length = moments.choice([0, 1, 2])
    data = {name: moments.choice(columns)[:length] for name in names}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(data), file)
    content = bytearray(file.getvalue())
    for _ in range(moments.choice([0, 1, 3, 20])):
        content[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
    return bytes(content)


def structure(moments: Moments, folder: Path) -> Command:
    """Return the reading of a file of atoms."""
    from simkit.molecular.structures.extended_xyz import parse_extended_xyz
    from simkit.scenario.files import read_text

    words = ["Lattice=", "pbc=", "Properties=", ":S:1", ":R:3", "{", "[[1,2],[3,4]]", "=", "move_mask", "forces", "1e5"]
    file = _file(folder, "start.xyz", as_bytes(moments, mutated(moments, XYZ, words, (XYZ,))))
    if moments.random() < 0.01:
        return ["check", _file(folder, "mine.toml", MOLECULES.encode())]
    return lambda: bool(parse_extended_xyz(read_text(file, "start"))) and 0


def model(moments: Moments, folder: Path) -> Command:
    """Return the reading of a model in MJCF."""
    from simkit.rigid.models.mjcf import from_text
    from simkit.scenario.files import read_text

    words = ['<replicate count="1000">', "</body>", "<include/>", "<!--", "&#0;", "&lt;", "<composite/>", 'file="a"']
    words += ["muscle", "<freejoint/>", "ball", "hfield", 'mesh="a"', "NaN", "cylinder", "ellipsoid", 'name="']
    words += ["<mujoco>", "childclass"]
    text = mutated(moments, PENDULUM, words, (PENDULUM,)) if moments.random() < 0.3 else _changed_model(moments)
    file = _file(
        folder, "model.xml", as_bytes(moments, text) if moments.random() < 0.3 else text.encode("utf-8", "replace")
    )
    engine = moments.choice(["mujoco", "mujoco", "mujoco", "mjx", "brax-spring", "brax-generalized", "brax-positional"])
    if moments.random() < 0.03:
        return ["check", _file(folder, "mine.toml", ARTICULATED.replace("mujoco", engine).encode())]
    return lambda: bool(from_text(model=read_text(file, "model"), engine=engine)) and 0


def _changed_model(moments: Moments) -> str:
    """Return a model with attributes changed or of other elements, and elements removed, repeated or moved."""
    root = ElementTree.fromstring(PENDULUM)
    for _ in range(moments.choice([1, 1, 2, 4])):
        elements = list(root.iter())
        one, other = moments.choice(elements[1:]), moments.choice(elements)
        match moments.randrange(6):
            case 0 | 1 if one.attrib:
                key = moments.choice(list(one.attrib))
                words = [*NUMBERS, *WORDS[:6], "0 0 0", "1 2 3 4 5 6 7", "nan nan nan", "rod", "mesh", "cylinder"]
                words += ["ball", "-1 0 0"]
                one.set(key, moments.choice([*words, mutated(moments, one.attrib[key], words)]))
            case 2:
                one.attrib.update(other.attrib)
            case 3:
                one.tag = moments.choice([other.tag, "composite", "replicate", "flexcomp", "frame", "tendon"])
            case 4:
                other.append(copy.deepcopy(one))
            case _:
                next(parent for parent in elements if one in list(parent)).remove(one)
    return ElementTree.tostring(root, encoding="unicode")


def expression(moments: Moments, folder: Path) -> Command:
    """Return the reading of an expression, and its evaluation on arrays with axes of a field and of frames."""
    import jax

    from simkit.core.expressions.evaluation import expression as read

    text, is_condition = expression_text(moments), moments.random() < 0.1
    values = _values(moments.random() < 0.7)

    known = values if moments.random() < 0.9 else None

    def evaluated() -> int:
        found = read(text, "mine.toml: quantities.a.expression", known, is_condition=is_condition)
        arrays = {name: value.array for name, value in values.items() if name not in ("x", "y")}

        def traced(arrays: dict[str, Any]) -> Any:
            given = {name: dataclasses.replace(values[name], array=array) for name, array in arrays.items()}
            return found(values | given).array

        jax.eval_shape(traced, arrays)
        return 0

    return evaluated


@functools.cache
def _values(over_frames: bool) -> dict[str, Any]:
    """Return named arrays: fields of 4 x 3 cells and numbers, in 5 frames or one."""
    import jax.numpy as jnp
    import numpy as np

    from simkit.core.expressions.evaluation import FRAME, Named, SpatialAxis, UnnamedAxis

    x, y = SpatialAxis("x", np.arange(4.0), np.array([1.0, 1.0, 2.0, 2.0])), SpatialAxis("y", np.arange(3.0))
    axes, shape = ((FRAME,), (5,)) if over_frames else ((), ())
    field, line = jnp.arange(60.0).reshape(5, 4, 3), jnp.linspace(-1.0, 1.0, 20).reshape(5, 4)
    rows = jnp.ones((5, 7), jnp.int32)
    own = slice(None) if over_frames else 0
    return {
        "u": Named(field[own], (*axes, x, y)),
        "v": Named(line[own], (*axes, x)),
        "p": Named(rows[own], (*axes, UnnamedAxis("p_0"))),
        "n": Named(rows[own][..., 0], axes),
        "flag": Named(line[own] > 0, (*axes, x)),
        "speed": Named(jnp.ones(shape), axes),
        "speed.x": Named(jnp.asarray(0.5), ()),
        "time": Named(jnp.linspace(0.0, 1.0, 5)[own], axes),
        "x": Named(jnp.arange(4.0), (x,)),
        "y": Named(jnp.arange(3.0), (y,)),
    }


def command_line(moments: Moments, folder: Path) -> Command:
    """Return a command line with words removed, repeated, swapped, replaced or mutated."""
    _file(folder, "points.csv", POINTS.encode())
    if moments.random() < 0.3:
        (folder / "out").mkdir()
        _file(folder / "out", "manifest.json", as_bytes(moments, moments.choice(["{}", "[]", '{"format": 1}', "nul"])))
    words = moments.choice(LINES).split()
    for _ in range(moments.choice([1, 1, 2, 3])):
        here, there = moments.randrange(len(words)), moments.randrange(len(words))
        match moments.randrange(7):
            case 0:
                del words[here]
            case 1:
                words.insert(here, words[there])
            case 2:
                words[here], words[there] = words[there], words[here]
            case 3:
                words[here] = mutated(moments, words[here], list(SHIPPED))
            case 4:
                words[here] = moments.choice([*WORDS, *NUMBERS, *SHIPPED, "mine.toml", "out", "points.csv"])
            case 5:
                words.insert(here, moments.choice(OPTIONS))
            case _:
                words[here:here] = [moments.choice(OPTIONS), moments.choice([*WORDS, *NUMBERS])]
        if not words:
            return [moments.choice(WORDS)]
    return words


KINDS: dict[str, Input] = {
    "command lines": command_line,
    "settings": setting,
    "scenario files read": scenario_read,
    "scenario files built": scenario_checked,
    "expressions": expression,
    "tables": table,
    "structures": structure,
    "models": model,
}
