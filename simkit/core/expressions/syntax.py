"""Syntax of expressions: names, usage, and the parser, with one-line errors that mark the column."""

import ast
import dataclasses
import math
import re
import warnings
from collections.abc import Collection
from typing import NoReturn

from simkit.errors import Remedy, UserError, closest, nearest, one_line

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
    least: int = 1
    most: int = 1
    keywords: tuple[str, ...] = ()
    over_frames: bool = False
    by_axis: bool = False
    needs_axis: bool = False


def _elementwise() -> dict[str, Function]:
    docs = {
        "abs": "absolute value",
        "sign": "-1, 0 or 1",
        "sqrt": "square root",
        "exp": "exponential",
        "log": "natural logarithm",
        "log10": "decimal logarithm",
        "sin": "sine, of radians",
        "cos": "cosine, of radians",
        "tan": "tangent, of radians",
        "asin": "inverse sine",
        "acos": "inverse cosine",
        "atan": "inverse tangent",
        "sinh": "hyperbolic sine",
        "cosh": "hyperbolic cosine",
        "tanh": "hyperbolic tangent",
        "erf": "error function",
    }
    return {name: Function(f"{name}(x)", doc) for name, doc in docs.items()}


def _over_space() -> dict[str, Function]:
    docs = {
        "mean": "mean of all numbers of a frame, or along one axis, weighted by the widths of unequal cells",
        "sum": "sum of all numbers of a frame, or along one axis",
        "rms": "square root of the mean of squares",
        "norm": "square root of the sum of squares",
    }
    return {name: Function(f'{name}(u, axis="x")', doc, keywords=("axis",)) for name, doc in docs.items()}


def _over_frames() -> dict[str, Function]:
    docs = {
        "time_mean": "mean over the frames at times of at least ``after``",
        "time_sum": "sum over these frames",
        "time_rms": "square root of the mean of the squares over these frames",
        "largest": "largest value of these frames",
        "smallest": "smallest value of these frames",
    }
    reductions = {
        name: Function(f"{name}(x, after=20)", doc, keywords=("after",), over_frames=True) for name, doc in docs.items()
    }
    ends = {
        "final": Function("final(x)", "value in the last frame", over_frames=True),
        "first": Function("first(x)", "value in the first frame", over_frames=True),
    }
    in_time = {
        "at_time": Function("at_time(x, 20)", "value at a time, by cubics between the frames", 2, 2, over_frames=True),
        "time_integral": Function(
            "time_integral(x, after=20, before=60)",
            "integral over time, linear between the frames; by default from the first to the last",
            keywords=("after", "before"),
            over_frames=True,
        ),
    }
    return reductions | in_time | ends


FUNCTIONS = {
    **_elementwise(),
    "atan2": Function("atan2(y, x)", "angle of the point (x, y)", 2, 2),
    "hypot": Function("hypot(x, y)", "length of (x, y)", 2, 2),
    "clip": Function("clip(x, low, high)", "x, but at least low and at most high", 3, 3),
    "where": Function("where(condition, one, other)", "one value where a comparison is true, else the other", 3, 3),
    "interp": Function("interp(y, inflow)", "value of a named table of numbers at a point", 2, 2),
    "max": Function("max(a, b) or max(u)", "the largest of several, or of a frame", 1, 16, ("axis",)),
    "min": Function("min(a, b) or min(u)", "the smallest of several, or of a frame", 1, 16, ("axis",)),
    **_over_space(),
    "at": Function(
        "at(u, x=0.5)",
        "value of a field at coordinates along one axis or several, by linear interpolation",
        keywords=("x", "y", "z"),
        by_axis=True,
    ),
    "cubic_at": Function(
        "cubic_at(u, x=0.5)",
        "the same by cubic interpolation through four points, more accurate for smooth fields",
        keywords=("x", "y", "z"),
        by_axis=True,
    ),
    "parabola_min": Function(
        "parabola_min(u)", "minimum of a frame, by parabolas through its smallest number and the neighbors"
    ),
    "parabola_min_at": Function(
        'parabola_min_at(u, axis="x")',
        "coordinate of that minimum along an axis",
        keywords=("axis",),
        needs_axis=True,
    ),
    **_over_frames(),
}

