"""Files of onnxruntime-web that a page contains: from a folder, from the cache, or from npm."""

from pathlib import Path

from simkit.errors import argument
from simkit.export.npm import Package

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
VARIABLE = "SIMKIT_PAGE_RUNTIME"
SCRIPT, MACHINE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
# A page runs these files, so only the exact bytes of the release are accepted.
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    MACHINE: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}


def runtime_files(folder: Path | None = None) -> dict[str, bytes]:
    """Return the files of onnxruntime-web for one thread of WebAssembly, by name.

    Args:
        folder: the folder of these files, of the package, or of an installation of it; ``None`` takes the folder named
            by the environment variable ``SIMKIT_PAGE_RUNTIME``, or the cache, or npm's package, which is then stored
            in the cache.

    Raises:
        UserError: if the files are not found, or are not those of the supported release.
    """
    paths = {f"dist/{name}": digest for name, digest in SHA256.items()}
    package = Package(PACKAGE, VERSION, paths, VARIABLE, "a page", f"as {argument('runtime')} or ")
    return package.files(folder)
