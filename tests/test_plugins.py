"""Registries of parts, also of those of installed packages; failures name the package at fault."""

import sys

import imageio.v3 as imageio
import jax
import jax.numpy as jnp
import pytest

import simkit
from simkit.cli.main import main
from simkit.core.optimization import optimization
from simkit.errors import UserError
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.drawing import render_table
from simkit.scenario.registry import FACTORIES, SIMULATIONS
from tests.tables import every
from tests.toys import toy, toys  # noqa: F401


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a distribution with one module and entry points of one of simkit's groups."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a module may be written again within a second
    modules = []

    def add(distribution: str, module: str, source: str, group: str = "simulations", **entries: str) -> None:
        modules.append(module)
        sys.modules.pop(module, None)
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = "".join(f"{name.replace('__', '.')} = {target}\n" for name, target in entries.items())
        (info / "entry_points.txt").write_text(f"[simkit.{group}]\n{lines}")

    yield add
    for module in modules:
        sys.modules.pop(module, None)


def refusal(name: str) -> str:
    with pytest.raises(UserError) as caught:
        SIMULATIONS.resolve(name)
    assert str(caught.value).isprintable(), "an error is one line"
    return str(caught.value)


def test_a_plugin_is_found_by_name_and_imported_only_when_used(install):
    install("wave-kit", "wave_kit", "def string(): return 'string'", waves__string="wave_kit:string")
    assert "waves.string" in SIMULATIONS.names()
    assert "wave_kit" not in sys.modules
    assert SIMULATIONS.resolve("waves.string")() == "string"


def test_every_shipped_factory_is_a_function():
    for name in FACTORIES:
        assert callable(SIMULATIONS.resolve(name))


def test_a_misspelled_simulation_is_refused_with_the_nearest_name(install):
    install("wave-kit", "wave_kit", "def string(): pass", waves__string="wave_kit:string")
    assert refusal("flow.domian") == "unknown simulation 'flow.domian'; did you mean 'flow.domain'?"
    assert refusal("waves.strings") == "unknown simulation 'waves.strings'; did you mean 'waves.string'?"
    assert "known names: flow.domain" in refusal("a\nb")


def test_a_plugin_that_takes_a_shipped_name_is_refused(install):
    install("impostor", "impostor", "def domain(): pass", flow__domain="impostor:domain")
    message = refusal("flow.domain")
    assert "simulation 'flow.domain' is registered by simkit and by package 'impostor'; uninstall" in message
    assert callable(SIMULATIONS.resolve("rigid.bouncing_ball"))


def test_two_plugins_with_one_name_are_refused(install):
    install("first", "first", "def string(): pass", waves__string="first:string")
    install("second", "second", "def string(): pass", waves__string="second:string")
    message = refusal("waves.string")
    assert "package 'first'" in message
    assert "package 'second'" in message


@every(
    "source, phrase",
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'; install what it needs"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines; repair or uninstall that package"),
        ("def (", "SyntaxError: "),
        ("", "AttributeError: module 'broken_plugin' has no attribute 'string'"),
        ("string = 3", "broken_plugin:string is not a function; register a function"),
    ],
)
def test_a_broken_plugin_gives_one_line_that_names_its_package(install, source, phrase):
    install("broken-plugin", "broken_plugin", source, waves__string="broken_plugin:string")
    message = refusal("waves.string")
    assert message.startswith("simulation 'waves.string' of package 'broken-plugin'")
    assert phrase in message


def test_a_shipped_factory_whose_library_is_missing_says_so(monkeypatch):
    monkeypatch.setitem(FACTORIES, "toy.gone", "no_such_library.toy:toy")
    message = refusal("toy.gone")
    assert "simulation 'toy.gone' of simkit cannot be loaded from no_such_library.toy:toy" in message
    assert "No module named 'no_such_library'; install what it needs" in message


