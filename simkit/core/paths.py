"""Paths in a tree of parameters: ``closure.0.weight`` is one array, ``closure`` a branch with all arrays below it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simkit.errors import Hint, UserError, nearest

type Tree = Any
"""Nested dictionaries, lists, tuples, named tuples and other pytrees of arrays."""

# Names listed in an error message at most; of more paths, only their first steps are listed.
MOST_NAMES = 12


def mapped(
    function: Callable[[str, Any], Any],
    tree: Tree,
    path: str = "",
    is_leaf: Callable[[str, Any], bool] = lambda path, node: False,
) -> Tree:
    """Return a tree with each leaf replaced by ``function(path, leaf)``; dictionaries keep the order of their keys.

    Args:
        function: function of the path and the leaf.
        tree: any; ``None`` is a leaf.
        path: path of the tree itself.
        is_leaf: ``(path, node) -> bool``, whether a node counts as a leaf.

    Raises:
        UserError: if a key contains a dot, is neither a word nor an integer, or reads the same as another.
    """
    children = None if is_leaf(path, tree) else _children(tree, path)
    if children is None:
        return function(path, tree)
    nodes, rebuild = children
    return rebuild([mapped(function, node, below(path, step), is_leaf) for step, node in nodes])


def leaves(
    tree: Tree, path: str = "", is_leaf: Callable[[str, Any], bool] = lambda path, node: False
) -> dict[str, Any]:
    """Return the leaves of a tree by their paths, in the order of its keys; arguments as for `mapped`."""
    by_path: dict[str, Any] = {}
    mapped(by_path.__setitem__, tree, path, is_leaf)
    return by_path


def at(tree: Tree, path: str) -> Tree:
    """Return the leaf or branch of a tree at a path.

    Args:
        tree: any.
        path: of a leaf or branch.
    """
    for step in path.split("."):
        children = _children(tree, path)
        tree = dict(children[0])[step] if children else tree
    return tree


def replaced(tree: Tree, values: Mapping[str, Any]) -> Tree:
    """Return a tree with other leaves.

    Args:
        tree: any.
        values: new leaves by path; all other leaves are kept.
    """
    return mapped(lambda path, leaf: values.get(path, leaf), tree)


def axes(tree: Tree, over: Collection[str]) -> Tree:
    """Return the ``in_axes`` of `jax.vmap` for a tree in which some leaves have a leading member axis.

    Args:
        tree: parameters.
        over: paths of the leaves with a member axis.
    """
    return mapped(lambda path, _: 0 if path in over else None, tree)


def selected(names: str | Sequence[str] | Collection[str], known: Collection[str], owner: str = "") -> list[str]:
    """Return the paths of the leaves that are named, a branch standing for every leaf below it.

    Args:
        names: paths of leaves and branches, or a single path.
        known: paths of all leaves.
        owner: name of what has these parameters, for the error.

    Raises:
        UserError: if a name is unknown, with the nearest, or a leaf is named twice.
    """
    chosen: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise UserError(f"{name!r:.80} is not the name of a parameter; give a word")
        if not (below_name := _at(name, known)):
            problem = f"'{name}' is not a parameter of {owner}" if owner else f"unknown parameter '{name}'"
            raise UserError(problem, hint(name, known))
        if twice := next((leaf for leaf in below_name if leaf in chosen), None):
            raise UserError(f"parameter '{twice}' is named twice; name each parameter once")
        chosen += below_name
    return chosen


def by_leaf(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return values by the path of each leaf, from values of leaves and trees of values of branches.

    Args:
        values: ``{path of a leaf or branch: value or tree of values}``.
        known: paths of all leaves.

    Raises:
        UserError: if a name is unknown, or the tree of a branch has other leaves than the branch.
    """
    by_path: dict[str, Any] = {}
    for name, value in values.items():
        expected = selected(name, known)
        entries = {name: value} if expected == [name] else leaves(value, name, lambda path, _: path in known)
        if name in entries and expected != [name]:
            raise UserError(f"'{name}' is a branch of parameters; give it a tree of values, or name {_some(expected)}")
        if unknown := next((path for path in entries if path not in expected), None):
            raise UserError(f"'{unknown}' is no parameter of the branch '{name}'; name {_some(expected)}")
        if missing := next((path for path in expected if path not in entries), None):
            raise UserError(f"the values of '{name}' lack '{missing}'; give all of them, or name those that change")
        if twice := next((path for path in entries if path in by_path), None):
            raise UserError(f"parameter '{twice}' is given twice; keep one of them")
        by_path |= entries
    return by_path


