"""Helpers for error messages."""

import ast
import time
from pathlib import Path

import pytest

import simkit
from simkit.core import settings
from simkit.errors import Mistakes, Remedy, UserError, about, argument, closest, likeliest, nearest, one_line, spelled


def test_an_unknown_name_where_none_is_known_has_a_remedy():
    assert nearest("cells", []) == "; there are none, so leave it out"


def test_a_name_of_any_length_is_compared_in_bounded_time():
    begin = time.process_time()
    for compare in (nearest, closest, likeliest):
        compare("cells" * 100_000, ["cells", "time_step"] * 20)
    # Whole names would take minutes.
    assert time.process_time() - begin < 1


def test_the_remedy_at_the_end_of_a_long_message_is_kept():
    message = one_line(f"unknown minimizer '{'a' * 1000}'; did you mean 'fire'?")
    assert message == f"unknown minimizer '{'a' * 29}...a'; did you mean 'fire'?"
    for count in (300, 300_000):
        message = one_line("a " * count + "; choose another")
        assert len(message) == 200 and message.startswith("a a a") and message.endswith("a a ; choose another")
    assert one_line("a" * 300_000 + "; choose another") == f"{'a' * 30}...aa; choose another"


def test_what_is_no_text_is_near_no_name_and_each_name_is_told_once():
    assert nearest("x", ["fire", "lbfgs", "fire"]) == "; known names: fire, lbfgs"
    assert nearest(7.0, ["fire", "lbfgs"]) == "; known names: fire, lbfgs"


def test_a_name_in_other_capital_letters_is_nearest():
    assert nearest("mean_U", ["mean_v", "mean_u", "mean_w"]) == "; did you mean 'mean_u'?"


PARTS = {"parts": settings.several(settings.table("one", {"method": settings.word("how", ("fire", "lbfgs"))}), "all")}


def test_an_error_carries_its_key_what_is_allowed_and_the_remedy():
    found = {
        "fyre": ("parts[1].method", ("fire", "lbfgs"), Remedy("replace", "fire")),
        "newton": ("parts[1].method", ("fire", "lbfgs"), None),
    }
    for word, data in found.items():
        with pytest.raises(UserError) as caught:
            settings.read({"parts": [{"method": "fire"}, {"method": word}]}, PARTS)
        assert (caught.value.key, caught.value.allowed, caught.value.remedy) == data, word
    with pytest.raises(UserError) as caught:
        settings.read({"parts": [{"metod": "fire"}], "more": 1}, PARTS)
    unknown, *others = (caught.value, *caught.value.further)
    assert (unknown.key, unknown.allowed, unknown.remedy) == ("more", ("parts",), Remedy("remove"))
    assert [(each.key, each.remedy) for each in others] == [
        ("parts[0].metod", Remedy("rename", "method")),
        ("parts[0].method", None),
    ]
    first = caught.value.within("config", "mine.toml: [config]: ")
    assert [each.key for each in (first, *first.further)] == ["config.more", *(f"config.{each.key}" for each in others)]
    assert str(first).startswith("mine.toml: [config]: more is not a known key") and first.remedy == unknown.remedy


def test_a_suggested_name_is_data_wherever_a_message_suggests_it():
    """Text made of a `Hint` is none: no f-string may take up what `nearest` returns."""
    assert UserError("no 'cels'", nearest("cels", ["cells"]), "; or none").meant == "cells"
    assert UserError("no 'x'", nearest("x", ["cells"])).meant is None
    assert UserError("no 'cels'", nearest("cels", ["cells"])).within("a", "file: ").as_data["did_you_mean"] == "cells"
    for path in Path(simkit.__file__).parent.rglob("*.py"):
        parts = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FormattedValue))
        calls = (part.func for part in parts if isinstance(part, ast.Call))
        assert not {"nearest", "hint"} & {getattr(call, "id", getattr(call, "attr", "")) for call in calls}, path


def test_mistakes_are_collected_in_order_with_the_key_of_their_block():
    mistakes = Mistakes()
    with mistakes.kept("outer"):
        raise UserError("first", further=[UserError("second", key="own")])
    with mistakes.kept("later"), about("inner"):
        raise UserError("third")
    with pytest.raises(UserError, match="first") as caught:
        mistakes.raise_if_any()
    assert [each.key for each in (caught.value, *caught.value.further)] == ["outer", "own", "inner"]
    assert caught.value.others == ("second", "third")


def test_an_argument_is_written_as_the_caller_writes_it():
    assert (argument("output"), argument("overwrite", "True")) == ("output=", "overwrite=True")
    with spelled(lambda name, value: f"--{name} {value}".strip()):
        assert (argument("output"), argument("batch", "16")) == ("--output", "--batch 16")
    assert argument("output") == "output="
