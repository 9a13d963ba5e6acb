"""Documentation site: the pages of this folder and, from docstrings, a page for every public name; ``make docs``."""

import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from make_api import public
from make_changelog import assembled, waiting

project = "simkit"
author = "The simkit authors"
copyright = author
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["samples", "changes", "paper", "_build"]
root_doc = "index"
html_theme = "furo"
html_title = "simkit"
html_copy_source = False
html_show_sphinx = False
# No network: no fonts, scripts or pictures from elsewhere.
html_theme_options = {"navigation_with_keys": True}
html_static_path: list[str] = []

# Notebooks are executed once, and again when their text has changed; build/ keeps their outputs.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent.parent / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Attributes as a list, since the members follow them.
napoleon_use_ivar = True
napoleon_attr_annotations = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

REFERENCE = Path(__file__).parent / "reference"


def write_pages(app: Any) -> None:
    """Write reference/names/PACKAGE.NAME.rst for every public name; pages of names that went are removed."""
    folder = REFERENCE / "names"
    folder.mkdir(exist_ok=True)
    pages = {}
    for path, value in public():
        kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
        pages[f"{path}.rst"] = f"{path}\n{'=' * len(path)}\n\n.. auto{kind}:: {path}\n"
    for file in folder.glob("*.rst"):
        if file.name not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


# Links of the repository and what they are on the site; pages in other folders are copied to it, see `copy_gallery`.
LINKS = {
    r"\[([^\]]+)\]\((?:\.\./)?((?:\.\./)*)gallery/README\.md\)": r'<a href="\2gallery/index.html">\1</a>',
    r"\]\((?:\.\./)*(CHANGELOG|CONTRIBUTING)\.md(?=[)#])": lambda found: f"](/{found[1].lower()}.md",
    r"\[([^\]]+)\]\((?:\.\./)*(?:scenarios|LICENSE|CODE_OF_CONDUCT\.md|(?:docs/)?(?:changes|paper)/\w+\.md)\)": r"\1",
}


def prepare(app: Any, page: str, source: list[str]) -> None:
    """Fill the first page from README.md and others from theirs, lead from public names to their pages, mend links."""
    root = REFERENCE.parent.parent
    if page == "index":
        text = (root / "README.md").read_text().partition("## Documentation")[0]
        text = re.sub(r"\]\(gallery/(?!README)", "](../gallery/", text.replace("](docs/", "]("))
        first, second, rest = text.partition("## Two commands")
        source[0] = first + source[0] + second + rest
    if page == "changelog":
        changelog = assembled((root / "CHANGELOG.md").read_text(), [file.read_text() for file in waiting()])
        source[0] = changelog.replace("](docs/", "](")
    if page == "contributing":
        source[0] = (root / "CONTRIBUTING.md").read_text().replace("](docs/", "](")
    if page == "reference/api":
        package, lines = "", []
        for line in source[0].splitlines():
            if heading := re.match(r"## `([\w.]+)`", line):
                package = heading[1]
            row = re.match(r"\| (`(\w+)[^`]*`)", line)
            file = f"names/{package}.{row[2]}.rst" if row else ""
            lines.append(
                line.replace(row[1], f"[{row[1]}]({file})", 1) if row and (REFERENCE / file).exists() else line
            )
        source[0] = "\n".join([*lines, "", "```{toctree}", ":hidden:", ":glob:", "", "names/*", "```", ""])
    for pattern, link in LINKS.items():
        source[0] = re.sub(pattern, link, source[0])


def copy_gallery(app: Any, error: Exception | None) -> None:
    """Copy the gallery beside the pages."""
    if error is None:
        shutil.copytree(REFERENCE.parent.parent / "gallery", Path(app.outdir) / "gallery", dirs_exist_ok=True)


def as_restructured(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape what a docstring, which is plain text with code in backquotes, means literally."""
    literal = r"(``.*?``|`[^`]*`|^ *>>> .*?(?=\n\s*\n|\Z))"
    parts = re.split(literal, "\n".join(lines), flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [re.sub(r"((?<!\\)[*|]|(?<=\w)_(?=\W|$))", r"\\\1", text) for text in parts[::2]]
    # Indented entries ``name: meaning``, such as those of diagnostics, make a list.
    text = re.sub(r"^    (\w[\w, ]*): ", r"    * \1: ", "".join(parts), flags=re.MULTILINE)
    lines[:] = re.sub(r"^ {8}(?=\w)", " " * 6, text, flags=re.MULTILINE).split("\n")


def without_types(app: Any, what: str, name: str, value: Any, options: Any, signature: str, result: str) -> Any:
    """Return the signature of a class without types, which its list of attributes explains in words."""
    if what != "class" or not signature:
        return None
    arguments = inspect.signature(value).parameters.values()
    return f"({', '.join(each.name + '=...' * (each.default is not each.empty) for each in arguments)})", None


def without_fields(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Return True for a field of a named tuple, which its list of attributes explains."""
    return str(getattr(value, "__doc__", "")).startswith("Alias for field number") or None


def setup(app: Any) -> None:
    """Connect the functions of this file to the builder."""
    # Pages opened as files may not read one another: the search then shows headings, without lines around the words.
    body = "if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;"
    app.add_js_file(None, body=body)
    app.connect("builder-inited", write_pages)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", as_restructured, priority=900)
    app.connect("autodoc-process-signature", without_types)
    app.connect("autodoc-skip-member", without_fields)
    app.connect("build-finished", copy_gallery)
