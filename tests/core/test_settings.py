"""Declared settings: keys, records and parts."""

import contextlib
import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pytest

from simkit.core import settings
from simkit.core.parameter import POSITIVE
from simkit.core.parts import Choice, PartTable, part
from simkit.errors import UserError, nearest
from tests.tables import every

SIDE = {
    "kind": settings.word("what the side is", ("wall", "outflow"), "wall"),
    "velocity": settings.several(settings.formula("a component"), "its velocity", (2,), (0.0, 0.0)),
}
KEYS = {
    "cells": settings.whole("number of cells", low=2),
    "length": settings.number("length", 1.0, POSITIVE),
    "is_periodic": settings.flag("whether it repeats"),
    "lower": settings.table("the lower side", SIDE, {}),
    "bodies": settings.named("bodies", settings.table("one", {"radius": settings.formula("radius")})),
    "marks": settings.several(settings.table("one", {"at": settings.number("where")}), "marks", default=()),
    "start": settings.either(
        "start", settings.formula("one"), settings.several(settings.formula("one"), ""), default=0
    ),
}


def test_absent_keys_have_their_defaults():
    read = settings.read({"cells": 4}, KEYS, "axes.x")
    assert read["length"] == 1.0 and read["lower"]["kind"] == "wall" and read["bodies"] == {} and read["marks"] == ()
    assert read["lower"]["velocity"][1] == settings.FormulaText("0.0", "axes.x.lower.velocity[1]")
    assert read.given == {"cells"}


def test_formulas_know_where_they_stand():
    read = settings.read({"cells": 4, "bodies": {"rod": {"radius": "1/2"}}, "start": ["x", 2]}, KEYS)
    assert read["bodies"]["rod"]["radius"] == settings.FormulaText("1/2", "bodies.rod.radius")
    assert [each.where for each in read["start"]] == ["start[0]", "start[1]"]


def test_a_number_may_be_arithmetic():
    assert settings.read({"cells": 4, "length": "2*pi/4"}, KEYS)["length"] == pytest.approx(math.pi / 2, rel=1e-15)


@every(
    ("entries", "message"),
    [
        ({}, "axes.x.cells is missing; give an integer: number of cells"),
        ({"cells": 1}, "axes.x.cells = 1 is not an integer of at least 2; write one"),
        ({"cells": True}, "axes.x.cells = true is not an integer of at least 2; write one"),
        ({"cells": 4, "length": 0}, "axes.x.length = 0 is not positive; choose a value above 0"),
        ({"cells": 4, "length": "1 - 3"}, "axes.x.length = -2 is not positive; choose a value above 0"),
        ({"cells": 4, "length": "2*h"}, "axes.x.length: column 3 of '2*>>>h': 'h' is not known here"),
        ({"cells": 4, "length": float("nan")}, "axes.x.length = nan is not a finite number; write one"),
        ({"cells": 4, "lenght": 1}, "axes.x.lenght is not a known key; did you mean 'length'?"),
        ({"cells": 4, "lower": {"kind": "wal"}}, "axes.x.lower.kind = 'wal' is unknown; did you mean 'wall'?"),
        ({"cells": 4, "lower": 3}, "axes.x.lower = 3 is no table; write keys and values"),
        ({"cells": 4, "lower": {"velocity": [1]}}, "axes.x.lower.velocity has 1 entry; write 2"),
        ({"cells": 4, "is_periodic": 1}, "axes.x.is_periodic = 1 is neither true nor false; write one of them"),
        ({"cells": 4, "length": 10**400}, "axes.x.length = an integer of 1329 bits is not a finite number; write one"),
        ({"cells": 4, "start": 10**400}, "axes.x.start = an integer of 1329 bits is neither a finite number nor an"),
        ({"cells": 4, "bodies": {"a b": {}}}, "axes.x.bodies: 'a b' is not a name"),
        ({"cells": 4, "bodies": {"a": {}}}, "axes.x.bodies.a.radius is missing; give a number or an expression"),
        ({"cells": 4, "marks": {"at": 1}}, "axes.x.marks = {...} is no list; write several in brackets"),
        ({"cells": 4, "marks": [{"at": 1}, {}]}, "axes.x.marks[1].at is missing"),
        ({"cells": 4, "start": {"x": 1}}, "axes.x.start = {...} is of another kind; write a number"),
        ({"cells": 4, "start": "1 +"}, "axes.x.start: column "),
    ],
)
def test_a_mistake_names_its_key(entries, message):
    with pytest.raises(UserError) as refused:
        settings.read(entries, KEYS, "axes.x")
    assert message in str(refused.value)


