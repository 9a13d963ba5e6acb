"""Syntax of expressions: names, usage, and the parser, with one-line errors that mark the column."""

import ast
import dataclasses
import math
import re
import sys
import warnings
from collections.abc import Collection
from typing import Any, NoReturn

from simkit.errors import Hint, Remedy, UserError, nearest, one_line

# Names of functions elsewhere, and here.
OTHER_NAMES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
CONSTANTS = {"pi": math.pi, "e": math.e}


@dataclasses.dataclass(frozen=True)
class Function:
    """Signature of a function of expressions.

    Attributes:
        usage: an example of a call.
        doc: its result in a few words.
        least: smallest number of arguments.
        most: largest number of arguments.
        keywords: names of its options.
        over_frames: whether it reduces the frames of a run to one.
        by_axis: whether its options are coordinates by name of their axis.
        needs_axis: whether the option ``axis`` is required.
    """

    usage: str
    doc: str
    least: int
    most: int
    keywords: tuple[str, ...]
    over_frames: bool = False
    by_axis: bool = False
    needs_axis: bool = False


def _functions(docs: dict[str, str], **flags: Any) -> dict[str, Function]:
    """Return functions by name from an example of a call of each, with all its arguments and options."""
    functions = {}
    for usage, doc in docs.items():
        match ast.parse(usage, mode="eval").body:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=options):
                keywords = tuple(str(option.arg) for option in options)
                functions[name] = Function(usage, doc, len(args), len(args), keywords, **flags)
    return functions


_EXTREME = {"least": 1, "most": 16, "keywords": ("axis",)}
FUNCTIONS = {
    **_functions(
        {
            "abs(x)": "absolute value",
            "sign(x)": "-1, 0 or 1",
            "sqrt(x)": "square root",
            "exp(x)": "exponential",
            "log(x)": "natural logarithm",
            "log10(x)": "decimal logarithm",
            "sin(x)": "sine, of radians",
            "cos(x)": "cosine, of radians",
            "tan(x)": "tangent, of radians",
            "asin(x)": "inverse sine",
            "acos(x)": "inverse cosine",
            "atan(x)": "inverse tangent",
            "sinh(x)": "hyperbolic sine",
            "cosh(x)": "hyperbolic cosine",
            "tanh(x)": "hyperbolic tangent",
            "erf(x)": "error function",
            "atan2(y, x)": "angle of the point (x, y)",
            "hypot(x, y)": "length of (x, y)",
            "clip(x, low, high)": "x, but at least low and at most high",
            "where(condition, one, other)": "one value where a comparison is true, else the other",
            "interp(y, inflow)": "value of a named table of numbers at a point",
            'mean(u, axis="x")': "mean of all numbers of a frame, or along one axis, weighted by the widths of unequal "
            "cells",
            'sum(u, axis="x")': "sum of all numbers of a frame, or along one axis",
            'rms(u, axis="x")': "square root of the mean of squares",
            'norm(u, axis="x")': "square root of the sum of squares",
            "parabola_min(u)": "minimum of a frame, by parabolas through its smallest number and the neighbors",
        }
    ),
    "max": Function("max(a, b) or max(u)", "the largest of several, or of a frame", **_EXTREME),
    "min": Function("min(a, b) or min(u)", "the smallest of several, or of a frame", **_EXTREME),
    **_functions(
        {
            "at(u, x=0.5)": "value of a field at coordinates along one axis or several, by linear interpolation",
            "cubic_at(u, x=0.5)": "the same by cubic interpolation through four points, more accurate for smooth "
            "fields",
        },
        by_axis=True,
    ),
    **_functions({'parabola_min_at(u, axis="x")': "coordinate of that minimum along an axis"}, needs_axis=True),
    **_functions(
        {
            "time_mean(x, after=20)": "mean over the frames at times of at least ``after``",
            "time_sum(x, after=20)": "sum over these frames",
            "time_rms(x, after=20)": "square root of the mean of the squares over these frames",
            "largest(x, after=20)": "largest value of these frames",
            "smallest(x, after=20)": "smallest value of these frames",
            "at_time(x, 20)": "value at a time, by cubics between the frames",
            "time_integral(x, after=20, before=60)": "integral over time, linear between the frames; by default from "
            "the first to the last",
            "final(x)": "value in the last frame",
            "first(x)": "value in the first frame",
        },
        over_frames=True,
    ),
}

