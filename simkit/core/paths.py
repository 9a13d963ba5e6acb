"""Paths in a tree of parameters: ``closure.0.weight`` is one array, ``closure`` a branch, all that lies below it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simkit.errors import UserError, nearest

type Tree = Any
"""Nested dictionaries, lists, tuples, named tuples and other pytrees of arrays."""

# More names than these are not listed in an error; the first steps of the paths are.
MOST_NAMES = 12


def mapped(
    function: Callable[[str, Any], Any],
    tree: Tree,
    path: str = "",
    is_leaf: Callable[[str, Any], bool] = lambda path, node: False,
) -> Tree:
    """Return a tree with each leaf replaced by ``function(path, leaf)``; dictionaries keep the order of their keys.

    Args:
        function: of the path and the leaf.
        tree: any; ``None`` is a leaf.
        path: of the tree itself.
        is_leaf: whether a node counts as a leaf, by its path and itself.

    Raises:
        UserError: if a key contains a dot, is neither a word nor an integer, or stands for the same step as another.
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
    found: dict[str, Any] = {}
    mapped(found.__setitem__, tree, path, is_leaf)
    return found


def replaced(tree: Tree, values: Mapping[str, Any]) -> Tree:
    """Return a tree with other leaves.

    Args:
        tree: any.
        values: new leaves by path; those of other paths stay.
    """
    return mapped(lambda path, leaf: values.get(path, leaf), tree)


def axes(tree: Tree, over: Collection[str]) -> Tree:
    """Return the ``in_axes`` of `jax.vmap` for a tree some of whose leaves have a leading axis.

    Args:
        tree: of parameters.
        over: paths of the leaves that have it.
    """
    return mapped(lambda path, _: 0 if path in over else None, tree)


def selected(names: str | Sequence[str] | Collection[str], known: Collection[str], owner: str = "") -> list[str]:
    """Return the paths of the leaves that names stand for: a leaf for itself, a branch for every leaf below it.

    Args:
        names: paths of leaves and of branches, or one.
        known: paths of all leaves.
        owner: whose they are, for the error.

    Raises:
        UserError: if a name is unknown, with the nearest, or a leaf is named twice.
    """
    found: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise UserError(f"{name!r:.80} is not the name of a parameter; give a word")
        if not (here := _at(name, known)):
            words = f"'{name}' is not a parameter of {owner}" if owner else f"unknown parameter '{name}'"
            raise UserError(f"{words}{hint(name, known)}")
        if again := next((leaf for leaf in here if leaf in found), None):
            raise UserError(f"parameter '{again}' is named twice; name each parameter once")
        found += here
    return found


def given(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return values by the paths of leaves, where those of branches may be given as trees.

    Args:
        values: by paths of leaves or branches.
        known: paths of all leaves.

    Raises:
        UserError: if a name is unknown, or the tree of a branch has other leaves than the branch.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        wanted = selected(name, known)
        told = {name: value} if wanted == [name] else leaves(value, name, lambda path, _: path in known)
        if name in told and wanted != [name]:
            raise UserError(f"'{name}' is a branch of parameters; give it a tree of values, or name {_some(wanted)}")
        if odd := next((path for path in told if path not in wanted), None):
            raise UserError(f"'{odd}' is no parameter of the branch '{name}'; name {_some(wanted)}")
        if missing := next((path for path in wanted if path not in told), None):
            raise UserError(f"the values of '{name}' lack '{missing}'; give all of them, or name those that change")
        if again := next((path for path in told if path in found), None):
            raise UserError(f"parameter '{again}' is given twice; keep one of them")
        found |= told
    return found


def is_branch(name: str, known: Collection[str]) -> bool:
    """Return whether a name is that of a branch.

    Args:
        name: of anything.
        known: paths of all leaves.
    """
    return name not in known and bool(_at(name, known))


def hint(name: str, known: Collection[str]) -> str:
    """Return the nearest of the leaves and branches, or the names there are, see `simkit.errors.nearest`.

    Args:
        name: what the user wrote.
        known: paths of all leaves.
    """
    if (plain := name.removeprefix("params.")) != name and _at(plain, known):
        return f"; write {plain}"
    if here := _at(name, known):
        return f", it is a branch; name {_some(here)}"
    parts = [path.split(".") for path in known]
    branches = dict.fromkeys(".".join(steps[:depth]) for steps in parts for depth in range(1, len(steps)))
    near = nearest(name[:64], [*known, *branches])
    if "did you mean" in near:
        return near
    return nearest("", list(known) if len(known) <= MOST_NAMES else list({steps[0] for steps in parts}))


def below(path: str, step: str) -> str:
    """Return the path of a child.

    Args:
        path: of the node; empty for the whole tree.
        step: key, index or name of a field.
    """
    return f"{path}.{step}" if path else step


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested dictionaries of what is given by paths.

    Args:
        values: by path.
    """
    found: dict[str, Any] = {}
    for path, value in values.items():
        *steps, last = path.split(".")
        table = found
        for step in steps:
            table = table.setdefault(step, {})
        table[last] = value
    return found


def _some(names: Sequence[str]) -> str:
    """Return a choice of names in words."""
    shown = ", ".join(names[:MOST_NAMES])
    return shown if len(names) == 1 else f"one of {shown}{', ...' if len(names) > MOST_NAMES else ''}"


def _at(name: str, known: Collection[str]) -> list[str]:
    return [name] if name in known else [path for path in known if path.startswith(f"{name}.")]


def _children(tree: Tree, path: str) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Tree]] | None:
    """Return the steps to the children of a node, with these, and what makes a node of new ones; of a leaf nothing."""
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
    """Return the step that a key of `jax.tree_util` stands for: a field, an index or a key."""
    return str(next(getattr(key, kind) for kind in ("name", "idx", "key") if hasattr(key, kind)))


def _step(key: Any, path: str) -> str:
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise UserError(f"the key {key!r:.60} of '{path or 'params'}' is neither a word nor an integer; rename it")
    if "." in str(key):
        raise UserError(
            f"the key '{key}' of '{path or 'params'}' contains a dot, which separates the steps of a path; rename it"
        )
    return str(key)