def test_all_mistakes_are_told():
    entries = {"lower": {"kind": "wal", "colour": 1}, "bodies": {"a": {"radius": "("}, "b": {}}, "length": -1}
    with pytest.raises(UserError) as refused:
        settings.read(entries, KEYS)
    found = (str(refused.value), *refused.value.others)
    starts = [message.split(" ")[0].rstrip(":") for message in found]
    assert starts == ["cells", "length", "lower.colour", "lower.kind", "bodies.a.radius", "bodies.b.radius"]


def test_the_schema_accepts_exactly_what_is_read():
    schema = settings.schema_of(KEYS)
    sound = {"cells": 4, "length": 2.0, "lower": {"velocity": [1, "x"]}, "bodies": {"a": {"radius": 1}}, "start": ["x"]}
    jsonschema.validate(sound, schema)
    settings.read(sound, KEYS)
    for wrong in ({}, {"cells": 1}, {"cells": 4, "lower": {"colour": 1}}, {"cells": 4, "length": 0}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_all_keys_are_listed_with_their_paths():
    found = dict(settings.listing(KEYS))
    assert set(found) >= {"cells", "lower.velocity", "bodies.NAME.radius", "marks[].at"}
    assert found["lower.kind"].doc == "what the side is"


@dataclasses.dataclass(frozen=True)
class Camera:
    """How something is seen."""

    kind: str = settings.declared(settings.word("projection", ("side", "free")), example="side")
    angle: float | None = settings.declared(settings.number("direction", None, (-90.0, 90.0)))
    label: str = settings.declared(settings.line("its name", "", 8))


RULES = (*settings.needs(("angle",), "kind", "free"), *settings.excludes("kind", ("label",), "side"))
CAMERA = settings.record("a camera", Camera, RULES, "kind")


@every(
    "entries, message",
    [
        ({"kind": "free", "angle": 3}, ""),
        ("side", ""),
        ({"kind": "side", "angle": 3}, "camera.angle has an effect only beside kind = 'free'; add that, or leave"),
        ({"kind": "side", "label": "a"}, "camera.label has no effect beside kind = 'side'; leave it out"),
        ({"kind": "free", "angle": 91}, "camera.angle = 91 is above its upper bound 90; choose a value in [-90, 90]"),
        ({"label": "a"}, "camera.kind is missing; give"),
        (7, "camera.kind = 7 is unknown; choose one of side, free"),
    ],
)
def test_a_record_and_its_schema_follow_the_same_rules(entries, message):
    is_valid = jsonschema.Draft202012Validator(CAMERA.schema).is_valid(entries)
    try:
        assert CAMERA.check(entries, "camera").kind in ("side", "free")
    except UserError as error:
        assert message and message in str(error) and not is_valid
    else:
        assert not message and is_valid


def test_what_is_right_of_a_wrong_table_is_read():
    with pytest.raises(UserError) as refused:
        settings.read({"seen": {"kind": "fre", "angle": 2}, "cells": 1}, {"seen": CAMERA, "cells": KEYS["cells"]})
    assert len(refused.value.others) == 1
    assert refused.value.partial["seen"] == Camera("side", 2.0) and refused.value.partial["cells"] is None


@settings.declares(KEYS)
def factory(*, cells, bodies=None, marks=None, start=None, parameters=None):
    given = {"cells": cells, "bodies": bodies, "marks": marks, "start": start}
    return settings.read({key: value for key, value in given.items() if value is not None}, KEYS)


def test_a_factory_takes_arrays_as_lists_and_numbers():
    radius, marks = {"rod": {"radius": jnp.float32(0.5)}}, [{"at": np.array(2)}]
    arrays = factory(cells=np.int64(4), bodies=radius, marks=marks, start=np.array([1.0, 2.0]))
    plain = factory(cells=4, bodies={"rod": {"radius": 0.5}}, marks=[{"at": 2}], start=[1.0, 2.0])
    assert dict(arrays) == dict(plain)


def test_what_a_factory_cannot_take_is_refused_in_one_line():
    for message, call in {
        r"parameters = \[1\] is no table; write keys and values": lambda: factory(cells=4, parameters=[1]),
        r"start\[0\] = \[1\] is neither a finite number nor an expression": lambda: factory(
            cells=4, start=np.array([[1.0]])
        ),
        "start is an array without numbers yet": lambda: jax.jit(lambda x: factory(cells=4, start=x))(1.0),
    }.items():
        with pytest.raises(UserError, match=message):
            call()


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


def test_the_schema_of_parts_accepts_exactly_what_is_read():
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
