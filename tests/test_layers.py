"""The architecture, checked: imports point down the layers only, and modules stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "simkit"
MODULES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}

# A package may import those of lower levels and itself; packages of one level never import each other.
LEVELS = {
    "errors": 0,
    "interop": 1,
    "plugins": 1,
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
# The registry names the domains' factories as text, so that scenarios are read without importing physics.
WITHOUT_ARRAYS = [
    "schema",
    "registry",
    "catalog",
    "over",
    "overrides",
    "scenario",
    "sections",
    "declared",
    "making",
    "checks",
    "table",
    "toml",
    "loading",
    "likely_view",
    "made_in_python",
]
# Kernels and the loop that runs them import jax at the top; modules that read scenarios, find files, plan jobs and draw
# import it inside the functions that need it, so that `import simkit`, `simkit list` and errors in a file are quick.
WITH_JAX = ("core", "molecular", "flow", "rigid", "engine", "export")
READ_EARLY = ("core/compilation.py", "core/paths.py", "core/precision.py")
READ_LATE = ("scenario/contents.py", "storage/store.py", "jobs/validation.py")
ARRAY_LIBRARIES = {"jax", "numpy", "xarray", "matplotlib", "scipy", "optax"}
PEERS = {"ase", "jax_md", "jax_cfd", "brax", "mujoco"}


def imported(path, *, top_level_only=False):
    """Yield the names of modules that a file imports, without those for type checkers only."""

    def visit(nodes):
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports relatively"
                yield node.module
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from visit(node.orelse)
            elif not (top_level_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
                yield from visit(ast.iter_child_nodes(node))

    yield from visit(ast.parse(path.read_text()).body)


def package_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


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


def modules_imported(path, known):
    """Return the known modules that a file imports anywhere: at the top, in functions, for types alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inner}
    return found & known


def test_no_module_imports_itself_through_others():
    # `simkit` itself is excluded: it imports by name, on first use.
    names = {".".join(["simkit", *Path(place).with_suffix("").parts]): path for place, path in MODULES.items()}
    names = {name.removesuffix(".__init__"): path for name, path in names.items() if name != "simkit.__init__"}
    imports = {name: modules_imported(path, names.keys()) - {name} for name, path in names.items()}
    assert sum(map(len, imports.values())) > len(imports)
    # A module whose imports are all removed is in no cycle.
    while free := {name for name, others in imports.items() if not others}:
        imports = {name: others - free for name, others in imports.items() if name not in free}
    assert not imports


@pytest.mark.parametrize("name", WITHOUT_ARRAYS)
def test_scenarios_are_read_without_array_libraries(name):
    path = ROOT / "scenario" / f"{name}.py"
    assert not top_level_libraries(path) & ARRAY_LIBRARIES


def test_jax_is_imported_at_the_top_of_kernels_and_nowhere_else():
    at_the_top = [place for place, path in MODULES.items() if "jax" in top_level_libraries(path)]
    inside = [
        place
        for place, path in MODULES.items()
        if place not in at_the_top and "jax" in {module.split(".")[0] for module in imported(path)}
    ]
    assert not [place for place in at_the_top if place.split("/")[0] not in WITH_JAX and place not in READ_LATE]
    assert not [place for place in inside if place.split("/")[0] in WITH_JAX and place not in READ_EARLY]
    assert not [place for place in (*READ_EARLY, *READ_LATE) if place not in (*at_the_top, *inside)]


def test_peer_libraries_are_imported_inside_functions():
    assert not [place for place, path in MODULES.items() if top_level_libraries(path) & PEERS]


def test_modules_are_at_most_400_lines():
    assert not [place for place, path in MODULES.items() if len(path.read_text().splitlines()) > 400]


def test_only_the_command_line_prints():
    def prints(path):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        return any(isinstance(call, ast.Name) and call.id == "print" for call in calls)

    assert not [place for place, path in MODULES.items() if package_of(path) != "cli" and prints(path)]
