"""HTML document of a page: scripts, style, models and data in one file; texts of a scenario are escaped."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from simkit import __version__

# In the order in which they run: each uses declarations of those before it.
SCRIPTS = (
    *("runtime.js", "simulation.js", "colors.js", "axes.js", "field.js", "particles.js", "camera.js", "solids.js"),
    *("bodies.js", "side.js", "chart.js", "controls.js", "main.js"),
)


def document(texts: Mapping[str, str], description: Any, blocks: Mapping[str, bytes]) -> bytes:
    """Return the page as bytes of HTML.

    Its content security policy allows only the script and the style in the file, and no request of any kind.

    Args:
        texts: plain text of the placeholders in ``page.html``: ``title``, ``summary``, ``scenario``, ``precision``,
            ``runtime_version``.
        description: plain data for the script.
        blocks: binary blocks by element identifier.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(_file(name) for name in SCRIPTS) + "\n})();\n"
    style = _file("style.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)} 'wasm-unsafe-eval' blob:; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {name: html.escape(text) for name, text in {**texts, "version": __version__}.items()} | {
        "policy": policy,
        "style": style,
        "script": script,
        "description": _json(description),
        "blocks": "\n".join(_block(name, data) for name, data in blocks.items()),
    }
    # One pass, so that braces in an inserted text are not replaced again.
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], _file("page.html")).encode()


def _file(name: str) -> str:
    return (resources.files("simkit.export.page") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """Return JSON without the characters of HTML markup, so that it cannot end the element that holds it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _block(name: str, data: bytes) -> str:
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'
