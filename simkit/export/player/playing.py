"""Players of stored runs: frames within a size, and the document that shows them."""

import html
import re
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simkit import __version__
from simkit.export.markup import block, digest, embedded, line
from simkit.export.npm import three_blocks
from simkit.export.player.encoding import Stored, encoded
from simkit.export.player.scenes import scene_of
from simkit.render.selection import choose_frames, choose_pace
from simkit.render.style import stamps
from simkit.render.views import Clip

# Bytes of compressed frames (base64 adds a third; libraries and script have 0.7 MB), frames, and fewest frames.
BYTES, MOST_FRAMES, _FEWEST = 3_100_000, 300, 12
# In the order in which they run: each uses declarations of those before it.
SCRIPTS = (
    "web/ticks.js",
    *(f"page/web/{name}.js" for name in ("runtime", "colors", "axes", "field", "bodies_of_frame")),
    *(f"player/web/{name}.js" for name in ("stage", "solids", "spheres", "fields", "frames", "main")),
)


class Player(NamedTuple):
    """A page that plays a run.

    Attributes:
        page: HTML.
        frames: number of frames in it.
        stored: number of frames of the run.
    """

    page: bytes
    frames: int
    stored: int


def player(clip: Clip, maximum_frames: int = MOST_FRAMES, picture: bytes = b"", three: Path | None = None) -> Player:
    """Return the player of a run: one page with all it needs.

    Frames are thinned until the page has about 5 MB at most.

    Args:
        clip: the run, with its drawing settings.
        maximum_frames: largest number of frames.
        picture: a PNG, shown where a browser has no WebGL.
        three: folder of the files of three.js; ``None`` for npm's.

    Raises:
        UserError: if its view has nothing to be turned around, or three.js is not available.
    """
    drawing, arrays = scene_of(clip)
    count, settings = len(clip), clip.settings
    shown = {name: np.asarray(clip.frames[name]) for name in {drawing["quantity"], *arrays} if name in clip.frames}
    pace = choose_pace(shown, clip.diagnostics, drawing["quantity"], settings.frames_per_second, maximum_frames)
    indices, described, data = pace.indices, *_of(arrays, pace.indices)
    while len(data) > BYTES and len(indices) > _FEWEST:
        fewer = max(int(0.95 * len(indices) * BYTES / len(data)), _FEWEST)
        indices = indices[choose_frames(len(indices), fewer)]
        described, data = _of(arrays, indices)
    unit = clip.units.get("time", "s" if settings.view == "bodies" else "")
    times = stamps(clip.diagnostics, count, unit)
    description = {
        "drawing": drawing,
        "arrays": described,
        "stamps": [times[index] for index in indices],
        "frames_per_second": pace.frames_per_second * len(indices) / len(pace.indices),
        "title": line(clip.title),
        "count": count,
    }
    return Player(document(description, three_blocks(three), data, picture), len(indices), count)


def _of(arrays: dict[str, Stored], indices: np.ndarray) -> tuple[list[dict[str, Any]], bytes]:
    return encoded({name: stored._replace(values=stored.values[indices]) for name, stored in arrays.items()})


def document(description: dict[str, Any], blocks: dict[str, bytes], frames: bytes, picture: bytes) -> bytes:
    """Return the page as bytes of HTML, whose policy allows only the script and the style in it, and no request.

    Args:
        description: plain data for the script, with ``title``.
        blocks: the libraries by element identifier.
        frames: compressed frames.
        picture: a PNG.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(_file(name) for name in SCRIPTS) + "\n})();\n"
    style = _file("player/web/player.css")
    parts = {
        "policy": f"default-src 'none'; script-src {digest(script)} blob:; style-src {digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "version": html.escape(__version__),
        "title": html.escape(description["title"]),
        "style": style,
        "script": script,
        "description": embedded(description),
        "blocks": "\n".join(
            block(name, data) for name, data in {**blocks, "frames": frames, "last-frame": picture}.items()
        ),
    }
    # One pass, so that braces in an inserted text are not replaced again.
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], _file("player/web/player.html")).encode()


def _file(name: str) -> str:
    return (resources.files("simkit.export") / name).read_text(encoding="utf-8")
