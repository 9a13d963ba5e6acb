"""Formulas of a system: expressions of parameters, derived values and local names such as coordinates."""

import ast
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import Expression, Named, aligned, expression
from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS, dotted, nameable, parse, readable, refuse
from simkit.core.parameter import UNBOUNDED, out_of_bounds
from simkit.core.settings import FormulaText
from simkit.core.settings.tables import Table
from simkit.core.simulation import Params
from simkit.errors import Mistakes, UserError, one_line, untaken


@dataclasses.dataclass(frozen=True)
class Scope:
    """Names available to every formula of a system.

    Attributes:
        parameters: paths of scalar parameters.
        lists: paths of the other parameters, which are lists of numbers.
        derived: derived values by name, each a formula of parameters, of derived values before it, and of names that
            are available to some formulas only, such as the time.
        local: names that are available to some formulas only.
        tables: tables of numbers by name, which ``interp`` reads.
    """

    parameters: tuple[str, ...]
    lists: tuple[str, ...] = ()
    derived: Mapping[str, "Formula"] = dataclasses.field(default_factory=dict)
    local: tuple[str, ...] = ()
    tables: Mapping[str, Table] = dataclasses.field(default_factory=dict)

    def refuse_unknown(self, settings: Any, names_at: Callable[[FormulaText], Collection[str]]) -> None:
        """Refuse unknown names in any of the formulas of a system, all of them in one error.

        Args:
            settings: a tree of tables and lists with formulas.
            names_at: function from a formula to the names that it may contain besides parameters and derived values.

        Raises:
            UserError: that marks the first; `UserError.others` has the rest.
        """
        mistakes = Mistakes()

        def visit(value: Any) -> None:
            if isinstance(value, Mapping):
                value = tuple(value.values())
            if isinstance(value, tuple | list):
                for inner in value:
                    visit(inner)
            elif isinstance(value, FormulaText):
                with mistakes.kept(value.where):
                    self._refuse_names(value, names_at(value))

        visit(settings)
        mistakes.raise_if_any()

    def formula(self, written: FormulaText, names: Collection[str] = (), arrays: Collection[str] = ()) -> "Formula":
        """Return a checked formula.

        Args:
            written: its text, and the path of its key.
            names: names that it may contain besides parameters and derived values: coordinates, the time, quantities.
            arrays: those of the names of which it may take entries, such as ``epsilon[0, 1]``; the others are one
                number at each place.

        Raises:
            UserError: that marks the column of an unknown name or of an entry, or names the derived value that depends
                on an unknown name.
        """
        if written.tables:
            scope = dataclasses.replace(self, tables={**self.tables, **dict(written.tables)})
            return scope.formula(dataclasses.replace(written, tables=()), names, arrays)
        checked = expression(written.text, written.where, self._known(written, names), of_frames=False)
        tree = checked.syntax.tree
        read = [node.args[1] for node in ast.walk(tree) if isinstance(node, ast.Call) and dotted(node.func) == "interp"]
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and (problem := self._misread(node, read, arrays)):
                refuse(written.text, written.where, node, problem)
        taken: dict[str, None] = {}
        for name in checked.syntax.names:
            if name in names or name not in self.derived:
                taken |= {} if name in self.tables else {name: None}
                continue
            taken |= dict.fromkeys(self.derived[name].taken)
        return Formula(checked, self, tuple(taken), written.bounds)

    def _refuse_names(self, written: FormulaText, names: Collection[str]) -> None:
        """Refuse unknown names in a formula or condition; other mistakes are found where it is used."""
        for is_condition in (False, True):
            try:
                parse(written.text, written.where, is_condition=is_condition)
            except UserError:
                continue
            parse(written.text, written.where, self._known(written, names, is_condition), is_condition=is_condition)

    def _misread(self, node: ast.expr, read: list[ast.expr], arrays: Collection[str]) -> str:
        """Return what is wrong with a use of a table or array: a table is read by ``interp`` alone.

        Args:
            node: part of a formula.
            read: second arguments of all its calls of ``interp``.
            arrays: names of which it may take entries.
        """
        if isinstance(node, ast.Subscript) and (array := dotted(node.value)) not in arrays:
            return f"takes an entry of '{array}', which is one number at each place; leave out the brackets"
        is_table = (name := dotted(node)) in self.tables
        if node in read and not is_table:
            hint = f"choose one of {', '.join(self.tables)}" if self.tables else "name one under 'tables'"
            return f"is no table of numbers; {hint}"
        return f"is a table; write interp(x, {name})" if is_table and node not in read else ""

    def _known(self, written: FormulaText, names: Collection[str], is_condition: bool = False) -> set[str]:
        """Return the names that a formula may contain, without the derived values that depend on others.

        Raises:
            UserError: if it contains one of those, or a list.
        """
        known = {*self.parameters, *names, *self.tables, *dict(written.tables)}
        missing = {name: [o for o in formula.taken if o not in known] for name, formula in self.derived.items()}
        for node in ast.walk(parse(written.text, written.where, is_condition=is_condition).tree):
            if not isinstance(node, ast.expr) or (name := dotted(node)) in known:
                continue
            problem = ""
            if name in self.local:
                # The nearest known name would mislead: ``time`` is no misspelt ``time_step``.
                names_here = f"known names: {', '.join(nameable(known))}" if known else "write a plain number"
                problem = f"is not known here, but in other formulas; {names_here}"
            elif name in self.lists:
                problem = "is a list, and a formula takes single numbers here; declare a parameter for each"
            elif missing.get(name):
                names_here = ", ".join(names) or "parameters only"
                problem = f"depends on '{missing[name][0]}', which is not known here; known: {names_here}"
            if problem:
                refuse(written.text, written.where, node, problem)
        return known | {name for name, others in missing.items() if not others}


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula of a system, as a pure function of its parameters and of values by local name.

    Attributes:
        expression: the checked expression.
        scope: names available to all formulas of the system.
        taken: parameters and local names that it depends on, directly or through derived values.
        bounds: lowest and highest value that it may have.
    """

    expression: Expression
    scope: Scope
    taken: tuple[str, ...]
    bounds: tuple[float, float] = UNBOUNDED

    def takes(self, *names: str) -> bool:
        """Return whether it depends on any of the names."""
        return any(name in self.taken for name in names)

    @property
    def where(self) -> str:
        """Path of its key, for messages."""
        return self.expression.where

    @property
    def text(self) -> str:
        """Its text, for messages."""
        return one_line(readable(self.expression.syntax.text), 80)

    def __call__(self, params: Params, **given: Named | jax.Array | float) -> Named:
        """Return its value.

        Args:
            params: parameters.
            **given: values by local name; plain arrays are scalars without axes.

        Raises:
            UserError: if axes do not fit.
        """
        return self.of(params, given)

    def of(self, params: Params, given: Mapping[str, Named | jax.Array | float]) -> Named:
        """Return its value, with the values by local name in one mapping."""
        numbers = paths.leaves(params)
        values: dict[str, Named | jax.Array | float] = {}
        for name in self.expression.syntax.names:
            if name in given:
                values[name] = given[name]
            elif name in self.scope.tables:
                values[name] = Named(self.scope.tables[name])
            elif name in self.scope.derived:
                values[name] = self.scope.derived[name].of(params, given)
            else:
                values[name] = numbers[name]
        return self.expression(values)

    def number(self, params: Params, **given: Named | jax.Array | float) -> jax.Array:
        """Return its value as one number.

        Raises:
            UserError: if it is an array.
        """
        return self.on((), params, **given)

    def of_time(self, params: Params, time: Any) -> jax.Array:
        """Return its value at a time as one number."""
        return self.number(params, time=time)

    def needing(self, name: str) -> "Formula":
        """Return the formula, which must depend on a name.

        Raises:
            UserError: if it does not.
        """
        if not self.takes(name):
            raise UserError(f"{self.where} does not depend on {name}; write an expression of it", key=self.where)
        return self

    def on(self, axes: tuple[str, ...], params: Params, **given: Named | jax.Array | float) -> jax.Array:
        """Return its value as an array with the given axes, of length 1 where it does not depend on one.

        Args:
            axes: names of the axes, in order.
            params: parameters.
            **given: values by local name; coordinates as `Named`.

        Raises:
            UserError: if it has another axis.
        """
        value = self.of(params, given)
        if other := [axis for axis in value.axes if axis not in axes]:
            remedy = f"it may have axes {' and '.join(axes)}" if axes else "it must be one number"
            raise UserError(f"{self.where}: has one number for each {' and '.join(other)}; {remedy}")
        array = jnp.asarray(value.array, precision_of(params))
        if not axes:
            return array
        return aligned(Named(array, value.axes), axes) if value.axes else array.reshape([1] * len(axes))


def scope(
    parameters: Params,
    derived: Mapping[str, FormulaText] | None = None,
    names: Collection[str] = (),
    arrays: Collection[str] = (),
    tables: Mapping[str, Table] | None = None,
) -> Scope:
    """Return the names available to the formulas of a system.

    Args:
        parameters: parameters of the system, of which the scalars are available.
        derived: formulas of derived values by name; each may contain those before it.
        names: local names that derived values may contain, such as coordinates and the time.
        arrays: those of the names of which derived values may take entries.
        tables: tables of numbers by name.

    Raises:
        UserError: if a parameter or derived value has the name of something else, or a formula has an unknown name.
    """
    leaves = paths.leaves(parameters)
    single = tuple(name for name, value in leaves.items() if _is_number(value))
    reserved = {*FUNCTIONS, *CONSTANTS, *names}
    for name in single:
        untaken(name, reserved, f"params.{name}")
    lists = tuple(name for name in leaves if name not in single)
    made = Scope(single, lists, local=tuple(names), tables=tables or {})
    used = {*reserved, *single}
    for name, written in [*dict.fromkeys(made.tables).items(), *(derived or {}).items()]:
        used.add(untaken(name, used, written.where if written else f"tables.{name}"))
        if written:
            made = dataclasses.replace(made, derived={**made.derived, name: made.formula(written, names, arrays)})
    return made


def refuse_non_finite(formula: Formula, value: jax.Array | Named) -> None:
    """Refuse a formula whose value at the start of a run is not finite everywhere.

    Args:
        formula: the formula, for the message.
        value: its value, not traced.

    Raises:
        UserError: if a number is not finite, with its index.
    """
    array = np.asarray(value.array if isinstance(value, Named) else value)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        index = f" at index {[int(k) for k in wrong[0]]} of {list(array.shape)}" if array.ndim else ""
        remedy = ", or write outside = 'hold' where its table ends" if "interp(" in formula.text else ""
        raise UserError(
            f"{formula.where}: '{formula.text}' is {array[tuple(wrong[0])]}{index} at the start; change it, or the "
            f"parameters in it{remedy}"
        )


def refuse_out_of_bounds(formula: Formula, value: jax.Array | Named) -> None:
    """Refuse a formula whose value at the start of a run is not finite, or anywhere outside the bounds of its setting.

    Args:
        formula: the formula, for the message.
        value: its value, not traced.

    Raises:
        UserError: if a number is not finite or out of bounds.
    """
    refuse_non_finite(formula, value)
    array = np.asarray(value.array if isinstance(value, Named) else value).ravel()
    outside = array[(array < formula.bounds[0]) | (array > formula.bounds[1])]
    if len(outside):
        worst = outside.min() if outside.min() < formula.bounds[0] else outside.max()
        raise UserError(
            f"{formula.where}: '{formula.text}' = {worst:g} at the start {out_of_bounds(formula.bounds, worst)}",
            allowed=formula.bounds,
        )


@dataclasses.dataclass(frozen=True)
class TableInTime:
    """A table that a formula reads, which may end while a run goes on.

    Attributes:
        formula: the formula.
        table: the table, which has no value beyond its points.
        held: for each table of the formula one that has a value everywhere.
        name: of the table among those.
    """

    formula: Formula
    table: Table
    held: Mapping[str, Table]
    name: str

    @property
    def place(self) -> str:
        """Path of the table, after that of the formula unless it is the formula's own."""
        # A table of the formula's own key names it already.
        reader = "" if self.table.where.startswith(self.formula.where) else f"{self.formula.where}: "
        return f"{reader}{self.table.where}"

    def has_ended(self, params: Params, time: Any) -> jax.Array:
        """Return whether the formula has a value at time 0, and at a time none because the table ends, a boolean.

        Coordinates and fields are replaced by a number: only what the time leads beyond the table counts.

        Args:
            params: parameters.
            time: the time.
        """
        numbers = paths.leaves(params)
        held = {name: Named(table) for name, table in self.held.items()}
        others: dict[str, Any] = {name: 0.5 for name in self.formula.taken if name not in numbers}

        def lacks(time: Any, table: Table) -> jax.Array:
            values = {**others, **held, self.name: Named(table), "time": time}
            return jnp.isnan(jnp.asarray(self.formula.of(params, values).array))

        ends = [lacks(moment, self.table) & ~lacks(moment, self.held[self.name]) for moment in (0.0, time)]
        return ends[1] & ~ends[0]