# Begins the name of a table that the text of its formula does not name, see `readable`.
OWN_TABLE = "table__"
MAX_LENGTH, MAX_DEPTH, MAX_PARTS = 1000, 100, 400
# In place of a wrong formula or an unknown name, to look for further mistakes.
STAND_IN = "1"
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_COMPARISON = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


@dataclasses.dataclass(frozen=True)
class Syntax:
    """Syntax tree of a checked expression.

    Attributes:
        text: the text as written.
        tree: root node; numbers, names, operators, comparisons and calls of known functions only.
        names: names in it, in order of first appearance.
        over_frames: whether it reduces frames of a run to one number.
    """

    text: str
    tree: ast.expr
    names: tuple[str, ...]
    over_frames: bool


def parse(
    text: str,
    where: str,
    known: Collection[str] | None = None,
    *,
    is_condition: bool = False,
    of_frames: bool = True,
) -> Syntax:
    """Return the checked tree of an expression.

    Args:
        text: such as ``"4*epsilon*((sigma/r)**12 - (sigma/r)**6)"``; at most 1,000 characters.
        where: file and key, for messages.
        known: names that it may contain; ``None`` allows any.
        is_condition: whether it is a condition, true or false, instead of a number.
        of_frames: whether it may reduce the frames of a run.

    Raises:
        UserError: that marks the column, if it is not an expression, too long, too deep, or has an unknown name.
    """
    if len(text.splitlines()) > 1:
        lines = f"{len(text.splitlines())} lines of text, as of a file, where a formula stands"
        raise UserError(f"{where}: {lines}; a table of numbers also names its columns, x and y")
    if len(text) > MAX_LENGTH:
        raise UserError(f"{where}: an expression of {len(text)} characters; write at most {MAX_LENGTH}")
    if bad := next((column for column, letter in enumerate(text, 1) if not letter.isprintable()), 0):
        raise refusal(where, f"column {bad}: a character that cannot be printed; remove it")
    if not text.strip():
        raise UserError(f"{where}: an empty expression; write a number or a formula")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning about unusual code, such as ``1 is 1``
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = (getattr(error, "offset", None) or 1) + len(text) - len(text.lstrip())
        reason = one_line(getattr(error, "msg", "") or "it is nested too deeply")
        raise refusal(where, f"{_marked(text, column)}: not an expression ({reason}); repair it") from None
    return _Checker(text, where, known, of_frames).checked(tree, is_condition)


def dotted(node: ast.expr) -> str:
    """Return a name such as ``"speed"`` or ``"cylinder.drag"``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    before = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


def entries_of(node: ast.Subscript) -> tuple[int, ...]:
    """Return the indices in brackets after an array; empty if they are not all integers from 0."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    are_whole = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
    return tuple(numbers) if are_whole and len(numbers) == len(parts) else ()  # type: ignore[arg-type]


def refuse(text: str, where: str, node: ast.expr, *message: str) -> NoReturn:
    """Refuse a part of an expression, with its column marked; the message may be in parts, as for `UserError`.

    Raises:
        UserError: always.
    """
    column, part = _place(text, node)
    raise refusal(where, f"{_marked(text, column)}: '{part}' ", *message)


def _place(text: str, node: ast.expr) -> tuple[int, str]:
    """Return the column of a part of an expression, from 1, and its text."""
    code = text.strip()
    # Columns of ast count bytes of the stripped text.
    before = code.encode()[: node.col_offset].decode(errors="ignore")
    column = len(text) - len(text.lstrip()) + len(before) + 1
    return column, one_line(ast.get_source_segment(code, node) or "", 40)


