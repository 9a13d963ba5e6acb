"""Files of onnxruntime-web that a page contains: from a folder, from the cache, or from npm."""

import dataclasses
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from simkit.core.compilation import cache_directory
from simkit.errors import UserError, argument, one_line
from simkit.storage.files import make_folder, write_bytes

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
VARIABLE = "SIMKIT_PAGE_RUNTIME"
SCRIPT, MACHINE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
# A page runs these files, so only the exact bytes of the release are accepted.
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    MACHINE: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
# Bytes of a file that are read at most, and seconds that npm may take.
_LARGEST = 64 << 20
_TIMEOUT = 600


@dataclasses.dataclass(frozen=True)
class Runtime:
    """onnxruntime-web for one thread of WebAssembly.

    Attributes:
        script: its JavaScript module.
        machine: its WebAssembly module.
    """

    script: bytes
    machine: bytes


def runtime_files(folder: Path | None = None) -> Runtime:
    """Return the files of onnxruntime-web.

    Args:
        folder: the folder of these files, of the package, or of an installation of it; ``None`` takes the folder named
            by the environment variable ``SIMKIT_PAGE_RUNTIME``, or the cache, or npm's package, which is then stored
            in the cache.

    Raises:
        UserError: if the files are not found, or are not those of the supported release.
    """
    if folder is None and (named := os.environ.get(VARIABLE)):
        folder = Path(named).expanduser()
    if folder is not None:
        return _read(folder)
    cache = _cache()
    if cache is not None and all((cache / name).is_file() for name in SHA256):
        try:
            return _read(cache)
        except UserError:  # damaged: written again below
            pass
    with tempfile.TemporaryDirectory() as temporary:
        runtime = _read(_unpacked(_fetched(Path(temporary)), Path(temporary)))
    if cache is not None:
        _store(runtime, cache)
    return runtime


def _read(folder: Path) -> Runtime:
    """Return the files of a folder, of its ``dist``, or of a package installed below it.

    Raises:
        UserError: if one is missing or not that of the release.
    """
    folders = [folder, folder / "dist", folder / "node_modules" / PACKAGE / "dist"]
    holder = next((each for each in folders if (each / SCRIPT).is_file()), None)
    if holder is None:
        raise UserError(f"{folder} holds no {SCRIPT}; give the dist folder of the npm package {PACKAGE} {VERSION}")
    files = {}
    for name, digest in SHA256.items():
        path = holder / name
        try:
            with path.open("rb") as file:
                files[name] = file.read(_LARGEST)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; give the dist folder of {PACKAGE} {VERSION}") from None
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise UserError(f"{path} is not that of {PACKAGE} {VERSION}; take it from that release")
    return Runtime(files[SCRIPT], files[MACHINE])


def _fetched(folder: Path) -> Path:
    """Return the archive of npm's package, downloaded to a folder.

    Raises:
        UserError: if npm is not installed or cannot download it.
    """
    remedy = f"or name a folder that holds {SCRIPT} and {MACHINE} of it, as {argument('runtime')} or in {VARIABLE}"
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(f"a page contains {PACKAGE}, and there is no npm to download it; install Node.js, {remedy}")
    command = [npm, "pack", f"{PACKAGE}@{VERSION}"]
    # One retry, so that a missing network is reported within seconds.
    settings = {**os.environ, "npm_config_fetch_retries": "1", "npm_config_update_notifier": "false"}
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, cwd=folder, env=settings
        )
        complaint = "" if ran.returncode == 0 else ran.stderr
    except subprocess.TimeoutExpired:
        complaint = f"no answer within {_TIMEOUT} s"
    except OSError as error:
        complaint = str(error)
    package = next(folder.glob("*.tgz"), None)
    if complaint or package is None:
        lines = [
            line.removeprefix("npm ERR! ").removeprefix("npm error ") for line in complaint.splitlines() if line.strip()
        ]
        reason = one_line(next((line for line in lines if not line.startswith("code")), "no package"), 160)
        raise UserError(f"npm cannot download {PACKAGE} {VERSION} ({reason}); connect to its registry, {remedy}")
    return package


def _unpacked(package: Path, folder: Path) -> Path:
    """Write the two files of a package to a folder, and return the folder."""
    try:
        with tarfile.open(package) as archive:
            for name in SHA256:
                file = archive.extractfile(f"package/dist/{name}")
                if file is not None:
                    (folder / name).write_bytes(file.read(_LARGEST))
    except (tarfile.TarError, KeyError, OSError, EOFError) as error:
        raise UserError(f"npm's package of {PACKAGE} {VERSION} cannot be read ({one_line(error)}); try again") from None
    return folder


def _cache() -> Path | None:
    compiled = cache_directory()
    return None if compiled is None else compiled.parent / f"{PACKAGE}-{VERSION}"


def _store(runtime: Runtime, cache: Path) -> None:
    try:
        make_folder(cache)
        write_bytes(cache / SCRIPT, runtime.script)
        write_bytes(cache / MACHINE, runtime.machine)
    except (OSError, UserError):  # without a cache the next page downloads the package again
        return