def tables_in_time(formulas: Collection[Formula]) -> tuple[TableInTime, ...]:
    """Return the tables that may end during a run, each with a formula of the time that reads it.

    Args:
        formulas: all formulas of a system.
    """
    ending: list[TableInTime] = []
    for formula in formulas:
        tables = _tables_of(formula) if formula.takes("time") else {}
        held = {name: dataclasses.replace(table, outside="hold") for name, table in tables.items()}
        ending += [TableInTime(formula, table, held, name) for name, table in tables.items() if table.outside == "none"]
    return tuple(ending)


def refuse_ended(tables: Collection[TableInTime], params: Params, end: float) -> None:
    """Refuse a run that goes on beyond the end of a table of the time.

    Args:
        tables: see `tables_in_time`.
        params: parameters of the run.
        end: its time at the end.

    Raises:
        UserError: that names the table, its end and that of the run.
    """
    for each in tables:
        if each.has_ended(params, jnp.asarray(end, precision_of(params))):
            raise UserError(
                f"{each.place} ends at {each.table.x[-1]:g}, and the run at time {end:g}, "
                "where it has no value; give it more rows, write outside = 'hold' there, or take fewer steps",
                key=each.formula.where,
            )


def _tables_of(formula: Formula) -> dict[str, Table]:
    """Return the tables that a formula reads, itself or through derived values, by name."""
    tables: dict[str, Table] = {}
    for name in formula.expression.syntax.names:
        if name in formula.scope.tables:
            tables[name] = formula.scope.tables[name]
        elif name in formula.scope.derived:
            tables |= _tables_of(formula.scope.derived[name])
    return tables


def precision_of(params: Params) -> Any:
    """Return the dtype of the parameters, in which formulas are evaluated; the working precision if there are none."""
    return jnp.result_type(*(paths.leaves(params).values() or (float,)))


def _is_number(value: Any) -> bool:
    value = getattr(value, "default", value)
    return not isinstance(value, list | tuple) and np.ndim(value) == 0