def refusal(where: str, *problem: str, repaired: str = STAND_IN, unknown: str = "") -> UserError:
    """Return the refusal of an expression.

    Args:
        where: file and key.
        problem: message, with the marked column, in parts.
        repaired: expression that is right in this place.
        unknown: the unknown name in it, if that is the mistake.
    """
    remedy = Remedy("replace", repaired, of_formula=True, unknown=unknown)
    words = (part if isinstance(part, Hint) else readable(part) for part in problem)
    return UserError(f"{where}: ", *words, key=where.rpartition(": ")[2], remedy=remedy)


def readable(text: str) -> str:
    """Return a text with every `OWN_TABLE` called ``table``."""
    return re.sub(rf"\b{OWN_TABLE}\w*", "table", text)


def nameable(names: Collection[str]) -> list[str]:
    """Return, sorted, the names that a user may write."""
    return sorted(name for name in names if not name.startswith(OWN_TABLE))


class _Checker:
    def __init__(self, text: str, where: str, known: Collection[str] | None, of_frames: bool) -> None:
        self.text, self.where, self.known, self.of_frames = text, where, known, of_frames
        self.parts = 0
        self.names: dict[str, None] = {}
        self.over_frames = False

    def checked(self, tree: ast.expr, is_condition: bool) -> Syntax:
        (self.condition if is_condition else self.number)(tree, 0)
        return Syntax(self.text, tree, tuple(self.names), self.over_frames)

    def refuse(self, node: ast.expr, *message: str) -> NoReturn:
        refuse(self.text, self.where, node, *message)

    def is_condition(self, node: ast.expr, depth: int) -> bool:
        """Check a node and those below it; return whether it is a condition instead of a number."""
        self.parts += 1
        if depth > MAX_DEPTH or self.parts > MAX_PARTS:
            self.refuse(node, f"exceeds {MAX_DEPTH} levels or {MAX_PARTS} parts; write a shorter expression")
        problem = ""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if abs(value) > sys.float_info.max:
                    problem = "is too large for a floating-point number; write a smaller one"
            case ast.Constant():
                problem = "is not a number; write digits"
            case ast.Name() | ast.Attribute() if name := dotted(node):
                self.name(node, name)
            case ast.Subscript(value=array) if name := dotted(array):
                if entries_of(node):
                    self.name(array, name)
                else:
                    problem = "is no entry of an array; write whole numbers from 0, as in position[0, 2]"
            case ast.Subscript():
                problem = "takes an entry of a formula; give the formula a name as a quantity, and write name[0]"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self.number(operand, depth)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand, depth)
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ARITHMETIC):
                self.number(left, depth)
                self.number(right, depth)
            case ast.BinOp(op=ast.BitXor()):
                problem = "has ^, which is no power; write **"
            case ast.BoolOp(values=values):
                for value in values:
                    self.condition(value, depth)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(op, _COMPARISON) for op in ops):
                for part in (left, *others):
                    self.number(part, depth)
            case ast.Compare():
                problem = "is not a comparison of numbers; write <, <=, >, >=, == or !="
            case ast.IfExp():
                problem = "chooses by 'if'; write where(condition, one, other)"
            case ast.Call(func=ast.Name(id=name)):
                self.call(node, name, depth)
            case _:
                problem = "is not arithmetic; write numbers, names, entries of arrays, + - * / **, comparisons and "
                problem += "functions"
        if problem:
            self.refuse(node, problem)
        return isinstance(node, ast.BoolOp | ast.Compare) or isinstance(getattr(node, "op", None), ast.Not)

    def refuse_unknown(self, node: ast.expr, name: str, hint: Hint) -> NoReturn:
        column, part = _place(self.text, node)
        repaired = f"{self.text[: column - 1]}{hint.meant or STAND_IN}{self.text[column - 1 + len(name) :]}"
        problem = f"{_marked(self.text, column)}: '{part}' is not known here"
        raise refusal(self.where, problem, hint, repaired=repaired, unknown=name)

    def number(self, node: ast.expr, depth: int) -> None:
        if self.is_condition(node, depth + 1):
            self.refuse(node, "is a condition where a number is needed; write where(condition, 1, 0)")

    def condition(self, node: ast.expr, depth: int) -> None:
        if not self.is_condition(node, depth + 1):
            self.refuse(node, "is a number where a condition is needed; compare it with another")

    def name(self, node: ast.expr, name: str) -> None:
        if name in CONSTANTS and (self.known is None or name not in self.known):
            return
        if self.known is not None and name not in self.known:
            if name in FUNCTIONS:
                self.refuse(node, f"is a function; write {name}(...)")
            hint = nearest("time" if name == "t" and "time" in self.known else name, nameable(self.known))
            self.refuse_unknown(node, name, hint if self.known else Hint("; write a plain number, without names"))
        self.names[name] = None

    def call(self, node: ast.Call, name: str, depth: int) -> None:
        if name not in FUNCTIONS:
            known = sorted(name for name, each in FUNCTIONS.items() if self.of_frames or not each.over_frames)
            hint = nearest(OTHER_NAMES.get(name, name), known)
            self.refuse(node, f"calls '{name}', which is no function", hint)
        function = FUNCTIONS[name]
        self.over_frames |= function.over_frames
        if function.over_frames and not self.of_frames:
            self.refuse(node, "reduces frames, and here is the present one only; make it an objective")
        count = len(node.args)
        lacks_axis = (function.by_axis or function.needs_axis) and not node.keywords
        problem = f"needs {'a coordinate' if function.by_axis else 'an axis'}" if lacks_axis else ""
        if not function.least <= count <= function.most or any(isinstance(arg, ast.Starred) for arg in node.args):
            problem = f"has {count} argument{'s' * (count != 1)}"
        if problem:
            self.refuse(node, f"{problem}; write {function.usage}, {function.doc}")
        for keyword in node.keywords:
            self.keyword(node, function, keyword, depth)
        table = dotted(node.args[1]) if name == "interp" else ""
        if table and self.known is not None and table not in self.known:
            hint = Hint("; interp reads a table that has a name under 'tables'")
            self.refuse_unknown(node.args[1], table, hint)
        for number, argument in enumerate(node.args):
            (self.condition if name == "where" and number == 0 else self.number)(argument, depth)

    def keyword(self, node: ast.Call, function: Function, keyword: ast.keyword, depth: int) -> None:
        if keyword.arg is None or (keyword.arg not in function.keywords and not function.by_axis):
            hint = nearest(keyword.arg or "", function.keywords) if function.keywords else ""
            self.refuse(node, f"has no option '{keyword.arg}'", hint, f"; write {function.usage}")
        if sum(other.arg == keyword.arg for other in node.keywords) > 1:
            self.refuse(node, f"has the option '{keyword.arg}' twice; write it once")
        if function.by_axis:
            # The coordinates of the points are a value of the expression, by the name of their axis.
            if self.known is not None and keyword.arg not in self.known:
                hint = nearest(keyword.arg, sorted(self.known))
                self.refuse(node, f"names '{keyword.arg}', which is no axis with coordinates here", hint)
            self.names[keyword.arg] = None
        if keyword.arg == "axis":
            if not (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)):
                self.refuse(keyword.value, 'is no name of an axis; write axis="x"')
        else:
            self.number(keyword.value, depth)


def _marked(text: str, column: int) -> str:
    """Return the column number and the text around it, with a mark before the column."""
    before, after = text[: column - 1], text[column - 1 :]
    before = before if len(before) <= 30 else f"...{before[-27:]}"
    after = after if len(after) <= 30 else f"{after[:27]}..."
    return f"column {column} of '{before}>>>{after}'"
