"""Writers of PNG, GIF and MP4 files, with reproducible bytes and atomic writes."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

import numpy as np
from PIL import Image

from simkit.errors import UserError
from simkit.render.figure import DEFAULT_PIXELS
from simkit.render.files import whole_file
from simkit.render.gif import frame_block, gif_blocks
from simkit.render.pace import choose_frames
from simkit.render.palette import TOLERANCE, Palette, rank_colors

# Target size of animations of 640 x 360 pixels in bytes, and numbers of colors tried to reach it: turbulent fields do
# not compress, except with few colors (contour bands).
_BYTES = 1.8e6
_FEWER_COLORS = (160, 112, 80, 64, 52, 44, 38, 32)
# Frames per second above which players of GIF do not follow.
_GIF_FASTEST = 50
# Offsets of the frames before one that are encoded to estimate its size, so that kept pixels have their usual error.
_BEFORE = (32, 16, 8, 4, 2, 1, 0)


class Images(Protocol):
    """Sequence of images of one size, (height, width, 3) of uint8, read one at a time, such as a list."""

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def __getitem__(self, index: int, /) -> np.ndarray:
        """Return one image."""
        ...


def write_png(path: Path, image: np.ndarray) -> None:
    """Write one image (height, width, 3) of uint8, without metadata."""
    with whole_file(path) as partial:
        Image.fromarray(image).save(partial, "PNG", optimize=True)


def write_gif(path: Path, images: Images, frames_per_second: float, hold: float = 0.0) -> None:
    """Write an endlessly repeated GIF animation with one palette for all frames.

    Args:
        path: the file.
        images: (height, width, 3) of uint8, all of one size; read one at a time, a few of them twice.
        frames_per_second: at most 50, above which players do not follow.
        hold: additional seconds for which the last image is shown.

    Raises:
        UserError: if there is no image or the speed is out of range.
    """
    _check(images, frames_per_second, _GIF_FASTEST, "; write mp4 for more")
    # Durations are integers in 0.01 s: rounding the time of each frame instead of its duration keeps the speed.
    times = np.rint(np.arange(len(images) + 1) * 100 / frames_per_second).astype(int)
    times[-1] += round(100 * hold)
    palette = _affordable_palette(images)
    with whole_file(path) as partial, partial.open("wb") as file:
        for block in gif_blocks(_indices(images, palette), palette.colors, np.diff(times).tolist()):
            file.write(block)


def _indices(images: Images, palette: Palette) -> Iterator[np.ndarray]:
    indices = None
    for number in range(len(images)):
        indices = palette.after(images[number], indices)
        yield indices


def _affordable_palette(images: Images) -> Palette:
    """Return the largest palette with which sampled frames, encoded after those before them, fit in the budget."""
    ends = choose_frames(len(images), 4)
    runs = [[images[max(int(end) - step, 0)] for step in _BEFORE] for end in ends]
    colors = rank_colors(run[-1] for run in runs)
    budget = _BYTES * runs[0][0][..., 0].size / DEFAULT_PIXELS / len(images) * (len(runs) - 1)
    palette = Palette(colors)
    # First all colors exactly, then with the tolerance for kept pixels, then fewer colors.
    for count in (len(colors), *_FEWER_COLORS):
        if sum(_cost(palette, run) for run in runs[1:]) <= budget:
            break
        palette = Palette(colors[:count], TOLERANCE)
    return palette


def _cost(palette: Palette, run: Sequence[np.ndarray]) -> int:
    """Return the size in bytes of the last of several frames."""
    before = None
    for image in run[:-1]:
        before = palette.after(image, before)
    return len(frame_block(palette.after(run[-1], before), before, 0))


def write_mp4(path: Path, images: Images, frames_per_second: float, hold: float = 0.0) -> None:
    """Write an H.264 video that all browsers play; an odd width or height is padded by one white line.

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
    # yuv420p halves the color resolution, hence even sizes; without a declared color matrix, players guess it.
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p"
    named = "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
    # One thread and no metadata, so that the bytes depend on the images only.
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
                for number in range(len(images)):
                    image = np.ascontiguousarray(images[number])
                    for _ in range(1 + repeated * (number == len(images) - 1)):
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
