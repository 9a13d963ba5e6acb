"""Tables of parts: choice by name, by a key, or by default; keys, refusals and schema are those that parts declare."""

import contextlib
from typing import ClassVar

import jsonschema
import pytest

from simkit.core import settings
from simkit.core.parts import Choice, PartTable, part
from simkit.errors import UserError, nearest


@part(
    values={"stiffness": settings.formula("stiffness", unit="energy / length^2")}, excludes={"reach": "it is endless"}
)
def spring():
    return "spring"


@part(keys={"order": settings.whole("its order", 2, low=1)})
def power(order):
    return f"power {order}"


@part(keys={"formula": settings.text("the text")}, excludes={"bath": "which is at rest"})
def typed(formula):
    return formula


@part(values={"rate": settings.formula("rate", unit="1 / time"), "heat": settings.formula("heat", 1.0)})
def cooler():
    return "cooler"


class Registry:
    kind = "energy"
    aliases: ClassVar = {}

    def __init__(self, **parts):
        self.parts = parts

    def names(self):
        return sorted(self.parts)

    def resolve(self, name):
        if name not in self.parts:
            raise UserError(f"unknown energy '{name}'{nearest(name, self.names())}")
        return self.parts[name]

    def blamed(self, name):
        return contextlib.nullcontext()


ENERGY = Choice(Registry(spring=spring, power=power, formula=typed), "energy", "the energy")
BATH = Choice(Registry(cooler=cooler), "bath", "the bath, if there is one", "cooler", is_optional=True)
TABLE = PartTable((ENERGY, BATH), {"reach": settings.number("its reach", 1.0)})


def test_a_part_is_chosen_by_its_name_by_a_key_of_that_name_or_by_one_of_its_keys():
    named = TABLE.read({"energy": "power", "order": 3}, "box")
    assert ENERGY.make(named) == "power 3" and named["reach"] == 1.0 and named["bath"] is None
    assert named.given == {"energy", "order"}
    by_key = TABLE.read({"formula": "x"}, "box")
    assert by_key["energy"] == "formula" and ENERGY.make(by_key) == "x"
    optional = TABLE.read({"energy": "spring", "stiffness": 2, "rate": "k"}, "box")
    assert BATH.make(optional) == "cooler" and optional["heat"].text == "1.0" and optional["stiffness"].text == "2.0"


WRONG = {
    "none": ({"reach": 2}, ["box chooses no energy; give one of energy, formula"]),
    "unknown": (
        {"energy": "powr", "order": 0},
        [
            "box.order = 0 is not an integer of at least 1; write one",
            "box.energy = 'powr' is unknown; did you mean 'power'?",
        ],
    ),
    "of another part": (
        {"energy": "spring", "stiffness": 1, "order": 2},
        ["box.order has no effect on energy = 'spring'; leave it out"],
    ),
    "excluded": (
        {"energy": "spring", "stiffness": 1, "reach": 2},
        ["box.reach has no effect on energy = 'spring', it is endless; leave it out"],
    ),
    "excluded choice": (
        {"formula": "x", "rate": 1},
        ["box.rate has no effect on energy = 'formula', which is at rest; leave it out"],
    ),
    "missing": ({"energy": "spring"}, ["box.stiffness is missing; give a number or an expression: stiffness"]),
    "missing of an optional part": (
        {"energy": "power", "heat": 2},
        ["box.rate is missing; give a number or an expression: rate"],
    ),
    "no key": ({"energy": "power", "ordr": 3}, ["box.ordr is not a known key; did you mean 'order'?"]),
    "no table": (3, ["box = 3 is no table; write keys and values"]),
}


def test_every_mistake_is_one_line_with_its_remedy():
    missed = []
    for case, (entries, messages) in WRONG.items():
        with pytest.raises(UserError) as refused:
            TABLE.read(entries, "box")
        told = [str(refused.value), *refused.value.others]
        if sorted(told) != sorted(messages):
            missed.append((case, told))
    assert not missed


def test_the_schema_accepts_exactly_what_is_read():
    validator = jsonschema.Draft202012Validator(TABLE.schema())
    sound = [
        {"energy": "power"},
        {"energy": "power", "order": 3, "reach": 2},
        {"formula": "x", "reach": 2},
        {"energy": "spring", "stiffness": "k", "rate": 1},
        {"energy": "spring", "stiffness": 1, "bath": "cooler", "rate": 1, "heat": 2},
    ]
    missed = [entries for entries in sound if not validator.is_valid(entries)]
    missed += [case for case, (entries, _) in WRONG.items() if validator.is_valid(entries)]
    assert not missed


def test_the_keys_of_all_parts_are_listed_with_the_parts_that_take_them():
    listed = dict(settings.listing({"box": TABLE.setting("a box")}))
    assert listed["box.order"].doc == "power: its order" and listed["box.reach"].doc == "its reach"
    assert listed["box.stiffness"].unit == "energy / length^2"
    inner = Choice(
        ENERGY.parts, "energy", "the energy", values=("values", settings.named("values", settings.formula("")))
    )
    listed = dict(settings.listing({"box": PartTable((inner,), {}).setting("a box")}))
    assert listed["box.values.stiffness"].doc == "spring: stiffness"


def test_a_class_of_another_kind_than_its_name_is_refused():
    class Wall:
        kind = "wall"

    choice = Choice(Registry(wall=Wall, porous=Wall), "kind", "what it is")
    assert choice.checked_name("wall", "lower.kind") == "wall"
    with pytest.raises(
        UserError, match=r"lower\.kind = 'porous' is a class of the kind 'wall'; register it by that name"
    ):
        choice.checked_name("porous", "lower.kind")
