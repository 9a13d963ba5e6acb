"""Model text from elsewhere: checked before MuJoCo reads it, for files it would open and for the work it asks for.

What MuJoCo reads is written again from the tree that was checked, so that its own parser cannot see more than we did.
"""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from simkit.errors import UserError
from simkit.rigid.models.model_work import MAX_ELEMENTS, REMEDY, refuse_too_much_work

MAX_CHARACTERS = 8 * 2**20
# MuJoCo's parser stops at 500, and Python's recursion at 1000.
MAX_DEPTH = 200
FILES = {
    "include": "takes in a file",
    "extension": "loads a plug-in",
    "plugin": "loads a plug-in",
    "attach": "takes in another model",
    "model": "takes in another model",
}


def checked(text: str) -> str:
    """Return a model's text, written again from what was read of it.

    Args:
        text: MJCF or URDF.

    Raises:
        UserError: if it is not XML; has a DOCTYPE, an entity or a processing instruction; names a file or a plug-in;
            or asks for more work than a scenario may (see `simkit.rigid.models.model_work`).
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
        raise UserError("the model is not XML: it holds a character that is none; give MJCF or URDF") from error
    for element in root.iter():
        _refuse_files(element)
    refuse_too_much_work(root)
    return ElementTree.tostring(root, encoding="unicode")


class _Builder(ElementTree.TreeBuilder):
    """A tree without declarations, of bounded depth and size."""

    def __init__(self) -> None:
        """Begin outside of all elements."""
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
    """Refuse an element that reaches for files of this machine: a text cannot bring them along."""
    tag = element.tag.rpartition("}")[2].lower()
    for attribute, value in element.attrib.items():
        # MJCF: file, fileright, ...; URDF: filename.
        if attribute.rpartition("}")[2].lower().startswith("file"):
            raise UserError(
                f"the model's <{tag[:40]}> names the file {shown(value)}, which a text cannot bring along; "
                f"{REMEDY}, or put the shape into it"
            )
    if tag in FILES:
        raise UserError(f"the model's <{tag}> {FILES[tag]}, which a text may not; {REMEDY}")


def shown(text: str) -> str:
    """Return a text as an error shows it: in quotes, on one line, shortened."""
    line = repr(text[:80])
    return line if len(line) <= 60 else f"{line[:56]}...'"