def is_branch(name: str, known: Collection[str]) -> bool:
    """Return whether a name is the path of a branch.

    Args:
        name: any text.
        known: paths of all leaves.
    """
    return name not in known and bool(_at(name, known))


def hint(name: str, known: Collection[str]) -> Hint:
    """Return the end of an error message: the nearest leaf or branch, or the known names, see `simkit.errors.nearest`.

    Args:
        name: what the user wrote.
        known: paths of all leaves.
    """
    if (plain := name.removeprefix("params.")) != name and _at(plain, known):
        return Hint(f"; write {plain}", plain)
    if below_name := _at(name, known):
        return Hint(f", it is a branch; name {_some(below_name)}")
    parts = [path.split(".") for path in known]
    branches = dict.fromkeys(".".join(steps[:depth]) for steps in parts for depth in range(1, len(steps)))
    near = nearest(name, [*known, *branches])
    if near.meant or len(known) <= MOST_NAMES:
        return near if near.meant else nearest("", list(known))
    return nearest("", list({steps[0] for steps in parts}))


def below(path: str, step: object) -> str:
    """Return the path of a child.

    Args:
        path: path of the node; empty for the whole tree.
        step: key, index or field name of the child.
    """
    return f"{path}.{step}" if path else str(step)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested dictionaries from values by path.

    Args:
        values: ``{path: value}``.
    """
    tables: dict[str, Any] = {}
    for path, value in values.items():
        *steps, last = path.split(".")
        table = tables
        for step in steps:
            table = table.setdefault(step, {})
        table[last] = value
    return tables


def _some(names: Sequence[str]) -> str:
    """Return names as text: one name, or ``one of a, b, ...``."""
    shown = ", ".join(names[:MOST_NAMES])
    return shown if len(names) == 1 else f"one of {shown}{', ...' if len(names) > MOST_NAMES else ''}"


def _at(name: str, known: Collection[str]) -> list[str]:
    return [name] if name in known else [path for path in known if path.startswith(f"{name}.")]


def _children(tree: Tree, path: str) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Tree]] | None:
    """Return ``(step, child)`` of a node's children, and a function that rebuilds the node; ``None`` for a leaf."""
    if isinstance(tree, Mapping):
        steps = [_step(key, path) for key in tree]
        if twice := next((step for step in steps if steps.count(step) > 1), None):
            raise UserError(f"two keys of '{path or 'params'}' read '{twice}'; rename one of them")
        return list(zip(steps, tree.values(), strict=True)), lambda nodes: dict(zip(tree, nodes, strict=True))
    if tree is None:
        return None
    import jax

    flat, structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    if len(flat) == 1 and not flat[0][0]:
        return None
    return [(_named(key), node) for (key,), node in flat], lambda nodes: jax.tree.unflatten(structure, nodes)


def _named(key: Any) -> str:
    """Return a key of `jax.tree_util` (field name, index or dictionary key) as a step of a path."""
    return str(next(getattr(key, kind) for kind in ("name", "idx", "key") if hasattr(key, kind)))


def _step(key: Any, path: str) -> str:
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise UserError(f"the key {key!r:.60} of '{path or 'params'}' is neither a word nor an integer; rename it")
    if "." in str(key):
        raise UserError(
            f"the key '{key}' of '{path or 'params'}' contains a dot, which separates the steps of a path; rename it"
        )
    return str(key)
