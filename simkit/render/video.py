"""Writers of PNG, GIF, WebP and MP4 files: reproducible bytes, atomic writes, one palette for a GIF."""

import glob
import io
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol, cast

import numpy as np
from PIL import Image

from simkit.errors import UserError
from simkit.render.page import DEFAULT_PIXELS
from simkit.render.selection import choose_frames
from simkit.storage.files import check_regular, hidden, lock, open_regular


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name to write to; the file is renamed to ``path`` on success and removed on any error.

    Temporary files of killed writers of the same file are removed as well.

    Args:
        path: path of the file; an existing file is replaced, and its folder must exist.

    Raises:
        UserError: if the file cannot be written, or ``path`` is a link, folder, pipe or device.
    """
    path = Path(path)
    check_regular(path)
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path.name}: there is no folder '{path.parent}'; create it first")
    partial = hidden(path, f"{os.getpid()}.partial")
    remove_abandoned(path.parent, glob.escape(path.name))
    try:
        with open_regular(partial, "xb") as held:
            try:
                # The operating system releases the lock when this process ends, even if it is killed.
                lock(held)
                yield partial
                if not partial.is_file() or partial.stat().st_size == 0:
                    raise UserError(f"cannot write {path.name}: no data was written")
                os.fsync(held.fileno())
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error


def remove_abandoned(folder: Path, name: str = "*") -> None:
    """Remove temporary files of killed writers; those of running writers, which are locked, are kept.

    Args:
        folder: folder of the files.
        name: glob pattern of the final file name.
    """
    for partial in folder.glob(f".{name}.*.partial"):
        # A file that cannot be opened or removed belongs to another user, or has been removed by another process.
        with suppress(OSError, UserError), open_regular(partial, "rb+") as file:
            if lock(file):
                partial.unlink()


# Index 255 is reserved: the GIF writer uses it for unchanged pixels, the mapping for colors not yet mapped.
MOST_COLORS = 255
_UNSEEN = 255
# Largest error of a color channel, of 255, for pixels kept from the frame before; not visible in motion.
TOLERANCE = 4


def rank_colors(images: Iterable[np.ndarray]) -> np.ndarray:
    """Return colors of ``images`` ordered so that the first k are a good palette for any k, (n, 3) of uint8.

    The next color is the one with the largest squared distance to the colors before it, times the square root of its
    count, so that thin lines and the ends of color bars keep their colors beside large areas. Only colors that occur
    are chosen: paper stays exactly white.

    Args:
        images: uint8 arrays (height, width, 3).
    """
    packed, counts = np.unique(np.concatenate([_packed(image).ravel() for image in images]), return_counts=True)
    colors, weight = _unpacked(packed).astype(np.float32), np.sqrt(counts)
    chosen = [int(counts.argmax())]
    distance = np.full(len(colors), np.inf, np.float32)
    while len(chosen) < min(MOST_COLORS, len(colors)):
        distance = np.minimum(distance, ((colors - colors[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int((distance * weight).argmax()))
    return colors[chosen].astype(np.uint8)


class Palette:
    """The exact mapping of pixels to the nearest of at most 255 colors.

    Args:
        colors: (n, 3) of uint8.
        tolerance: largest error of a color channel, of 255, for pixels kept from the frame before.

    Attributes:
        colors: the first 255 of them.
    """

    def __init__(self, colors: np.ndarray, tolerance: int = 0) -> None:
        self.colors = colors[:MOST_COLORS]
        self._tolerance = tolerance
        self._index = np.full(1 << 24, _UNSEEN, np.uint8)

    def after(self, image: np.ndarray, before: np.ndarray | None) -> np.ndarray:
        """Return palette indices of a picture, keeping those of the picture before where they are within tolerance.

        Smooth fields that change slowly then take a fraction of the bytes, with any number of colors. Errors do not
        accumulate: each pixel is within the tolerance of its own picture.

        Args:
            image: (height, width, 3) of uint8.
            before: indices (height, width) of the picture before it, or ``None``.
        """
        indices = self.indices(image)
        if before is None or not self._tolerance:
            return indices
        error = np.maximum(image, self.colors[before]) - np.minimum(image, self.colors[before])
        return np.where((error <= self._tolerance).all(axis=-1), before, indices)

    def indices(self, image: np.ndarray) -> np.ndarray:
        """Return the index of the nearest color for each pixel of ``image``, (height, width) of uint8."""
        packed = _packed(image)
        index = self._index[packed]
        unseen = packed[index == _UNSEEN]
        if unseen.size:
            new = np.unique(unseen)
            # |new|^2 is the same for every candidate; all terms are integers that float32 represents exactly.
            candidates = self.colors.astype(np.float32)
            distance = (candidates**2).sum(axis=1) - 2 * _unpacked(new).astype(np.float32) @ candidates.T
            self._index[new] = distance.argmin(axis=1)
            index = self._index[packed]
        return index


def _packed(image: np.ndarray) -> np.ndarray:
    packed = image[..., 0].astype(np.uint32)
    for channel in (1, 2):
        packed <<= 8
        packed |= image[..., channel]
    return packed


def _unpacked(packed: np.ndarray) -> np.ndarray:
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1).astype(np.uint8)


_TRANSPARENT = 255


def gif_blocks(frames: Iterable[np.ndarray], colors: np.ndarray, delays: Iterable[int]) -> Iterator[bytes]:
    """Yield the bytes of an endlessly repeated animation: the header, one block per frame, the trailer.

    Args:
        frames: palette indices below 255, (height, width) of uint8.
        colors: palette (n, 3) of uint8, n <= 255.
        delays: duration of each frame in hundredths of a second.
    """
    before = None
    for frame, delay in zip(frames, delays, strict=True):
        if before is None:
            yield _header(frame.shape, colors)
        yield frame_block(frame, before, delay)
        before = frame
    yield b";"


def frame_block(frame: np.ndarray, before: np.ndarray | None, delay: int) -> bytes:
    """Return the block of one frame drawn over the frame before it, in the shorter of two encodings.

    Unchanged pixels inside the changed rectangle are either repeated, which is shorter for smooth fields, or
    transparent, which is shorter for small moving objects.
    """
    if before is None:
        return _image_block(frame, 0, 0, delay, transparent=False)
    changed = frame != before
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    if not rows.size:
        rows = columns = np.zeros(1, int)
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    sparse = np.where(changed[part], frame[part], np.uint8(_TRANSPARENT))
    opaque = _image_block(frame[part], columns[0], rows[0], delay, transparent=False)
    return min(opaque, _image_block(sparse, columns[0], rows[0], delay, transparent=True), key=len)


def _header(shape: tuple[int, int], colors: np.ndarray) -> bytes:
    height, width = shape
    table = np.zeros((256, 3), np.uint8)
    table[: len(colors)] = colors
    # 0xF7: a global table of 256 colors. The application block requests endless repetition.
    screen = struct.pack("<6sHHBBB", b"GIF89a", width, height, 0xF7, 0, 0)
    return screen + table.tobytes() + b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"


def _image_block(part: np.ndarray, left: int, top: int, delay: int, transparent: bool) -> bytes:
    # Disposal 1: the next frame is drawn over this one.
    control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 1 << 2 | transparent, delay, _TRANSPARENT * transparent, 0)
    height, width = part.shape
    return control + struct.pack("<BHHHHB", 0x2C, left, top, width, height, 0) + _compressed(part)


def _compressed(part: np.ndarray) -> bytes:
    """Return the LZW data of one image, extracted from a single-frame GIF made by Pillow."""
    image = Image.fromarray(part)
    image.putpalette(bytes(768))
    file = io.BytesIO()
    image.save(file, "GIF", optimize=False, interlace=False)
    data = file.getvalue()
    # Logical screen (13 bytes), color table, extensions (until a zero-length sub-block), image descriptor (10 bytes).
    offset = 13 + 3 * 2 ** ((data[10] & 7) + 1)
    while data[offset] == 0x21:
        offset += 2
        while data[offset]:
            offset += data[offset] + 1
        offset += 1
    return data[offset + 10 : -1]


# Target size of animations of 640 x 360 pixels in bytes, and numbers of colors tried to reach it: turbulent fields do
# not compress, and with fewer than 64 colors show bands; a WebP has all colors in half the bytes.
_BYTES = 1.8e6
_FEWER_COLORS = (160, 112, 88, 64)
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
    _check(images, frames_per_second, _GIF_FASTEST, "; write webp or mp4 for more")
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


# Frames as they come, for the encoder of ffmpeg; one thread and no metadata, so that bytes depend on the images only.
_SOURCE = "-loglevel error -y -f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {speed:.6g} -i -"
_PLAIN = "-threads 1 -an -map_metadata -1 -fflags +bitexact -flags:v +bitexact"
# yuv420p halves the color resolution, hence even sizes; without a declared color matrix, players guess it.
_H264 = (
    "-vf pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,"
    "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv "
    "-c:v libx264 -preset medium -tune animation -crf 23 -movflags +faststart -f mp4"
)
_WEBP = "-pix_fmt bgra -c:v libwebp_anim -quality 75 -compression_level 4 -loop 0 -f webp"


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
    _encode(path, images, frames_per_second, hold, _H264)


def write_webp(path: Path, images: Images, frames_per_second: float, hold: float = 0.0) -> None:
    """Write an endlessly repeated WebP animation in all colors, or of one image a still picture.

    Pages show it like a GIF, without its bands of color; of a smooth field it takes a third of the bytes.

    Args:
        path: the file.
        images: (height, width, 3) of uint8, all of one size; read one at a time.
        frames_per_second: at most 240.
        hold: additional seconds for which the last image is shown.

    Raises:
        UserError: if there is no image, the speed is out of range, or the encoder fails.
    """
    _encode(path, images, frames_per_second, hold, _WEBP)


def _encode(path: Path, images: Images, frames_per_second: float, hold: float, coding: str) -> None:
    from imageio_ffmpeg import get_ffmpeg_exe

    _check(images, frames_per_second, 240)
    height, width = images[0].shape[:2]
    options = [_SOURCE.format(width=width, height=height, speed=frames_per_second), coding, _PLAIN]
    with whole_file(path) as partial:
        command = [get_ffmpeg_exe(), *" ".join(options).split(), str(partial)]
        _pipe(command, images, round(hold * frames_per_second))


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
