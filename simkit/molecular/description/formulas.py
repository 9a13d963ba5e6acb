"""Formulas of a system: the names they may take, and interactions whose parameters they give."""

import ast
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.arguments import check_shape
from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, Scope, precision_of, scope
from simkit.core.expressions.syntax import FUNCTIONS, dotted, refuse
from simkit.core.settings import FormulaText, Setting, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, known, nearest, untaken
from simkit.molecular.interactions.interaction import Interaction, viewed

COORDINATES = ("x", "y", "z")
# Among the parameters of a system whose fields change; no parameter of a user may have that name.
TIME = "time"
# Axes of a table of pairs of species.
PAIR = ("first", "second")


@dataclasses.dataclass(frozen=True)
class Names:
    """Names that the formulas of a system may use.

    Attributes:
        scope: parameters that are one number, and derived values.
        tables: names of parameters that are tables, (S, S), by pair of species.
        values: names of numbers of each species.
        species: names of the species, in the order of tables.
    """

    scope: Scope
    tables: tuple[str, ...]
    values: tuple[str, ...]
    species: tuple[str, ...]

    def number(self, text: FormulaText) -> Formula:
        """Return the formula of a number, of parameters and of what its setting allows besides, such as the time."""
        return self.scope.formula(text, text.takes)

    def usual_value(self, settings: Settings, name: str, default: Any = None) -> FormulaText:
        """Return a value of a potential that its table leaves out: the parameter of its name, or its default.

        Args:
            settings: of the interaction or wall.
            name: name of the value.
            default: default of its declaration; ``None`` if there is none.

        Raises:
            UserError: if there is no parameter of that name and no default.
        """
        where = f"{settings.path('values')}.{name}"
        if name in self.scope.parameters or name in self.scope.derived:
            return FormulaText(name, where)
        if default is None:
            raise UserError(f"{where} is missing; give a number or an expression, or a parameter of that name")
        return FormulaText(str(default), where)

    def of_one_species(self, settings: Settings, declared: Mapping[str, Setting]) -> "dict[str, Formula | Branch]":
        """Return the values of an interaction of one species, each one number or a branch; see `usual_value`.

        Args:
            settings: of the interaction or wall.
            declared: values that its energy takes.

        Raises:
            UserError: if one is a table, missing, or not taken.
        """
        refuse_idle(settings, declared)
        formulas = {}
        for name, setting in declared.items():
            if setting.form == "branch":
                formulas[name] = Branch(branch_of(settings, name))
                continue
            value = settings["values"].get(name) or self.usual_value(settings, name, setting.default)
            if not isinstance(value, FormulaText):
                raise UserError(
                    f"{settings.path('values')}.{name} is a table, and there is one species; give one number"
                )
            formulas[name] = self.number(value)
        return formulas

    def pairs(self, text: str, where: str) -> tuple[int, int]:
        """Return the pair of species that ``"A_B"`` names.

        Raises:
            UserError: if it names none.
        """
        pairs = {f"{a}_{b}": (i, j) for i, a in enumerate(self.species) for j, b in enumerate(self.species)}
        return pairs[known(text, pairs, where, "pair of species")]

    def chosen(self, species: tuple[str, ...] | None, where: str) -> np.ndarray:
        """Return the mask of the named species, (S,) booleans; all by default.

        Raises:
            UserError: if one is unknown.
        """
        for name in species or ():
            known(name, self.species, where, "species")
        return np.array([species is None or name in species for name in self.species])

    def table_values(self, params: Params) -> dict[str, jax.Array]:
        """Return the tables, each symmetrized as the mean of both orders, so that action equals reaction."""
        tables = {name: paths.leaves(params)[name] for name in self.tables}
        return {name: (table + table.T) / 2 for name, table in tables.items()}


class Branch(NamedTuple):
    """A branch of the parameters, or one of them of any shape, in the place of a formula."""

    path: str

    def number(self, params: Params) -> Any:
        """Return its array, or the tree of its arrays."""
        return paths.at(params, self.path)


def branch_of(settings: Settings, name: str) -> str:
    """Return the path of the parameters that a value of an interaction takes whole, by default those of its name.

    Args:
        settings: of the interaction.
        name: of the value.
    """
    written = settings["values"].get(name)
    return name if written is None else written.text if isinstance(written, FormulaText) else ""


def branches_of(settings: Settings, declared: Mapping[str, Setting], params: Params) -> list[str]:
    """Return the paths of all parameters that an interaction takes whole.

    Args:
        settings: of the interaction.
        declared: values that its energy takes.
        params: the default parameters.

    Raises:
        UserError: if there are none at a path.
    """
    leaves, branches = paths.leaves(params), list[str]()
    for name in (name for name, setting in declared.items() if setting.form == "branch"):
        path = branch_of(settings, name)
        where = f"{settings.path('values')}.{name}"
        branches += [path] if paths.is_branch(path, leaves) else [known(path, leaves, where, "parameter")]
    return branches