STRIPES = """
import numpy as np
from simkit.core.settings import whole
from simkit.errors import UserError
from simkit.scenario.drawing import view


@view(keys={"height": whole("pixels of a picture", 32, low=16, high=4096)})
class Stripes:
    def __init__(self, clip, size):
        if clip.settings.quantity not in clip.diagnostics:
            raise UserError("stripes are of a diagnostic")
        self.values = clip.diagnostics[clip.settings.quantity]
        self.height = clip.settings.options["height"]

    def __len__(self):
        return len(self.values)

    def image(self, index):
        return np.full((self.height, 48, 3), 16 * index, np.uint8)
"""


def striped(path, **keys):
    """Write the scenario of the toy, drawn by a view from outside."""
    lines = ['view = "stripes"', 'quantity = "energy"', *(f"{key} = {value}" for key, value in keys.items())]
    text = toy().text.replace('view = "field"\nquantity = "position"', "\n".join(lines))
    assert 'view = "stripes"' in text
    path.write_text(text)
    return path


def test_a_view_of_a_package_draws_scenarios(install, tmp_path):
    install("stripe-kit", "stripe_kit", STRIPES, group="views", stripes="stripe_kit:Stripes")
    path = striped(tmp_path / "striped.toml", height=20)
    run = simkit.run(path, output=tmp_path / "run")
    simkit.picture(run).save(tmp_path / "last.png")
    image = imageio.imread(tmp_path / "last.png")
    assert image.shape == (20, 48, 3) and (image == 16 * (run.sizes["time"] - 1)).all()
    assert simkit.picture(run, height=24).data != simkit.picture(run).data


def test_the_keys_of_a_view_of_a_package_are_checked_and_in_the_schema(install, tmp_path):
    install("stripe-kit", "stripe_kit", STRIPES, group="views", stripes="stripe_kit:Stripes")
    missed = []
    for keys, message in (
        ({"height": 8}, "render.height = 8 is not an integer from 16 to 4096; write one"),
        ({"camera": '"side"'}, "render.camera has no effect on view = 'stripes'; leave it out"),
        ({"hieght": 20}, "render.hieght is not a known key; did you mean 'height'?"),
    ):
        with pytest.raises(UserError) as caught:
            simkit.load(striped(tmp_path / "striped.toml", **keys))
        missed += [] if str(caught.value) == f"striped.toml: {message}" else [str(caught.value)]
    assert not missed
    with pytest.raises(UserError, match=r"render\.view = 'stripe' is unknown; did you mean 'stripes'"):
        parse_scenario(toy().text.replace('view = "field"', 'view = "stripe"'), "toy.toml")
    declared = render_table().schema()["properties"]
    assert "stripes" in declared["view"]["enum"]
    assert declared["height"]["description"] == "stripes: pixels of a picture"


DOWNHILL = """
import jax
import jax.numpy as jnp
from simkit.core.optimizers.methods import method
from simkit.core.optimizers.optimizer import Iterate, Optimizer, gradient_is_zero, gradient_norm
from simkit.core.settings import number


@method(keys={"step": number("length of a step", 0.1, (0.0, 1.0))})
def downhill(*, numbers, tolerance, step):
    def begin(problem, position):
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=())

    def advance(problem, iterate):
        return begin(problem, jax.tree.map(lambda z, slope: z - step * slope, iterate.position, iterate.gradient))

    never = lambda iterate, idle: jnp.bool_(False)
    return Optimizer(begin, advance, gradient_is_zero(tolerance), never, gradient_norm)
"""


def test_an_optimizer_of_a_package_is_chosen_by_name_with_its_options(install):
    install("hill-kit", "hill_kit", DOWNHILL, group="optimizers", downhill="hill_kit:downhill")
    start = {"x": jnp.float32(1.0)}

    def after(method):
        simulation = optimization(lambda params, key: params["x"] ** 2, start, "x", {}, method=method)
        return float(simulation.step(simulation.init(start, jax.random.key(0)), start).best["x"])

    assert after("downhill:step=0.25") == pytest.approx(0.5)
    assert after("downhill") == pytest.approx(0.8)
    missed = []
    for method, message in (
        ("downhill:step=2", "step = 2 is above its upper bound 1; choose a value in [0, 1]"),
        ("downhill:stepp=0.1", "stepp is not a known key; did you mean 'step'?"),
        ("downhill:learning_rate=0.1", "learning_rate has no effect on method = 'downhill'; leave it out"),
        ("downhill:quick", "method = 'downhill:quick' has the option 'quick'; write downhill:KEY=VALUE,KEY=VALUE"),
        ("downhil", "method = 'downhil' is unknown; did you mean 'downhill'?"),
    ):
        with pytest.raises(UserError) as caught:
            after(method)
        missed += [] if str(caught.value) == message else [str(caught.value)]
    assert not missed


