"""Names of simulations lead to their factories, plugins included, and every failure names who is to blame."""

import sys

import pytest

from simkit.errors import UserError
from simkit.scenario import registry
from simkit.scenario.registry import FACTORIES, names, resolve


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a distribution with one module and entry points of simkit's group."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = []

    def add(distribution: str, module: str, source: str, **entries: str) -> None:
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = "".join(f"{name.replace('__', '.')} = {target}\n" for name, target in entries.items())
        (info / "entry_points.txt").write_text(f"[simkit.simulations]\n{lines}")

    yield add
    for module in modules:
        sys.modules.pop(module, None)


def refusal(name: str) -> str:
    with pytest.raises(UserError) as caught:
        resolve(name)
    assert str(caught.value).isprintable(), "an error is one line"
    return str(caught.value)


def test_a_plugin_is_found_by_name_and_imported_only_when_asked_for(install):
    install("wave-kit", "wave_kit", "def string(): return 'string'", waves__string="wave_kit:string")
    assert "waves.string" in names()
    assert "wave_kit" not in sys.modules
    assert resolve("waves.string")() == "string"


def test_every_shipped_factory_is_a_function():
    for name in FACTORIES:
        assert callable(resolve(name))


def test_a_misspelled_simulation_is_refused_with_the_nearest_name(install):
    install("wave-kit", "wave_kit", "def string(): pass", waves__string="wave_kit:string")
    assert refusal("flow.chanel") == "unknown simulation 'flow.chanel'; did you mean 'flow.channel'?"
    assert refusal("waves.strings") == "unknown simulation 'waves.strings'; did you mean 'waves.string'?"
    assert "known names: flow.channel" in refusal("a\nb")


def test_a_plugin_that_takes_a_shipped_name_is_refused(install):
    install("impostor", "impostor", "def channel(): pass", flow__channel="impostor:channel")
    message = refusal("flow.channel")
    assert "simulation 'flow.channel' is registered by simkit and by package 'impostor'; uninstall" in message
    assert callable(resolve("rigid.bouncing_ball"))


def test_two_plugins_with_one_name_are_refused(install):
    install("first", "first", "def string(): pass", waves__string="first:string")
    install("second", "second", "def string(): pass", waves__string="second:string")
    message = refusal("waves.string")
    assert "package 'first'" in message
    assert "package 'second'" in message


@pytest.mark.parametrize(
    ("source", "phrase"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'; install what it needs"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines; repair or uninstall that package"),
        ("def (", "SyntaxError: "),
        ("", "AttributeError: module 'broken_plugin' has no attribute 'string'"),
        ("string = 3", "broken_plugin:string is not a function; register the factory itself"),
    ],
)
def test_a_broken_plugin_gives_one_line_that_names_its_package(install, source, phrase):
    install("broken-plugin", "broken_plugin", source, waves__string="broken_plugin:string")
    message = refusal("waves.string")
    assert message.startswith("simulation 'waves.string' of package 'broken-plugin'")
    assert phrase in message


def test_a_shipped_factory_whose_library_is_missing_says_so(monkeypatch):
    monkeypatch.setitem(registry.FACTORIES, "toy.gone", "no_such_library.toy:toy")
    message = refusal("toy.gone")
    assert "simulation 'toy.gone' of simkit cannot be loaded from no_such_library.toy:toy" in message
    assert "No module named 'no_such_library'; install what it needs" in message