def names_of(
    params: Params,
    derived: Mapping[str, FormulaText],
    values: Collection[str],
    species: tuple[str, ...],
    angles: tuple[str, ...] = (),
    branches: tuple[str, ...] = (),
) -> Names:
    """Return the names that formulas may use.

    Args:
        params: the default parameters, as arrays.
        derived: further values.
        values: names of numbers of each species.
        species: names of the species.
        angles: names of the angles of which energies are given.
        branches: paths of parameters of any shape, which energies take whole.

    Raises:
        UserError: if a name is taken twice, or a parameter is neither a number nor a table by pair of species.
    """
    count, tables = len(species), []
    for name, value in paths.leaves(params).items():
        if name in branches or any(name.startswith(f"{path}.") for path in branches):
            continue
        wanted = f"one number, or a table of {count} rows of {count}, by pair of the species {', '.join(species)}"
        check_shape(f"parameter '{name}'", value, wanted, (), (count, count))
        if value.ndim:
            tables.append(name)
    places = {*COORDINATES, TIME, "r", *angles, *tables, *values, *_ends(values)}
    for name in values:
        untaken(name, {*COORDINATES, TIME, "r", *angles, *paths.leaves(params)}, f"particles: values.{name}")
    return Names(scope(params, derived, sorted(places), tables), tuple(tables), tuple(sorted(values)), species)


def refuse_idle(settings: Settings, arguments: Collection[str]) -> None:
    """Refuse values of an interaction, field or wall that its energy does not take.

    Args:
        settings: its settings.
        arguments: names that the energy takes.

    Raises:
        UserError: names the first of them.
    """
    for name in settings["values"]:
        if name not in arguments:
            taken = [name for name in arguments if name != "r"]
            raise UserError(f"{settings.path('values')}.{name} is not taken by the energy", nearest(name, taken))


class Numbers:
    """Many numbers, plain ones and formulas, as one array: few operations in a program, however many there are."""

    def __init__(self, formulas: Sequence[Formula]) -> None:
        """Tell plain numbers from formulas of parameters, each of which is computed once.

        Args:
            formulas: one for each number.
        """
        texts = [formula.expression.syntax.text for formula in formulas]
        literals = [_literal(text) for text in texts]
        self._plain = np.array([0.0 if number is None else number for number in literals])
        self._formulas = {t: f for t, f, number in zip(texts, formulas, literals, strict=True) if number is None}
        order = {text: index for index, text in enumerate(self._formulas)}
        self._places = np.array([i for i, number in enumerate(literals) if number is None], int)
        self._sources = np.array([order[texts[i]] for i in self._places], int)

    def __call__(self, params: Params) -> jax.Array:
        """Return the numbers, (K,)."""
        plain = jnp.asarray(self._plain, precision_of(params))
        if not self._formulas:
            return plain
        computed = jnp.stack([formula.number(params) for formula in self._formulas.values()])
        if len(self._places) == len(plain):
            return computed[self._sources]
        return plain.at[self._places].set(computed[self._sources])


def _literal(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _ends(values: Collection[str]) -> Iterator[str]:
    for name in values:
        yield from (f"{name}_i", f"{name}_j")


def refuse_mixing(formula: Formula) -> None:
    """Refuse an energy of one particle or pair that mixes several, such as by ``mean(x)`` or a table's ``epsilon[0]``.

    Derived values that it contains are examined too.

    Raises:
        UserError: that marks the column.
    """
    syntax = formula.expression.syntax
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and _reduces(node)):
            refuse(syntax.text, formula.where, node, "mixes several particles; write the energy of one, or one pair")
    for name in syntax.names:
        if name in formula.scope.derived:
            refuse_mixing(formula.scope.derived[name])


def _reduces(node: ast.Call) -> bool:
    name = dotted(node.func)
    return bool(FUNCTIONS[name].keywords) and not (name in ("max", "min") and len(node.args) > 1)


def named(value: jax.Array, axes: tuple[str, ...]) -> Named:
    """Return an array with the last of some axes; one number with none."""
    value = jnp.asarray(value)
    return Named(value, axes[len(axes) - value.ndim :])


def with_converted_params(interaction: Interaction, view: Callable[[Params], Params]) -> Interaction:
    """Return an interaction whose params are first converted by a function.

    Args:
        interaction: interaction with params of its own.
        view: ``params -> params`` of that interaction.
    """
    return viewed(interaction, lambda position, cell, params: (position, cell, view(params)))