BACKWARD = """
import dataclasses
from simkit.core.parts import part
from simkit.core.settings import flag
from simkit.jobs.executors.in_this_process import InThisProcess


@dataclasses.dataclass(frozen=True)
class Backward(InThisProcess):
    told: bool = False

    def run(self, chunks, indices, report, warn):
        if self.told:
            warn(f"{len(indices)} chunks, the last one first")
        yield from super().run(chunks, indices[::-1], report, warn)


@part(keys={"told": flag("whether to say so")})
def backward(told):
    return Backward(told=told)
"""


def test_an_executor_of_a_package_computes_the_chunks_of_a_sweep(install, tmp_path, capsys):
    install("order-kit", "order_kit", BACKWARD, group="executors", backward="order_kit:backward")
    path = tmp_path / "toy.toml"
    path.write_text(toy().text)
    line = ["sweep", str(path), "--over", "frequency=1,2", "--chunk", "1", "--no-render", "-o", str(tmp_path / "runs")]
    assert main([*line, "--executor", "backward:told=1"]) == 2
    assert "told = 1 is neither true nor false; write one of them" in capsys.readouterr().err
    assert main([*line, "--executor", "backward:told=true"]) == 0
    assert "2 chunks, the last one first" in capsys.readouterr().err


VERB = """
'''Count letters.'''


def add_arguments(parser):
    parser.add_argument("word")


def main(arguments):
    print(len(arguments.word))
    return 0
"""


def test_a_verb_of_a_package_is_listed_and_runs(install, capsys):
    install("letter-kit", "letter_kit", VERB, group="verbs", letters="letter_kit")
    assert main(["help"]) == 0
    assert "letters   from package 'letter-kit'" in capsys.readouterr().out
    assert main(["letters", "viscosity"]) == 0
    assert capsys.readouterr().out == "9\n"
    assert main(["letter", "viscosity"]) == 2
    assert "unknown verb 'letter'; did you mean 'letters'?" in capsys.readouterr().err


def test_a_verb_that_lacks_a_function_is_refused_by_name(install, capsys):
    install("letter-kit", "letter_kit", "", group="verbs", letters="letter_kit")
    assert main(["letters", "viscosity"]) == 2
    assert "verb 'letters' of package 'letter-kit': letter_kit has no 'add_arguments'" in capsys.readouterr().err


@every(
    "image, kind",
    [("None", "NoneType"), ("np.zeros((32, 48), np.uint8)", "uint8[32, 48]"), ("np.zeros((32, 48, 3))", "float64")],
)
def test_a_view_that_paints_something_else_is_named(install, tmp_path, image, kind):
    source = STRIPES.replace("np.full((self.height, 48, 3), 16 * index, np.uint8)", image)
    install("stripe-kit", "stripe_kit", source, group="views", stripes="stripe_kit:Stripes")
    path = striped(tmp_path / "striped.toml")
    with pytest.raises(UserError, match=r"stripe_kit\.Stripes paints") as caught:
        simkit.picture(simkit.run(path, output=tmp_path / "run", overwrite=True)).save(tmp_path / "last.png")
    assert kind in str(caught.value) and "(height, width, 3) of uint8" in str(caught.value)


def test_a_verb_may_have_its_own_json_and_return_nothing(install, capsys):
    source = VERB.replace('parser.add_argument("word")', 'parser.add_argument("--json")').replace("    return 0\n", "")
    install(
        "letter-kit", "letter_kit", source.replace("arguments.word", "arguments.json"), group="verbs", l="letter_kit"
    )
    assert main(["l", "--json", "four"]) == 0
    assert capsys.readouterr().out == "4\n"
