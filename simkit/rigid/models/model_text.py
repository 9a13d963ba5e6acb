"""Checks of untrusted model text before MuJoCo reads it: files that it names, and work that it requests.

MuJoCo reads text serialized from the checked tree, so that its parser cannot interpret the original differently. A few
hundred bytes can request millions of bodies, so that the work is bounded.
"""

import math
import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from simkit.errors import UserError

MAX_CHARACTERS = 8 * 2**20
# MuJoCo's parser stops at 500, and Python's recursion at 1000.
MAX_DEPTH = 200
FILES = {
    "include": "includes a file",
    "extension": "loads a plug-in",
    "plugin": "loads a plug-in",
    "attach": "includes another model",
    "model": "includes another model",
}


def checked(text: str) -> str:
    """Return the text of a model, serialized from its checked tree.

    Args:
        text: MJCF or URDF.

    Raises:
        UserError: if it is not XML; has a DOCTYPE, an entity or a processing instruction; names a file or a plug-in;
            or requests more work than a text may (see `refuse_too_much_work`).
    """
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"the model's text is over 8 MiB; simplify its meshes, or {REMEDY}")
    builder = _Builder()
    parser = ElementTree.XMLParser(target=builder)
    # Newer releases defer tags of several lines unless told.
    flush = getattr(parser, "flush", lambda: None)
    try:
        for line in text.splitlines(keepends=True):
            parser.feed(line)
            flush()
            builder.line += 1
        root = parser.close()
    except ElementTree.ParseError as error:
        raise UserError(f"the model is not XML: {error}; give MJCF or URDF") from error
    except ValueError as error:  # a character that has no code, such as half of a surrogate pair
        raise UserError("the model is not XML: it has an invalid character; give MJCF or URDF") from error
    for element in root.iter():
        _refuse_files(element)
    refuse_too_much_work(root)
    # Errors of MuJoCo name lines.
    return "\n" * (builder.first - 1) + ElementTree.tostring(root, encoding="unicode")


class _Builder(ElementTree.TreeBuilder):
    """Tree builder that refuses declarations, bounds depth and number of elements, and keeps the line of each.

    Attributes:
        line: that is read.
        first: line of the first element.
    """

    def __init__(self) -> None:
        """Start outside of all elements."""
        super().__init__()
        self.line = self.first = 1
        self._depth = self._elements = self._written = 0

    def data(self, data: str, /) -> None:
        self._written += data.count("\n")
        super().data(data)

    def comment(self, text: str | None, /) -> Element:
        if self._depth:
            self.data("\n" * (text or "").count("\n"))
        return Element("comment")

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH:
            raise UserError(f"the model's elements are nested over {MAX_DEPTH} deep; flatten it, or {REMEDY}")
        if self._elements > MAX_ELEMENTS:
            raise UserError(f"the model has over {MAX_ELEMENTS} elements; simplify it, or {REMEDY}")
        element = super().start(tag, attrs)
        if self._elements == 1:
            self.first = self._written = self.line
        # Of the lines within a tag.
        self.data("\n" * (self.line - self._written))
        return element

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise UserError("the model has a DOCTYPE, whose entities could hide what it names; remove it")

    def pi(self, target: str, text: str | None = None, /) -> Element:
        raise UserError(f"the model has the processing instruction {shown(target)}; remove it")


def _refuse_files(element: Element) -> None:
    """Refuse an element that names files: a text cannot contain them, and must not read others."""
    tag = element.tag.rpartition("}")[2].lower()
    for attribute, value in element.attrib.items():
        # MJCF: file, fileright, ...; URDF: filename.
        if attribute.rpartition("}")[2].lower().startswith("file"):
            raise UserError(
                f"the model's <{tag[:40]}> names the file {shown(value)}, which a text cannot contain; "
                f"{REMEDY}, or define the shape in the text"
            )
    if tag in FILES:
        raise UserError(f"the model's <{tag}> {FILES[tag]}, which is not allowed in a text; {REMEDY}")


def shown(text: str) -> str:
    """Return a text for an error message: in quotes, on one line, shortened."""
    line = repr(text[:80])
    return line if len(line) <= 60 else f"{line[:56]}...'"


MAX_ELEMENTS = 20_000
# MuJoCo compiles a model in a time that grows with the square of the number of bodies, 2 s for these.
MAX_BODIES = 2_000
# Bound on pixels of textures, cells of height fields, coordinates of keyframes, rays of range finders, and time steps
# times bodies in the search for lengths of muscles.
MAX_NUMBERS = 2**24
REMEDY = "give the model as a path in Python"

