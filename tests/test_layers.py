"""The architecture, checked: imports and names point down the layers only."""

import ast
import functools
import re
from pathlib import Path

import simkit

ROOT = Path(__file__).parents[1] / "simkit"
MODULES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
# `simkit` itself is left out where imports are followed: it imports by name, on first use.
NAMES = {
    ".".join(["simkit", *Path(place).with_suffix("").parts]).removesuffix(".__init__"): path
    for place, path in MODULES.items()
    if place != "__init__.py"
}
# These write a command line of their own, or parse that of simkit.
OF_THE_COMMAND_LINE = ("cli/", "scenario/over", "export/programs/")

# A package may import those of lower levels and itself; packages of one level never import each other.
LEVELS = {
    "errors": -1,
    "interop": 2,
    "plugins": 0,
    "core": 1,
    "molecular": 2,
    "flow": 2,
    "rigid": 2,
    "scenario": 3,
    "storage": 4,
    "engine": 5,
    "render": 5,
    "jobs": 6,
    "export": 7,
    "cli": 8,
    "__main__": 9,
}
# Kernels, and the loop that runs them, import jax at the top. What `import simkit`, `simkit list`, help and completion
# read imports no array library; jobs and export may do either.
WITH_JAX = ("core", "molecular", "flow", "rigid", "engine", "export")
READ_EARLY = ("simkit.cli.main", "simkit.cli.verbs.", "simkit.scenario.catalog", "simkit.scenario.overrides")
ARRAY_LIBRARIES = {"jax", "numpy", "xarray", "matplotlib", "scipy", "optax"}
PEERS = {"ase", "jax_md", "jax_cfd", "brax", "mujoco"}


@functools.cache
def text_of(path):
    return path.read_text()


@functools.cache
def tree(path):
    return ast.parse(text_of(path))


@functools.cache
def imported(path, *, top_level_only=False):
    """Return the names of modules that a file imports, without those for type checkers only."""
    # Few files import inside functions, and walking through all of them takes seconds.
    top_level_only = top_level_only or not re.search(r"^ +(from|import) ", text_of(path), re.MULTILINE)
    found, left = [], list(tree(path).body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.append(node.module)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            left += node.orelse
        elif isinstance(node, ast.stmt) and not (top_level_only and isinstance(node, ast.FunctionDef)):
            left += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr)]
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            left += node.body
    return found


def nodes(path, written):
    """Return the nodes of a file whose text has a pattern; none of another file."""
    return list(ast.walk(tree(path))) if re.search(written, text_of(path), re.MULTILINE) else []


def strings(path, written):
    """Return the string literals of a file whose text has a pattern, except docstrings, each with its line."""
    every = nodes(path, written)
    bodies = [node.body for node in every if isinstance(getattr(node, "body", None), list)]
    documents = {id(part.value) for body in bodies for part in body if isinstance(part, ast.Expr)}
    constants = [node for node in every if isinstance(node, ast.Constant) and id(node) not in documents]
    return [(each.lineno, each.value) for each in constants if isinstance(each.value, str)]


def package_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def top_level_libraries(path):
    return {module.split(".")[0] for module in imported(path, top_level_only=True)}


def test_imports_point_down_the_layers_only():
    upward = []
    for place, path in MODULES.items():
        own = package_of(path)
        if own == "__init__":
            continue  # the public face imports lazily, by name
        for name in imported(path):
            if name.split(".")[0] != "simkit" or name == "simkit":
                continue
            other = name.split(".")[1]
            if other != own and LEVELS[other] >= LEVELS[own]:
                upward.append(f"{place} imports {name}")
    assert not upward


def test_no_string_names_a_module_of_a_higher_layer():
    found = set()
    for path in MODULES.values():
        own = package_of(path)
        if own == "__init__":
            continue
        named = {text for _, text in strings(path, "[\"']simkit[.]") if re.fullmatch(r"simkit(\.\w+)+(:\w+)?", text)}
        # `simkit.animate` is imported by name when it is used.
        for node in nodes(path, r"^ *import simkit$"):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "simkit":
                named.add(f"simkit.{node.attr}")
        for name in named:
            public = getattr(simkit, name.split(".")[1], None)
            other = getattr(public, "__module__", name).split(".")[1]
            if other in LEVELS and other != own and LEVELS[other] >= LEVELS[own]:
                found.add((own, name.partition(":")[0]))
    assert not found


def modules_imported(path, *, top_level_only=False):
    """Return the modules of simkit that a file imports: at the top, or anywhere, also for types alone."""
    found = set()
    for node in tree(path).body if top_level_only else nodes(path, r"^ +(from|import) ") or tree(path).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in NAMES else node.module for name in inner}
    return found & NAMES.keys()


def test_no_module_imports_itself_through_others():
    imports = {name: modules_imported(path) - {name} for name, path in NAMES.items()}
    assert sum(map(len, imports.values())) > len(imports)
    # A module whose imports are all removed is in no cycle.
    while free := {name for name, others in imports.items() if not others}:
        imports = {name: others - free for name, others in imports.items() if name not in free}
    assert not imports


def read_early():
    """Return the modules that `import simkit`, `simkit list`, help and errors in a scenario file import."""
    found, left = set(), {name for name in NAMES if name.startswith(READ_EARLY)}
    assert len(left) > len(READ_EARLY)
    while left:
        found |= left
        parents = {name.rpartition(".")[0] for name in left} & NAMES.keys()
        left = (
            {each for name in left for each in modules_imported(NAMES[name], top_level_only=True)} | parents
        ) - found
    return found


def test_what_is_read_early_imports_no_array_library():
    assert not [name for name in read_early() if top_level_libraries(NAMES[name]) & ARRAY_LIBRARIES]


# A program of its own, of which exports write copies: it imports the runtime that it is for, and prints.
OF_ITS_OWN = "simkit.export.programs.stand_alone"


def test_jax_is_imported_at_the_top_of_kernels():
    inside = [
        name
        for name, path in NAMES.items()
        if "jax" not in top_level_libraries(path) and "jax" in {module.split(".")[0] for module in imported(path)}
    ]
    # The module of compilation sets where programs are stored, before the first array.
    early = read_early() | {"simkit.core.compilation", OF_ITS_OWN}
    assert not [name for name in inside if name.split(".")[1] in WITH_JAX and name not in early]


def test_peer_libraries_are_imported_inside_functions():
    assert not [place for place, path in MODULES.items() if top_level_libraries(path) & PEERS]


def test_a_module_is_a_chapter_of_at_most_900_lines():
    assert not [place for place, path in MODULES.items() if len(text_of(path).splitlines()) > 900]


def test_no_layer_below_the_command_line_names_its_options():
    found = [
        f"{place}:{line}: {text}"
        for place, path in MODULES.items()
        if not place.startswith(OF_THE_COMMAND_LINE)
        for line, text in strings(path, r"--[a-z]")
        if re.search(r"(^|[\s(])--[a-z]", text)
    ]
    assert not found


def test_only_the_command_line_prints():
    def prints(path):
        calls = [node.func for node in nodes(path, r"\bprint\(") if isinstance(node, ast.Call)]
        return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)

    others = [name for name, path in NAMES.items() if package_of(path) != "cli" and name != OF_ITS_OWN]
    assert not [name for name in others if prints(NAMES[name])]
