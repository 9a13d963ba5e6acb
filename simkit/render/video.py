"""Writing animations and pictures: the same images always give the same bytes, and a file is whole or not there."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

import numpy as np
from PIL import Image

from simkit.errors import UserError
from simkit.render.figure import USUAL
from simkit.render.files import whole_file
from simkit.render.gif import frame_block, gif_blocks
from simkit.render.pace import choose_frames
from simkit.render.palette import TOLERANCE, Palette, rank_colors

# Turbulent fields do not compress: fewer colors (contour bands) keep animations of 640 x 360 pixels near this.
_BYTES = 1.8e6
_FEWER_COLORS = (160, 112, 80, 64, 52, 44, 38, 32)
_GIF_FASTEST = 50
# How many frames before one those lie that its cost is measured after: pixels at rest miss their color by then.
_BEFORE = (32, 16, 8, 4, 2, 1, 0)


class Images(Protocol):
    """Pictures of one size, (height, width, 3) of uint8, that are asked for one at a time; a list is one."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __getitem__(self, place: int, /) -> np.ndarray:
        """Return one of them."""
        ...


def write_png(path: Path, image: np.ndarray) -> None:
    """Write one image (height, width, 3) of uint8, without metadata."""
    with whole_file(path) as partial:
        Image.fromarray(image).save(partial, "PNG", optimize=True)


def write_gif(path: Path, images: Images, frames_per_second: float, hold: float = 0.0) -> None:
    """Write an animation that repeats, with one palette for all frames.

    Args:
        path: the file.
        images: (height, width, 3) of uint8, all of one size; read one at a time, a few of them twice.
        frames_per_second: at most 50, which is where players stop following.
        hold: seconds for which the last image stays longer.

    Raises:
        UserError: if there is no image or the speed is out of range.
    """
    _check(images, frames_per_second, _GIF_FASTEST, "; write mp4 for more")
    # Frames last whole hundredths of a second: round the running time, not each delay, to keep the speed.
    times = np.rint(np.arange(len(images) + 1) * 100 / frames_per_second).astype(int)
    times[-1] += round(100 * hold)
    palette = _affordable_palette(images)
    with whole_file(path) as partial, partial.open("wb") as file:
        for block in gif_blocks(_indices(images, palette), palette.colors, np.diff(times).tolist()):
            file.write(block)


def _indices(images: Images, palette: Palette) -> Iterator[np.ndarray]:
    shown = None
    for place in range(len(images)):
        shown = palette.after(images[place], shown)
        yield shown


def _affordable_palette(images: Images) -> Palette:
    """Return the largest palette with which a few frames, each drawn over those before, stay within the budget."""
    ends = choose_frames(len(images), 4)
    runs = [[images[max(int(end) - step, 0)] for step in _BEFORE] for end in ends]
    colors = rank_colors(run[-1] for run in runs)
    budget = _BYTES * runs[0][0][..., 0].size / USUAL / len(images) * (len(runs) - 1)
    palette = Palette(colors)
    # First all colors, then with pixels that hardly change at rest, then fewer.
    for count in (len(colors), *_FEWER_COLORS):
        if sum(_cost(palette, run) for run in runs[1:]) <= budget:
            break
        palette = Palette(colors[:count], TOLERANCE)
    return palette


def _cost(palette: Palette, run: Sequence[np.ndarray]) -> int:
    """Return the bytes of the last of several frames."""
    shown = None
    for image in run[:-1]:
        shown = palette.after(image, shown)
    return len(frame_block(palette.after(run[-1], shown), shown, 0))


def write_mp4(path: Path, images: Images, frames_per_second: float, hold: float = 0.0) -> None:
    """Write an H.264 video that every browser plays; an odd width or height is filled up by one white line.

    Args:
        path: the file.
        images: (height, width, 3) of uint8, all of one size; read one at a time.
        frames_per_second: at most 240.
        hold: seconds for which the last image is repeated.

    Raises:
        UserError: if there is no image, the speed is out of range, or the encoder fails.
    """
    from imageio_ffmpeg import get_ffmpeg_exe

    _check(images, frames_per_second, 240)
    height, width = images[0].shape[:2]
    source = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {frames_per_second:.6g} -i -"
    # yuv420p halves the color resolution, hence even sizes; without the matrix named, players guess the colors.
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p"
    named = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
    # One thread and no metadata: the bytes then depend on the images alone.
    coding = "-c:v libx264 -preset medium -tune animation -crf 18 -threads 1 -an"
    plain = "-map_metadata -1 -fflags +bitexact -flags:v +bitexact -movflags +faststart -f mp4"
    options = " ".join(["-loglevel error -y", source, f"-vf {even},{named}", coding, plain]).split()
    with whole_file(path) as partial:
        _pipe([get_ffmpeg_exe(), *options, str(partial)], images, round(hold * frames_per_second))


def _pipe(command: list[str], images: Images, repeated: int) -> None:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            with cast(IO[bytes], process.stdin) as pipe:
                for place in range(len(images)):
                    image = np.ascontiguousarray(images[place])
                    for _ in range(1 + repeated * (place == len(images) - 1)):
                        pipe.write(image.data)
        except BrokenPipeError:
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            code = process.wait()
        if code:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
            raise UserError(f"the video encoder failed: {lines[-1]}; write gif instead")


def _check(images: Images, frames_per_second: float, fastest: float, remedy: str = "") -> None:
    if not len(images):
        raise UserError("there are no frames to animate")
    if not 0 < frames_per_second <= fastest:
        raise UserError(f"frames_per_second is {frames_per_second:g}; choose a value in (0, {fastest}]{remedy}")