# The largest value of each number in an attribute, by element; under "*" for all elements.
LIMITS = {
    "*": {"nsample": 1000, "actdim": 100, "dim": 1000, "num": 100, "cellcount": 10},
    "option": dict.fromkeys(("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations"), 10_000)
    | {"sdf_iterations": 1000, "sdf_initpoints": 1000},
    "size": {"memory": 2**30, "nstack": 2**24, "njmax": 10_000, "nconmax": 10_000, "nkey": 10_000, "nuserdata": 10_000}
    | {f"nuser_{kind}": 100 for kind in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")},
    "numeric": {"size": 10_000},
    "texture": {"width": 4096, "height": 4096},
    "hfield": {"nrow": 4096, "ncol": 4096},
    "camera": {"resolution": 4096},
    "mesh": {"params": 200},
    "lengthrange": {"inttotal": 20},
    "replicate": {"count": MAX_ELEMENTS},
    "composite": {"count": MAX_BODIES},
    "flexcomp": {"count": MAX_BODIES},
}
LEAST = {"lengthrange": {"timestep": 1e-3}}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([KMGTPE]?)", re.ASCII)
_BYTES = {letter: 2.0 ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)} | {"": 1.0}
# Assumed number of points of a mesh, each of which is a body of a flexible component.
BODIES_OF_A_MESH = 1000


def refuse_too_much_work(root: Element) -> None:
    """Refuse a model that requests more elements, bodies, cells or iterations than a text may.

    Elements are counted after expansion of every ``<replicate>``; nested replicates multiply.

    Args:
        root: root of the element tree of the model.

    Raises:
        UserError: naming the element and the bound.
    """
    for element in root.iter():
        _refuse_large_numbers(element)
    elements, bodies = _counts(root, 1)
    _refuse_above(MAX_ELEMENTS, {"elements": elements})
    _refuse_above(MAX_BODIES, {"bodies": bodies})
    keys = 7 * bodies * sum(1 for _ in root.iter("key"))
    pixels = 6 * _most(root, "texture", "width") * _most(root, "texture", "height") * _number_of(root, "texture")
    cells = sum(_product(field, "nrow") * _product(field, "ncol") for field in root.iter("hfield"))
    views = max((_product(camera, "resolution") for camera in root.iter("camera")), default=0)
    rays = views * _number_of(root, "rangefinder")
    work = {
        "coordinates of keyframes": keys,
        "pixels of textures": pixels,
        "cells of height fields": cells,
        "rays of range finders": rays,
        "time steps times bodies in the search for lengths of actuators": _length_steps(root) * bodies,
    }
    _refuse_above(MAX_NUMBERS, work)


def _refuse_above(most: int, work: dict[str, float]) -> None:
    for what, count in work.items():
        if count > most:
            raise UserError(
                f"the model requests {count:g} {what}; a text is allowed at most {most}; choose fewer, or {REMEDY}"
            )


def _length_steps(root: Element) -> float:
    """Return the number of time steps in which MuJoCo finds lengths of muscles, or of all actuators if requested."""
    settings = next(root.iter("lengthrange"), Element("lengthrange"))
    muscles = any("muscle" in (element.tag, element.get("dyntype"), element.get("gaintype")) for element in root.iter())
    if not muscles and "mode" not in settings.attrib:
        return 0.0
    (_, total), *_ = _numbers(settings, "inttotal") or [("", 10.0)]
    (_, step), *_ = _numbers(settings, "timestep") or [("", 0.01)]
    return 2 * total / step * sum(len(actuators) for actuators in root.iter("actuator"))


def _counts(element: Element, copies: float) -> tuple[float, float]:
    """Return the numbers of elements and of bodies in copies of an element."""
    tag = element.tag
    bodies = copies if tag in ("body", "link") else 0
    if tag in ("composite", "flexcomp"):
        from_mesh = BODIES_OF_A_MESH if "mesh" in element.attrib else 1
        points = len(element.get("point", "").split()) / 3
        bodies = copies * max(from_mesh, points, _product(element, "count"))
    elements = copies + bodies
    inside = copies * _product(element, "count") if tag == "replicate" else copies
    for child in element:
        more, carried = _counts(child, inside)
        elements, bodies = elements + more, bodies + carried
    return elements, bodies


def _refuse_large_numbers(element: Element) -> None:
    for attribute, most in (LIMITS["*"] | LIMITS.get(element.tag, {})).items():
        for word, value in _numbers(element, attribute):
            if not abs(value) <= most:
                _refuse(element, attribute, word, f"not a number of at most {most}")
    for attribute, least in LEAST.get(element.tag, {}).items():
        for word, value in _numbers(element, attribute):
            if not value >= least:
                _refuse(element, attribute, word, f"below {least}")


def _refuse(element: Element, attribute: str, word: str, how: str) -> None:
    shown = word if len(word) <= 30 else f"{word[:27]}..."
    raise UserError(f"the model's <{element.tag}> has {attribute} = {shown!r}, which is {how}; change it, or {REMEDY}")


def _numbers(element: Element, attribute: str) -> list[tuple[str, float]]:
    """Return the numbers of an attribute, each with its word; a word that is not a number counts as infinite."""
    words = element.get(attribute, "").split()
    matches = [(word, _NUMBER.fullmatch(word)) for word in words[:100]]
    return [(word, float(match[1]) * _BYTES[match[2]] if match else math.inf) for word, match in matches]


def _product(element: Element, attribute: str) -> float:
    return math.prod(max(1.0, value) for _, value in _numbers(element, attribute))


def _most(root: Element, tag: str, attribute: str) -> float:
    """Return the largest value in any element of a kind, since elements inherit values of `<default>`."""
    return max((_product(element, attribute) for element in root.iter(tag)), default=0.0)


def _number_of(root: Element, tag: str) -> int:
    return sum(1 for _ in root.iter(tag))