# Begins the name of a table that the text of its formula does not name, see `readable`.
OWN_TABLE = "table__"
MAX_LENGTH, MAX_DEPTH, MAX_PARTS = 1000, 100, 400
# In place of a wrong formula or an unknown name, to look for further mistakes.
STAND_IN = "1"
_NOT_ARITHMETIC = "is not arithmetic; write numbers, names, entries of arrays, + - * / **, comparisons and functions"
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


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
        of_frames: whether functions that reduce frames are suggested in place of unknown ones.

    Raises:
        UserError: that marks the column, if it is not an expression, too long, too deep, or has an unknown name.
    """
    if len(text) > MAX_LENGTH:
        raise UserError(f"{where}: an expression of {len(text)} characters; write at most {MAX_LENGTH}")
    if bad := next((column for column, letter in enumerate(text, 1) if not letter.isprintable()), 0):
        raise refusal(text, where, f"column {bad}: a character that cannot be printed; remove it")
    if not text.strip():
        raise UserError(f"{where}: an empty expression; write a number or a formula")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning about unusual code, such as ``1 is 1``
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = (getattr(error, "offset", None) or 1) + len(text) - len(text.lstrip())
        reason = one_line(getattr(error, "msg", "") or "it is nested too deeply")
        raise refusal(text, where, f"{_marked(text, column)}: not an expression ({reason}); repair it") from None
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


def refuse(text: str, where: str, node: ast.expr, message: str) -> NoReturn:
    """Refuse a part of an expression, with its column marked.

    Raises:
        UserError: always.
    """
    column, part = _place(text, node)
    raise refusal(text, where, f"{_marked(text, column)}: '{part}' {message}")


def _place(text: str, node: ast.expr) -> tuple[int, str]:
    """Return the column of a part of an expression, from 1, and its text."""
    code = text.strip()
    # Columns of ast count bytes of the stripped text.
    before = code.encode()[: node.col_offset].decode(errors="ignore")
    column = len(text) - len(text.lstrip()) + len(before) + 1
    return column, one_line(ast.get_source_segment(code, node) or "", 40)


def refusal(text: str, where: str, problem: str, repaired: str = STAND_IN, unknown: str = "") -> UserError:
    """Return the refusal of an expression.

    Args:
        text: of the expression.
        where: file and key.
        problem: message, with the marked column.
        repaired: expression that is right in this place.
        unknown: the unknown name in it, if that is the mistake.
    """
    remedy = Remedy("replace", repaired, of_formula=True, unknown=unknown)
    return UserError(f"{where}: {readable(problem)}", key=where.rpartition(": ")[2], remedy=remedy)


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

    def refuse(self, node: ast.expr, message: str) -> NoReturn:
        refuse(self.text, self.where, node, message)

    def is_condition(self, node: ast.expr, depth: int) -> bool:
        """Check a node and those below it; return whether it is a condition instead of a number."""
        self.parts += 1
        if depth > MAX_DEPTH or self.parts > MAX_PARTS:
            self.refuse(node, f"exceeds {MAX_DEPTH} levels or {MAX_PARTS} parts; write a shorter expression")
        match node:
            case ast.Constant(value=bool() | complex() | str() | bytes() | None):
                self.refuse(node, "is not a number; write digits")
            case ast.Constant(value=int() | float() as value):
                if not _finite(value):
                    self.refuse(node, "is too large for a floating-point number; write a smaller one")
            case ast.Name() | ast.Attribute():
                if not (name := dotted(node)):
                    self.refuse(node, _NOT_ARITHMETIC)
                self.name(node, name)
            case ast.Subscript(value=ast.Name() | ast.Attribute() as array):
                if not (name := dotted(array)):
                    self.refuse(node, _NOT_ARITHMETIC)
                if not entries_of(node):
                    self.refuse(node, "is no entry of an array; write whole numbers from 0, as in position[0, 2]")
                self.name(array, name)
            case ast.Subscript():
                remedy = "give the formula a name as a quantity, and write name[0]"
                self.refuse(node, f"takes an entry of a formula; {remedy}")
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                self.number(operand, depth)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand, depth)
                return True
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ARITHMETIC):
                self.number(left, depth)
                self.number(right, depth)
            case ast.BinOp(op=ast.BitXor()):
                self.refuse(node, "has ^, which is no power; write **")
            case ast.BoolOp(values=values):
                for value in values:
                    self.condition(value, depth)
                return True
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq) for op in ops):
                    self.refuse(node, "is not a comparison of numbers; write <, <=, >, >=, == or !=")
                for part in (left, *others):
                    self.number(part, depth)
                return True
            case ast.IfExp():
                self.refuse(node, "chooses by 'if'; write where(condition, one, other)")
            case ast.Call(func=ast.Name(id=name)):
                self.call(node, name, depth)
            case _:
                self.refuse(node, _NOT_ARITHMETIC)
        return False

    def refuse_unknown(self, node: ast.expr, name: str, hint: str) -> NoReturn:
        column, part = _place(self.text, node)
        meant = closest(name, sorted(self.known or ())) or STAND_IN
        repaired = f"{self.text[: column - 1]}{meant}{self.text[column - 1 + len(name) :]}"
        problem = f"{_marked(self.text, column)}: '{part}' is not known here{hint}"
        raise refusal(self.text, self.where, problem, repaired, name)

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
            hint = "; did you mean 'time'?" if name == "t" and "time" in self.known else None
            hint = hint if self.known else "; write a plain number, without names"
            self.refuse_unknown(node, name, hint or nearest(name, nameable(self.known)))
        self.names[name] = None

    def call(self, node: ast.Call, name: str, depth: int) -> None:
        if name not in FUNCTIONS:
            known = sorted(one for one, what in FUNCTIONS.items() if self.of_frames or not what.over_frames)
            hint = f"; did you mean '{OTHER_NAMES[name]}'?" if name in OTHER_NAMES else nearest(name, known)
            self.refuse(node, f"calls '{name}', which is no function{hint}")
        function = FUNCTIONS[name]
        self.over_frames |= function.over_frames
        count = len(node.args)
        if not function.least <= count <= function.most or any(isinstance(arg, ast.Starred) for arg in node.args):
            self.refuse(node, f"has {count} argument{'s' * (count != 1)}; write {function.usage}, {function.doc}")
        if function.by_axis and not node.keywords:
            self.refuse(node, f"needs a coordinate; write {function.usage}")
        if function.needs_axis and not node.keywords:
            self.refuse(node, f"needs an axis; write {function.usage}")
        for keyword in node.keywords:
            self.keyword(node, function, keyword, depth)
        table = dotted(node.args[1]) if name == "interp" else ""
        if table and self.known is not None and table not in self.known:
            self.refuse_unknown(node.args[1], table, "; interp reads a table that has a name under 'tables'")
        for number, argument in enumerate(node.args):
            (self.condition if name == "where" and number == 0 else self.number)(argument, depth)

    def keyword(self, node: ast.Call, function: Function, keyword: ast.keyword, depth: int) -> None:
        if keyword.arg is None or (keyword.arg not in function.keywords and not function.by_axis):
            hint = nearest(keyword.arg or "", function.keywords) if function.keywords else ""
            self.refuse(node, f"has no option '{keyword.arg}'{hint}; write {function.usage}")
        if sum(other.arg == keyword.arg for other in node.keywords) > 1:
            self.refuse(node, f"has the option '{keyword.arg}' twice; write it once")
        if function.by_axis:
            # The coordinates of the points are a value of the expression, by the name of their axis.
            if self.known is not None and keyword.arg not in self.known:
                hint = nearest(keyword.arg, sorted(self.known))
                self.refuse(node, f"names '{keyword.arg}', which is no axis with coordinates here{hint}")
            self.names[keyword.arg] = None
        if keyword.arg == "axis":
            if not (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)):
                self.refuse(keyword.value, 'is no name of an axis; write axis="x"')
        else:
            self.number(keyword.value, depth)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _marked(text: str, column: int) -> str:
    """Return the column number and the text around it, with a mark before the column."""
    before, after = text[: column - 1], text[column - 1 :]
    before = before if len(before) <= 30 else f"...{before[-27:]}"
    after = after if len(after) <= 30 else f"{after[:27]}..."
    return f"column {column} of '{before}>>>{after}'"
