"""Checks of untrusted model text before MuJoCo reads it: files that it names, and work that it requests.

MuJoCo reads text serialized from the checked tree, so that its parser cannot interpret the original differently.
"""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from simkit.errors import UserError
from simkit.rigid.models.model_work import MAX_ELEMENTS, REMEDY, refuse_too_much_work

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
            or requests more work than a text may (see `simkit.rigid.models.model_work`).
    """
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"the model's text is over 8 MiB; simplify its meshes, or {REMEDY}")
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        parser.feed(text)
        root = parser.close()
    except ElementTree.ParseError as error:
        raise UserError(f"the model is not XML: {error}; give MJCF or URDF") from error
    except ValueError as error:  # a character that has no code, such as half of a surrogate pair
        raise UserError("the model is not XML: it has an invalid character; give MJCF or URDF") from error
    for element in root.iter():
        _refuse_files(element)
    refuse_too_much_work(root)
    return ElementTree.tostring(root, encoding="unicode")


class _Builder(ElementTree.TreeBuilder):
    """Tree builder that refuses declarations, and bounds depth and number of elements."""

    def __init__(self) -> None:
        """Start outside of all elements."""
        super().__init__()
        self._depth = self._elements = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH:
            raise UserError(f"the model's elements are nested over {MAX_DEPTH} deep; flatten it, or {REMEDY}")
        if self._elements > MAX_ELEMENTS:
            raise UserError(f"the model has over {MAX_ELEMENTS} elements; simplify it, or {REMEDY}")
        return super().start(tag, attrs)

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
