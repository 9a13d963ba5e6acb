"""Overrides of scenarios by ``--set`` and ``--over``, and refusal of values that the file does not allow."""

import dataclasses
import itertools
import math

import pytest

from simkit.errors import UserError
from simkit.scenario import registry
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from simkit.scenario.overrides import MAX_COUNT, apply_overrides, parse_over, with_values
from tests.scenario.examples import GOOD
from tests.tables import every


@pytest.fixture(autouse=True)
def any_config(monkeypatch, toy):
    """Let the toy take any configuration."""
    monkeypatch.setitem(registry.FACTORIES, "toy.decay", "tests.scenario.examples:lenient")


@pytest.fixture
def scenario():
    return parse_scenario(GOOD, "toy.toml")


def refusal(function, *arguments) -> str:
    with pytest.raises(UserError) as caught:
        function(*arguments)
    assert str(caught.value).isprintable(), "an error is one line"
    return str(caught.value)


def test_one_call_changes_params_config_and_run_alike(scenario):
    settings = ["rate=8", "cells=[64,32]", "steps=2000", "every=20", "precision=float64", "seed=9", "width=3"]
    changed = apply_overrides(scenario, settings)
    assert changed.parameters["rate"].default == 8.0
    assert changed.config == {"cells": (64, 32), "width": 3.0, "method": "euler", "periodic": True}
    assert isinstance(changed.config["width"], float)
    assert vars(changed.run) == {"steps": 2000, "every": 20, "precision": "float64", "seed": 9, "stop": ""}


@every("value", [2**31, -(2**31) - 1, 10**12, 2**63 - 1])
def test_integers_beyond_32_bits_are_refused(scenario, value):
    for setting in (f"cells=[{value}, 3]", f"config.other={value}"):
        message = refusal(apply_overrides, scenario, [setting])
        assert "is not an integer of 32 bits; write one" in message


def test_a_parameter_may_be_a_large_integer(scenario):
    assert apply_overrides(scenario, ["offset=3000000000"]).parameters["offset"].default == 3e9
    assert "is an integer beyond 2^53" in refusal(apply_overrides, scenario, [f"offset={2**53 + 1}"])


def test_the_original_scenario_is_unchanged(scenario):
    apply_overrides(scenario, ["rate=8", "width=3.0"])
    assert scenario == parse_scenario(GOOD, "toy.toml")


@every(
    "text, value",
    [("0.25", 0.25), (" 2 ", 2.0), (".5", 0.5), ("+.5e0", 0.5), ("5.", 5.0), ("1e-1", 0.1), ("0.25 # comment", 0.25)],
)
def test_loose_notations_of_numbers_are_read(scenario, text, value):
    assert apply_overrides(scenario, [f"rate={text}"]).parameters["rate"].default == value


@every(
    "text, value",
    [
        ("exact", "exact"),
        ('"with space"', "with space"),
        ("'64'", "64"),
        ("models/ant.xml", "models/ant.xml"),
        ("/a.b", "/a.b"),
    ],
)
def test_a_bare_word_is_a_string(scenario, text, value):
    assert apply_overrides(scenario, [f"method={text}"]).config["method"] == value


def test_a_matrix_is_set_whole(scenario):
    changed = apply_overrides(scenario, ["coupling=[[0, 1], [1.5, 2]]"])
    assert changed.parameters["coupling"].default == ((0.0, 1.0), (1.5, 2.0))


def test_a_prefix_resolves_an_ambiguous_key():
    scenario = parse_scenario(GOOD.replace("width = 2.0", "seed = 5"), "toy.toml")
    message = refusal(apply_overrides, scenario, ["seed=1"])
    assert "--set seed is ambiguous; write config.seed or run.seed" in message
    changed = apply_overrides(scenario, ["run.seed=1", "config.seed=2", "params.rate=1.0"])
    assert (changed.run.seed, changed.config["seed"], changed.parameters["rate"].default) == (1, 2, 1.0)


def test_a_setting_and_a_parameter_of_one_name_are_distinguished():
    scenario = parse_scenario(GOOD.replace("width = 2.0", "rate = 5"), "toy.toml")
    message = refusal(apply_overrides, scenario, ["rate=1"])
    assert message == "--set rate is ambiguous; write config.rate or params.rate"
    changed = apply_overrides(scenario, ["config.rate=2", "params.rate=1.0"])
    assert (changed.config["rate"], changed.parameters["rate"].default) == (2, 1.0)


