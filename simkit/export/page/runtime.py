"""Files of onnxruntime-web that a page contains: from a folder, from the cache, or from npm."""

import hashlib
import os
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


def runtime_files(folder: Path | None = None) -> dict[str, bytes]:
    """Return the files of onnxruntime-web for one thread of WebAssembly, by name.

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
        files = _read(_fetched(Path(temporary)))
    if cache is not None:
        _store(files, cache)
    return files


def _read(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, of its ``dist``, or of a package installed below it.

    Raises:
        UserError: if one is missing or not that of the release.
    """
    folders = [folder, folder / "dist", folder / "node_modules" / PACKAGE / "dist"]
    holder = next((each for each in folders if (each / SCRIPT).is_file()), folder)
    files = {}
    for name, digest in SHA256.items():
        try:
            with (holder / name).open("rb") as file:
                files[name] = file.read(_LARGEST)
        except OSError:
            files[name] = b""
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise UserError(
                f"{folder} does not hold the {name} of {PACKAGE} {VERSION}; give the dist folder of that npm package"
            )
    return files


def _fetched(folder: Path) -> Path:
    """Download npm's package to a folder, and return the folder of its files.

    Raises:
        UserError: if npm is not installed, or cannot download it.
    """
    command = ["npm", "pack", f"{PACKAGE}@{VERSION}"]
    # One retry, so that a missing network is reported within seconds.
    settings = {**os.environ, "npm_config_fetch_retries": "1", "npm_config_update_notifier": "false"}
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, cwd=folder, env=settings
        )
        package = next(folder.glob("*.tgz"), None)
        if package is None:
            raise OSError(_complaint(ran.stderr) or "no package")
        with tarfile.open(package) as archive:
            for name in SHA256:
                file = archive.extractfile(f"package/dist/{name}")
                if file is not None:
                    (folder / name).write_bytes(file.read(_LARGEST))
    except (OSError, EOFError, KeyError, tarfile.TarError, subprocess.TimeoutExpired) as error:
        raise UserError(
            f"a page contains {PACKAGE} {VERSION}, which npm cannot download ({one_line(error, 160)}); install Node.js "
            f"and connect to npm's registry, or name a folder that holds {SCRIPT} and {MACHINE} of it, as "
            f"{argument('runtime')} or in {VARIABLE}"
        ) from None
    return folder


def _complaint(text: str) -> str:
    """Return the line of npm's errors that says what is wrong."""
    lines = [line.removeprefix("npm ERR! ").removeprefix("npm error ") for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("code")), "")


def _cache() -> Path | None:
    compiled = cache_directory()
    return None if compiled is None else compiled.parent / f"{PACKAGE}-{VERSION}"


def _store(files: dict[str, bytes], cache: Path) -> None:
    try:
        make_folder(cache)
        for name, data in files.items():
            write_bytes(cache / name, data)
    except (OSError, UserError):  # without a cache the next page downloads the package again
        return
