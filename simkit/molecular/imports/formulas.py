"""Formulas of OpenMM as expressions: definitions put in, and names of functions replaced."""

import ast
from collections.abc import Mapping

from simkit.errors import UserError

# Functions that expressions lack, of their arguments a, b and c.
FUNCTIONS = {
    "cot": "1/tan(a)",
    "csc": "1/sin(a)",
    "cube": "a**3",
    "erfc": "1 - erf(a)",
    "recip": "1/a",
    "sec": "1/cos(a)",
    "select": "where(a != 0, b, c)",
    "square": "a**2",
    "step": "where(a < 0, 0, 1)",
}
ARGUMENTS = ("a", "b", "c")
# Definitions that need each other, one inside the other.
MOST_DEFINITIONS = 100


class _Replaced(ast.NodeTransformer):
    """Replaces names by trees, and functions by what they mean."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name."""
        return self.names.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace a function, whose own name is no value."""
        arguments = [self.visit(argument) for argument in node.args]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            return ast.Call(node.func, arguments, node.keywords)
        meaning = ast.parse(FUNCTIONS[name], mode="eval").body
        return _Replaced(dict(zip(ARGUMENTS, arguments, strict=False))).visit(meaning)


def expression_of(formula: str, where: str) -> str:
    """Return a formula of OpenMM as an expression.

    Args:
        formula: such as ``"k*(r - r0)^2; r0 = 1.5"``, a value and definitions that it takes.
        where: what has it, for the message.

    Raises:
        UserError: if it cannot be read.

    Example:
        >>> molecular.imports.formulas.expression_of("k*square(x); x = r - r0^2", "bond")
        'k * (r - r0 ** 2) ** 2'
    """
    first, *rest = (part.strip() for part in formula.replace("^", "**").split(";"))
    try:
        tree = ast.parse(first, mode="eval").body
        definitions = {}
        for part in filter(None, rest):
            name, _, text = part.partition("=")
            definitions[name.strip()] = ast.parse(text.strip(), mode="eval").body
        tree = _Replaced({}).visit(tree)
        definitions = {name: _Replaced({}).visit(each) for name, each in definitions.items()}
        for _ in range(MOST_DEFINITIONS):
            if not any(isinstance(node, ast.Name) and node.id in definitions for node in ast.walk(tree)):
                return ast.unparse(ast.fix_missing_locations(tree))
            tree = _Replaced(definitions).visit(tree)
    except (SyntaxError, ValueError):
        raise UserError(f"{where}: the formula {formula[:80]!r} cannot be read; write it in simpler terms") from None
    raise UserError(f"{where}: a definition of {formula[:80]!r} needs itself; write it out")


def renamed(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression with other names.

    Args:
        expression: text.
        names: new names by old ones.

    Example:
        >>> molecular.imports.formulas.renamed("q1*q2/r", {"q1": "q_i", "q2": "q_j"})
        'q_i * q_j / r'
    """
    changes: dict[str, ast.expr] = {old: ast.Name(new) for old, new in names.items()}
    tree = _Replaced(changes).visit(ast.parse(expression, mode="eval").body)
    return ast.unparse(ast.fix_missing_locations(tree))