def test_a_setting_that_is_the_parameter_of_its_name_leaves_the_name_to_the_parameter():
    scenario = parse_scenario(GOOD.replace("width = 2.0", 'rate = "rate"'), "toy.toml")
    changed = apply_overrides(scenario, ["rate=1"])
    assert (changed.config["rate"], changed.parameters["rate"].default) == ("rate", 1.0)


def test_a_config_prefix_reaches_arguments_that_the_file_leaves_at_their_default(scenario):
    assert apply_overrides(scenario, ["config.order=4"]).config["order"] == 4


def test_parameters_that_the_file_does_not_mention_are_set_and_swept_like_others(scenario):
    changed = apply_overrides(scenario, ["params.offset=4"])
    offset = changed.parameters["offset"]
    assert (offset.default, offset.bounds, offset.doc) == (4.0, (-math.inf, math.inf), "")
    assert parse_over(changed, "offset=1,2") == ("offset", (1.0, 2.0))
    assert apply_overrides(scenario, ["offset=4"]) == changed
    assert parse_over(scenario, "offset=1,2") == ("offset", (1.0, 2.0))
    message = refusal(apply_overrides, scenario, ["order=4"])
    assert "an argument of toy.decay that toy.toml does not mention is written config.order" in message
    assert "--set params.offset = 'x' is no number" in refusal(apply_overrides, scenario, ["params.offset=x"])


