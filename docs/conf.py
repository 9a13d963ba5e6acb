"""Documentation site: the pages of this folder and, from docstrings, a page for every public name; ``make docs``."""

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from make_api import PACKAGES

project = "simkit"
author = "The simkit authors"
copyright = author
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["samples", "_build"]
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
copybutton_prompt_text = r"^\$ "
copybutton_prompt_is_regexp = True

REFERENCE = Path(__file__).parent / "reference"


def write_pages(app: Any) -> None:
    """Write reference/names/PACKAGE.NAME.rst for every public name; pages of names that went are removed."""
    folder = REFERENCE / "names"
    folder.mkdir(exist_ok=True)
    pages = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value):
                path = f"{package}.{name}"
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
    r"\[([^\]]+)\]\((?:\.\./)?gallery/README\.md\)": r'<a href="gallery/index.html">\1</a>',
    r"\]\((?:\.\./)+CHANGELOG\.md\)": "](/changelog.md)",
    r"\[([^\]]+)\]\((?:\.\./)?(?:scenarios|LICENSE)\)": r"\1",
}


def prepare(app: Any, page: str, source: list[str]) -> None:
    """Make the first page of README.md, lead from the table of public names to their pages, and mend links."""
    if page == "index":
        text = (REFERENCE.parent.parent / "README.md").read_text().partition("## Documentation")[0]
        source[0] = re.sub(r"\]\(gallery/(?!README)", "](../gallery/", text.replace("](docs/", "](")) + source[0]
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
    parts = re.split(r"(``.*?``|`[^`]*`)", "\n".join(lines), flags=re.DOTALL)
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


def setup(app: Any) -> None:
    """Connect the functions of this file to the builder."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", as_restructured, priority=900)
    app.connect("autodoc-process-signature", without_types)
    app.connect("build-finished", copy_gallery)
