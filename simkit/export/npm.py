"""Files of npm packages that pages contain: from a folder, from the cache, or from npm; only the exact bytes."""

import hashlib
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from simkit.core.compilation import cache_directory
from simkit.errors import UserError, one_line
from simkit.storage.files import make_folder, write_bytes

# Bytes of a file that are read at most, and seconds that npm may take.
_LARGEST = 64 << 20
_TIMEOUT = 600


class Package(NamedTuple):
    """A release of a package of npm.

    Attributes:
        name: of the package.
        version: of the release.
        sha256: digest of each file by its path in the package; a page runs these files, so no other bytes are taken.
        variable: environment variable that may name a folder of the files, of the package, or of an installation.
        purpose: what contains the package, for messages.
        given: how else a folder is named, for messages; such as ``"as --runtime or "``.
    """

    name: str
    version: str
    sha256: Mapping[str, str]
    variable: str
    purpose: str
    given: str = ""

    def files(self, folder: Path | None = None) -> dict[str, bytes]:
        """Return the files by their names without folders.

        Args:
            folder: holds them; ``None`` takes the folder that the environment variable names, or the cache, or npm's
                package, which is then stored in the cache.

        Raises:
            UserError: if the files are not found, or are not those of the release.
        """
        if folder is None and (named := os.environ.get(self.variable)):
            folder = Path(named).expanduser()
        if folder is not None:
            return self._read(folder)
        cache = self._cache()
        if cache is not None and all((cache / Path(path).name).is_file() for path in self.sha256):
            try:
                return self._read(cache)
            except UserError:  # damaged: written again below
                pass
        with tempfile.TemporaryDirectory() as temporary:
            files = self._read(self._fetched(Path(temporary)))
        if cache is not None:
            _store(files, cache)
        return files

    def _read(self, folder: Path) -> dict[str, bytes]:
        """Return the files of a folder that holds them side by side, of a package, or of one installed below it.

        Raises:
            UserError: if one is missing or not that of the release.
        """
        files = {}
        for path, digest in self.sha256.items():
            name = Path(path).name
            places = (folder / name, folder / path, folder / "node_modules" / self.name / path)
            source = next((each for each in places if each.is_file()), places[0])
            try:
                with source.open("rb") as file:
                    files[name] = file.read(_LARGEST)
            except OSError:
                files[name] = b""
            if hashlib.sha256(files[name]).hexdigest() != digest:
                raise UserError(
                    f"{folder} does not hold the {name} of {self.name} {self.version}; give the "
                    f"{Path(path).parts[0]} folder of that npm package"
                )
        return files

    def _fetched(self, folder: Path) -> Path:
        """Download npm's package to a folder, and return the folder of its files.

        Raises:
            UserError: if npm is not installed, or cannot download it.
        """
        command = ["npm", "pack", f"{self.name}@{self.version}"]
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
                for path in self.sha256:
                    file = archive.extractfile(f"package/{path}")
                    if file is not None:
                        (folder / Path(path).name).write_bytes(file.read(_LARGEST))
        except (OSError, EOFError, KeyError, tarfile.TarError, subprocess.TimeoutExpired) as error:
            names = " and ".join(Path(path).name for path in self.sha256)
            raise UserError(
                f"{self.purpose} contains {self.name} {self.version}, which npm cannot download "
                f"({one_line(error, 160)}); install Node.js and connect to npm's registry, or name a folder that holds "
                f"{names} of it, {self.given}in {self.variable}"
            ) from None
        return folder

    def _cache(self) -> Path | None:
        compiled = cache_directory()
        return None if compiled is None else compiled.parent / f"{self.name}-{self.version}"


def _complaint(text: str) -> str:
    """Return the line of npm's errors that says what is wrong."""
    lines = [line.removeprefix("npm ERR! ").removeprefix("npm error ") for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("code")), "")


def _store(files: dict[str, bytes], cache: Path) -> None:
    try:
        make_folder(cache)
        for name, data in files.items():
            write_bytes(cache / name, data)
    except (OSError, UserError):  # without a cache the next page downloads the package again
        return


# The version and the digests change together: `npm pack three@VERSION`, then `sha256sum`.
THREE = Package(
    "three",
    "0.187.0",
    {
        "build/three.core.js": "613e370f76638fdef83926642bf256dc9615684922de1ce1f63a8583e5d78578",
        "build/three.module.js": "104f56145899722094556490d787aae0617cc2fc3382f31df02d724ea1aee341",
        "examples/jsm/controls/OrbitControls.js": "e7fca2fe9e7670a828af9b28084669a5909445b7f36f1f26cee9bf8f2961c32c",
    },
    "SIMKIT_THREE",
    "a picture in space",
)


def three_blocks(folder: Path | None = None) -> dict[str, bytes]:
    """Return the scripts of three.js by the identifiers of their elements, without comments and indentation.

    These are 60 % of their bytes; within its texts, which are programs for graphics cards, they mean nothing either.

    Args:
        folder: of its files, see `Package.files`.

    Raises:
        UserError: if three.js is not available.
    """
    files = {name.removesuffix(".js").removeprefix("three."): data for name, data in THREE.files(folder).items()}
    return {f"three-{name}": _without_comments(data.decode()).encode() for name, data in files.items()}


def _without_comments(text: str) -> str:
    """Return a script without lines of comments, but for its license, without blank lines and indentation."""
    text = re.sub(r"^[ \t]*/\*\*(?!\s*\* @license)([^*]|\*(?!/))*\*/[ \t]*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^[ \t]+", "", re.sub(r"^[ \t]*(//.*)?\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