@every(
    "settings, phrase",
    [
        (["rate=-5"], "--set rate = -5 is below its lower bound 0.1; choose a value in [0.1, 10]"),
        (["params.rate=50"], "--set params.rate = 50 is above its upper bound 10; choose a value in [0.1, 10]"),
        (["rate=nan"], "--set rate = nan is not a finite number of float64; write one"),
        (["rate=inf"], "--set rate = inf is not a finite number"),
        (["rate=1e999"], "--set rate = inf is not a finite number"),
        (["rate=true"], "--set rate = true is no number; write one"),
        (["rate=fast"], "--set rate = 'fast' is no number; write one"),
        (["rate=[1]"], "--set rate = [1] does not have the default's shape; write it like 0.5"),
        (["coupling=1"], "--set coupling = 1 does not have the default's shape; write it like [[1, 0.5], [0.5, 1]]"),
        (["coupling=[[1,1],[1,9]]"], "--set coupling[1][1] = 9 is above its upper bound 2"),
        (["raet=1"], "--set raet is not a key of toy_decay; did you mean 'rate'?"),
        (["params.cells=1"], "--set params.cells is not a parameter of toy.decay"),
        (["run.step=1"], "--set run.step is not a key of toy_decay; did you mean 'steps'?"),
        (["zzz=1"], "--set zzz is not a key of toy_decay; known names: cells, coupling, every"),
        (["config.=1"], "--set config. is not a name"),
        (["render.quantity=profile"], "--set render.quantity is not a key of toy_decay"),
        (["rate"], "--set rate has no value; write --set rate=value"),
        (["=3"], "--set  is not a key of toy_decay"),
        (["rate="], "--set rate= is not a value; write a number, true, false, a word"),
        (["rate=1 2"], "--set rate=1 2 is not a value"),
        (["rate=1\nx=2"], "--set rate=1 x=2 is not a value"),
        (["ra\nte=1"], "--set ra te is not a key"),
        (["rate=1", "rate=2"], "--set rate is given twice; keep one of them"),
        (["rate=1", "params.rate=2"], "--set params.rate names params.rate twice; keep one of them"),
        (["cells=64"], "--set cells = 64 is no list; write several in brackets"),
        (["cells=[64]"], "--set cells has 1 entry; write 2"),
        (["cells=[64, 1.5]"], "--set cells[1] = 1.5 is not an integer of 32 bits; write one"),
        (["cells=[64, 2.0]"], "--set cells[1] = 2.0 is not an integer of 32 bits; write 2"),
        (["periodic=1"], "--set periodic = 1 is neither true nor false; write one of them"),
        (["periodic=True"], "--set periodic = 'True' is neither true nor false; write one of them"),
        (["method=3"], "--set method = 3 is no text; write it in quotes"),
        (["width=wide"], "--set width = 'wide' is no number; write one"),
        (['config.order={"a b" = 1}'], "--set config.order.a b is not a name"),
        (["width.more=1"], "has no 'more'; end the key before it"),
        (
            [f'config.start="base64:\\n{"A" * 60}\\nBBBB"', "config.start.run=runs/demo"],
            "--set config.start.run: a text of 3 lines has no 'run'; end the key before it, and give all of the value",
        ),
        (["cells.2=1"], "--set cells.2: '2' is none of its 2 entries; count from 0"),
        (["cells.x=1"], "--set cells.x: 'x' is none of its 2 entries; count from 0"),
        (["steps=1e3"], "--set steps = 1000.0 is not an integer of at least 1; write 1000"),
        (["steps=0"], "--set steps = 0 is not an integer of at least 1; write one"),
        (["precision=half"], "--set precision = 'half' is unknown; choose one of float32, float64"),
        (["seed=-1"], "--set seed = -1 is not an integer from 0 to 4294967295; write one"),
        (["rate=" + "[" * 50_000], "is not a value"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(scenario, settings, phrase):
    assert phrase in refusal(apply_overrides, scenario, settings)


@every(
    "settings, phrase",
    [
        (["steps=1001"], "steps = 1001 is not a multiple of every = 10"),
        (["every=30"], "--set every: steps = 100 is not a multiple of every = 30"),
        (["steps=3"], "--set steps: steps = 3 is not a multiple of every = 10; use --set steps=10, or --set every=3"),
    ],
)
def test_steps_that_are_no_multiple_of_every_are_refused_with_both_remedies(scenario, settings, phrase):
    assert phrase in refusal(apply_overrides, scenario, settings)


def test_each_remedy_for_indivisible_steps_works(scenario):
    for repaired in (["steps=1000"], ["steps=1010"], ["steps=1001", "every=11"]):
        run = apply_overrides(scenario, repaired).run
        assert run.steps % run.every == 0


def test_values_given_as_data_are_checked_like_settings(scenario):
    assert with_values(scenario, {"params.rate": 2, "steps": 50}).parameters["rate"].default == 2.0
    assert "rate = 50 is above its upper bound 10" in refusal(with_values, scenario, {"rate": 50})


def test_every_value_of_a_scenario_can_be_set_to_itself(scenario):
    values = {
        **{f"params.{name}": parameter.default for name, parameter in scenario.parameters.items()},
        **{f"config.{name}": value for name, value in scenario.config.items()},
        **{f"run.{name}": value for name, value in vars(scenario.run).items()},
    }
    assert with_values(scenario, values) == scenario


def test_a_linear_range_has_both_ends_and_equal_steps(scenario):
    name, values = parse_over(scenario, "rate=1:10:4")
    assert (name, values) == ("rate", (1.0, 4.0, 7.0, 10.0))


def test_a_range_may_descend(scenario):
    assert parse_over(scenario, "params.rate = 10:1:4") == ("rate", (10.0, 7.0, 4.0, 1.0))


def test_a_geometric_range_has_both_ends_exactly_and_equal_ratios(scenario):
    _, values = parse_over(scenario, "rate=0.1:10:5:log")
    assert (values[0], values[-1]) == (0.1, 10.0)
    assert values[2] == 1.0
    # 10**log10(x) is good to a few units of 2.2e-16.
    for left, right in itertools.pairwise(values):
        assert math.isclose(right / left, math.sqrt(10.0), rel_tol=1e-14)


@every("spec", ["0.1:10:99991", "0.1:10:99991:log", "10:0.1:777:log"])
def test_rounding_never_moves_a_range_past_the_bounds(scenario, spec):
    _, values = parse_over(scenario, f"rate={spec}")
    assert min(values) == 0.1
    assert max(values) == 10.0
    assert len(values) == len(set(values)) == int(spec.split(":")[2])


def test_a_list_gives_its_numbers_in_order(scenario):
    assert parse_over(scenario, "rate=1, .5,4e0")[1] == (1.0, 0.5, 4.0)


@every(
    "text, phrase",
    [
        ("rat=1:2:3", "--over rat is not a parameter of toy_decay; did you mean 'rate'?"),
        ("cells=1:2:3", "--over cells is not a parameter of toy_decay; write --over config.cells=a,b"),
        ("run.steps=1:2:3", "--over run.steps is not a parameter of toy_decay"),
        ("coupling=0:1:3", "--over coupling is an array; name a parameter that is a single number"),
        ("rate", "--over rate is not a range; write --over rate=low:high:count"),
        ("rate=", "--over rate= is not a range"),
        ("rate=1", "--over rate gives 1 value; give 2 to 100000, or use --set for one"),
        ("rate=1:2", "--over rate=1:2 is not a range; write --over rate=low:high:count or low:high:count:log"),
        ("rate=1:2:3:geo", "--over rate=1:2:3:geo is not a range"),
        ("rate=1:2:3:log:4", "is not a range"),
        ("rate=1:2:1", "--over rate count = 1 is not an integer from 2 to 100000; write one"),
        (f"rate=1:2:{MAX_COUNT + 1}", "--over rate count = 100001 is not an integer from 2 to 100000"),
        ("rate=1:2:2.5", "--over rate count = 2.5 is not an integer from 2 to 100000"),
        ("rate=1:2:many", "--over rate count = 'many' is not an integer from 2 to 100000"),
        ("rate=0.01:2:3", "--over rate = 0.01 is below its lower bound 0.1; choose a value in [0.1, 10]"),
        ("rate=1:20:3", "--over rate = 10.5 is above its upper bound 10; choose a value in [0.1, 10]"),
        ("rate=0:2:3:log", "--over rate has an end that is not positive; a geometric range needs both ends above 0"),
        ("rate=1:1:3", "--over rate has 1.0 twice; give each once"),
        ("rate=1,2,1.0", "--over rate has 1.0 twice; give each once"),
        ("rate=1,,2", "--over rate= is not a value"),
        ("rate=1,two", "--over rate = 'two' is no number; write one"),
        ("rate=nan,1", "--over rate = nan is not a finite number"),
        ("rate=1:inf:3", "--over rate = inf is not a finite number"),
        ("ra\nte=1:2:3", "--over ra te is not a parameter"),
    ],
)
def test_a_bad_range_is_refused_in_one_line(scenario, text, phrase):
    assert phrase in refusal(parse_over, scenario, text)


def test_an_argument_that_the_file_does_not_mention_is_suggested_with_its_table(scenario, monkeypatch):
    monkeypatch.setitem(registry.FACTORIES, "toy.decay", "tests.scenario.examples:decay")
    brief = dataclasses.replace(scenario, config={"cells": (4, 3)})
    message = refusal(apply_overrides, brief, ["perodic=true"])
    assert message == "--set perodic is not a key of toy_decay; did you mean 'config.periodic'?"
    assert apply_overrides(brief, ["config.periodic=true"]).config["periodic"] is True


def test_a_key_inside_an_argument_that_the_file_does_not_mention_is_set_as_in_the_file():
    fluid = load("lennard_jones_fluid")
    assert "relax" not in fluid.config
    assert apply_overrides(fluid, ["config.relax.force_tolerance=1e-3"]).config["relax"] == {"force_tolerance": 1e-3}
    assert apply_overrides(fluid, ["config.relax.a.b=1"]).config["relax"] == {"a": {"b": 1}}
    assert apply_overrides(load("viscosity_from_frames"), ["config.cells.0=12"]).config["cells"] == (12, 32)


@every(
    "name, key, phrase",
    [
        ("channel_flow", "config.relax.pressure", "'relax' is not an argument of flow.domain; known names: axes, c"),
        ("lennard_jones_fluid", "config.relx.pressure", "did you mean 'config.relax.pressure'?"),
        ("lennard_jones_fluid", "relx.pressure", "did you mean 'config.relax.pressure'?"),
        ("lennard_jones_fluid", "config.render.quantity", "only values of [params], [config] and [run] are set for a"),
        ("lennard_jones_fluid", "config.fields.0.energy", "'0' is none of its 0 entries"),
        ("lennard_jones_fluid", f"config.interactions.{'9' * 5000}", "is none of its 1 entries; count from 0"),
        ("lennard_jones_fluid", "config.relax.", "--set config.relax. is not a name"),
    ],
)
def test_a_key_inside_an_unknown_argument_names_it_and_the_nearest(name, key, phrase):
    assert phrase in refusal(apply_overrides, load(name), [f"{key}=1"])


@every(
    "scenario, setting",
    [
        ("lid_driven_cavity", {"config.observed": ["u"]}),  # a shorter list than in the file
        ("binary_glass", {"config.task": "relax"}),  # a word in place of a list
        ("trapped_charges", {"config.interactions": [{"energy": "1/r"}, {"energy": "1/r**2"}]}),
    ],
)
def test_declared_settings_may_have_another_form_than_in_the_file(scenario, setting):
    ((key, value),) = setting.items()
    found = with_values(load(scenario), setting).config[key.removeprefix("config.")]
    assert found == (tuple(value) if isinstance(value, list) else value)


def test_a_value_of_many_characters_is_refused_before_it_is_parsed():
    """Parsing takes a hundred times the memory of the text."""
    message = refusal(apply_overrides, load("projectile"), [f"config.a={'9' * 5_000_000}"])
    assert message == "--set config.a: a value of 5000000 characters; write at most 1048576"
