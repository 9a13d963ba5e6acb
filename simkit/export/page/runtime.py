"""Files of onnxruntime-web that a page carries: from a folder, from the cache, or from the package registry of npm."""

import dataclasses
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from simkit.core.compilation import cache_directory
from simkit.errors import UserError, one_line

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
VARIABLE = "SIMKIT_PAGE_RUNTIME"
SCRIPT, MACHINE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
# A page runs what it carries: only these very bytes of that release.
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    MACHINE: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
_LARGEST = 64 << 20
_PATIENCE = 600


@dataclasses.dataclass(frozen=True)
class Runtime:
    """onnxruntime-web for one thread of WebAssembly.

    Attributes:
        script: its module of JavaScript.
        machine: its program of WebAssembly.
    """

    script: bytes
    machine: bytes


def runtime_files(folder: Path | None = None) -> Runtime:
    """Return the files of onnxruntime-web.

    Args:
        folder: that holds them, or the ``dist`` folder of the package, or the package; ``None`` takes the folder that
            the environment variable ``SIMKIT_PAGE_RUNTIME`` names, or the cache, or else npm's package, which is kept
            in the cache.

    Raises:
        UserError: if there are none, or they are not those of the release that pages are made for.
    """
    if folder is None and (named := os.environ.get(VARIABLE)):
        folder = Path(named).expanduser()
    if folder is not None:
        return _read(folder)
    cache = _cache()
    if cache is not None and all((cache / name).is_file() for name in SHA256):
        try:
            return _read(cache)
        except UserError:  # damaged: written anew
            pass
    with tempfile.TemporaryDirectory() as place:
        runtime = _read(_unpacked(_fetched(Path(place)), Path(place)))
    if cache is not None:
        _keep(runtime, cache)
    return runtime


def _read(folder: Path) -> Runtime:
    """Return the files of a folder, of its ``dist``, or of a package installed below it.

    Raises:
        UserError: if one is missing or not that of the release.
    """
    places = [folder, folder / "dist", folder / "node_modules" / PACKAGE / "dist"]
    place = next((place for place in places if (place / SCRIPT).is_file()), None)
    if place is None:
        raise UserError(f"{folder} holds no {SCRIPT}; give the dist folder of the npm package {PACKAGE} {VERSION}")
    found = {}
    for name, digest in SHA256.items():
        try:
            with (place / name).open("rb") as file:
                found[name] = file.read(_LARGEST)
        except OSError as error:
            raise UserError(f"{place / name}: {error.strerror}; give the dist folder of {PACKAGE} {VERSION}") from None
        if hashlib.sha256(found[name]).hexdigest() != digest:
            raise UserError(f"{place / name} is not that of {PACKAGE} {VERSION}; take it from that release")
    return Runtime(found[SCRIPT], found[MACHINE])


def _fetched(place: Path) -> Path:
    """Return npm's package, as a file in a folder.

    Raises:
        UserError: if npm is missing or cannot get it.
    """
    remedy = f"or name a folder that holds {SCRIPT} and {MACHINE} of it, as runtime= or in {VARIABLE}"
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(f"a page carries {PACKAGE}, and there is no npm to get it with; install Node.js, {remedy}")
    command = [npm, "pack", f"{PACKAGE}@{VERSION}"]
    try:
        # Where there is no network, the mistake is told at once.
        settings = {**os.environ, "npm_config_fetch_retries": "1", "npm_config_update_notifier": "false"}
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False, cwd=place, env=settings
        )
        told = "" if ran.returncode == 0 else ran.stderr
    except subprocess.TimeoutExpired:
        told = f"no answer within {_PATIENCE} s"
    except OSError as error:
        told = str(error)
    package = next(place.glob("*.tgz"), None)
    if told or package is None:
        lines = [
            line.removeprefix("npm ERR! ").removeprefix("npm error ") for line in told.splitlines() if line.strip()
        ]
        reason = one_line(next((line for line in lines if not line.startswith("code")), "no package"), 160)
        raise UserError(f"npm cannot get {PACKAGE} {VERSION} ({reason}); connect to its registry, {remedy}")
    return package


def _unpacked(package: Path, place: Path) -> Path:
    """Return a folder with the two files of a package, nothing else of which is written."""
    try:
        with tarfile.open(package) as archive:
            for name in SHA256:
                file = archive.extractfile(f"package/dist/{name}")
                if file is not None:
                    (place / name).write_bytes(file.read(_LARGEST))
    except (tarfile.TarError, KeyError, OSError, EOFError) as error:
        raise UserError(f"npm's package of {PACKAGE} {VERSION} cannot be read ({one_line(error)}); try again") from None
    return place


def _cache() -> Path | None:
    compiled = cache_directory()
    return None if compiled is None else compiled.parent / f"{PACKAGE}-{VERSION}"


def _keep(runtime: Runtime, cache: Path) -> None:
    from simkit.storage.files import make_folder, write_bytes

    try:
        make_folder(cache)
        write_bytes(cache / SCRIPT, runtime.script)
        write_bytes(cache / MACHINE, runtime.machine)
    except (OSError, UserError):  # without a cache it is fetched again
        return
