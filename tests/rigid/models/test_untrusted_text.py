"""The text of an untrusted model opens no file, and requests bounded work."""

import re
import tracemalloc

import mujoco
import pytest

from simkit.errors import UserError
from simkit.rigid.models.contact_pairs import most_pairs
from simkit.rigid.models.mjcf import from_text
from simkit.rigid.models.model_text import checked
from simkit.rigid.models.source import compiled, read_spec
from tests.tables import every

BALL = "<body><freejoint/><geom size='.1'/></body>"


def inside(text, before="", after=""):
    return f"<mujoco>{before}<worldbody>{BALL}{text}</worldbody>{after}</mujoco>"


def refusal(text):
    with pytest.raises(UserError) as caught:
        from_text(model=text, engine="mujoco")
    message = str(caught.value)
    assert message.isprintable() and len(message) < 400
    return message


def test_a_comment_inside_a_doctype_cannot_hide_a_file(tmp_path):
    """MuJoCo's parser ends a DOCTYPE at its first ``>``, and reads text that other parsers take for a comment."""
    (tmp_path / "secret.xml").write_text(f"<mujoco>{BALL}</mujoco>")
    hidden = f'<mujoco><worldbody><include file="{tmp_path / "secret.xml"}"/></worldbody></mujoco>'
    text = f"<!DOCTYPE mujoco [<!-- >{hidden} --> ]>{inside('')}"
    assert "the model has a DOCTYPE, whose entities could hide what it names; remove it" in refusal(text)


def test_a_number_that_is_not_one_is_refused_without_a_log_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert "XML contains a 'NaN'" in refusal(inside('<geom size=".1" pos="nan 0 0"/>'))
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")


def test_mujoco_reads_only_what_was_checked():
    text = f"<?xml version='1.0'?><!-- <include file='a'/> -->{inside('<!-- > -->')}"
    assert checked(text) == inside("").replace("'.1'/>", '".1" />').replace("<freejoint/>", "<freejoint />")


def schema():
    """Return the attributes of each element of MuJoCo's schema, (element, attribute)."""
    element, found = "", []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        first = re.match(r" *([\w()]+) \([!?*R]\)", line)
        element = first[1] if first else element
        found += [(element, word) for word in line[27:].split()]
    return found


def test_every_attribute_of_mujoco_that_names_a_file_is_refused():
    files = {(element, name) for element, name in schema() if "file" in name}
    assert {("mesh", "file"), ("texture", "fileright"), ("flexcomp", "file"), ("model", "file")} <= files
    for element, name in files:
        text = f'<mujoco><asset><{element} {name}="/etc/passwd"/></asset></mujoco>'
        assert f"the model's <{element}> names the file '/etc/passwd'" in refusal(text)
    urdf = '<robot name="a"><link name="b"><visual><mesh filename="c.stl"/></visual></link></robot>'
    assert "the model's <mesh> names the file 'c.stl'" in refusal(urdf)


@every(
    ("text", "phrase"),
    [
        ("<mujoco><?xml-stylesheet href='a'?></mujoco>", "the processing instruction 'xml-stylesheet'"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><mujoco>&b;</mujoco>', "has a DOCTYPE"),
        ("<mujoco>&lol;</mujoco>", "the model is not XML: undefined entity"),
        ("<mujoco>\ud800</mujoco>", "it has an invalid character"),
        ('<mujoco xmlns:x="a"><x:include x:file="b"/></mujoco>', "<include> names the file 'b'"),
        (inside("", "<extension><plugin plugin='mujoco.pid'/></extension>"), "<extension> loads a plug-in"),
        (inside('<attach model="a" body="b" prefix="c"/>'), "<attach> includes another model"),
    ],
)
def test_declarations_files_and_plugins_are_refused(text, phrase):
    assert phrase in refusal(text)


HUNDREDS = '<replicate count="100">'
TOO_MUCH = {
    "replicate": (inside('<replicate count="100000"><site/></replicate>'), "<replicate> has count = '100000'"),
    "nested replicates": (inside(HUNDREDS * 3 + BALL + "</replicate>" * 3), "requests 4.0"),
    "bodies": (inside(f'<replicate count="2500">{BALL}</replicate>'), "bodies; a text is allowed at most 2000"),
    "flexible": (inside('<flexcomp name="f" count="100 100 10" spacing="1 1 1"/>'), "requests 100007 elements"),
    "composite": (inside('<composite type="cable" count="100 100 10"/>'), "requests 100007 elements"),
    "texture": (inside("", "<asset><texture builtin='flat' width='9999' height='1'/></asset>"), "width = '9999'"),
    "textures": (
        inside("", "<asset>" + "<texture builtin='flat' width='4096' height='4096'/>" * 9 + "</asset>"),
        "pixels of textures",
    ),
    "height field": (
        inside("", "<asset>" + "<hfield nrow='4096' ncol='4096' size='1 1 1 1'/>" * 2 + "</asset>"),
        "requests 3.35544e+07 cells of height fields",
    ),
    "memory": (inside("", "<size memory='100G'/>"), "<size> has memory = '100G'"),
    "not a number": (inside("", "<size nuserdata='1e400'/>"), "<size> has nuserdata = '1e400'"),
    "user data": (inside("", "<size nuser_geom='1000000'/>"), "<size> has nuser_geom = '1000000'"),
    "iterations": (inside("", "<option iterations='2000000000'/>"), "<option> has iterations = '2000000000'"),
    "sensor": (inside("", "", "<sensor><user dim='1000000'/></sensor>"), "<user> has dim = '1000000'"),
    "muscles": (inside("", "<compiler><lengthrange inttotal='1e9'/></compiler>"), "inttotal = '1e9', which is not a"),
    "short steps": (inside("", "<compiler><lengthrange timestep='0'/></compiler>"), "which is below 0.001"),
    "depth": ("<mujoco>" + "<a>" * 100_000, "nested over 200 deep"),
    "elements": ("<mujoco>" + "<a/>" * 1_000_000 + "</mujoco>", "has over 20000 elements"),
    "size": ("<mujoco>" + " " * 2**23 + "</mujoco>", "the model's text is over 8 MiB"),
}


@every(("text", "phrase"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_text_that_requests_too_much_is_refused_before_expansion(text, phrase):
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=re.escape(phrase)):
            checked(text)  # before MuJoCo reads it
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_replicates_within_the_bounds_are_expanded():
    model = compiled(read_spec(inside(f'<replicate count="3"><replicate count="4">{BALL}</replicate></replicate>')))
    assert model.nbody == 2 + 12


def test_engines_on_jax_refuse_more_contacts_than_memory_holds():
    text = inside(f'<replicate count="400" offset="1 0 0">{BALL}</replicate><geom type="plane" size="1 1 1"/>')
    # 401 balls with each other and with the floor.
    assert most_pairs(compiled(read_spec(text))) == 401 * 400 // 2 + 401
    for engine in ("mjx", "brax-spring"):
        with pytest.raises(UserError, match=f"{engine} would allocate contacts for 80601 pairs of shapes"):
            from_text(model=text, engine=engine)


def test_pairs_are_counted_by_the_bits_that_allow_them():
    geoms = "<geom size='.1' contype='{}' conaffinity='{}'/>"
    bodies = "".join(f"<body><freejoint/>{geoms.format(*bits)}</body>" for bits in ((1, 0), (0, 1), (2, 2), (0, 0)))
    # The first with the second; the third with none; the ball of bits 1 and 1 with the first two.
    assert most_pairs(compiled(read_spec(inside(bodies)))) == 3
