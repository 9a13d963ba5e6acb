"""Reader of articulated models in MJCF or URDF, with one-line errors."""

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simkit.core.arguments import check_type
from simkit.errors import UserError, known, one_line, package
from simkit.rigid.models.model_text import checked, shown

PACKAGE = "brax:"
# Endings of files of meshes that MuJoCo reads.
MESHES = (".stl", ".obj", ".msh")
REMEDY = 'give a file of MJCF or URDF, its text, or a model of brax such as "brax:ant.xml"'


def library(name: str) -> Any:
    """Return a module of the engine libraries, such as ``"mujoco"`` or ``"brax.io.mjcf"``.

    Raises:
        UserError: if it is not installed.
    """
    with quiet():
        return package(name, name, {"mujoco.mjx": "mujoco-mjx"}.get(name, name.partition(".")[0]))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Context manager that suppresses messages of brax and MJX about missing packages and maintenance."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_spec(model: str | Path, *, from_disk: bool = True) -> Any:
    """Return the `mujoco.MjSpec` of a model, with bodies without a joint fused into their parents.

    Args:
        model: path of a file; or the text itself, which starts with ``<``; or ``"brax:NAME"`` for a model of the
            installed package brax.
        from_disk: whether paths are allowed, and with them the further files that a model in a file names.

    Raises:
        UserError: if there is no such model, or it is malformed; and for a text, if it names files or requests more
            work than a text may.
    """
    check_type("model", model, REMEDY.removeprefix("give "), str, Path)
    mujoco, text = library("mujoco"), str(model)
    try:
        if text.lstrip().startswith("<"):
            spec = _of_text(checked(text))
        elif text.startswith(PACKAGE):
            spec = _parsed(mujoco.MjSpec.from_file, str(_in_package(text.removeprefix(PACKAGE))))
        elif from_disk:
            spec = _of_file(_existing(text))
        else:
            raise UserError(
                f"model = {shown(text)} is neither a model's text nor a model of brax; "
                'write model = { file = "NAME.xml" } for a file beside the scenario, or model = "brax:ant.xml"'
            )
        spec.compiler.fusestatic = True
        _name_bodies(spec)
    except (ValueError, MemoryError, mujoco.FatalError) as error:
        raise refusal(error) from error
    return spec


def compiled(spec: Any) -> Any:
    """Return the `mujoco.MjModel` of a specification.

    Raises:
        UserError: if MuJoCo refuses the model, or it has no joint.
    """
    try:
        with warnings.catch_warnings():
            # Of models of brax, which the user cannot change.
            warnings.filterwarnings("ignore", "compiler attribute 'settotalmass'")
            model = spec.compile()
    except (ValueError, MemoryError, library("mujoco").FatalError) as error:
        raise refusal(error) from error
    if model.nv == 0:
        raise UserError("the model has no joint, so nothing moves; add a <joint> or <freejoint> to a body")
    return model


def without_reports(spec: Any, *, keep_sensors: bool = False) -> Any:
    """Return a specification without what only reports, which `mjx` and brax refuse and simkit does not read.

    These are its sensors, and the flags that make MuJoCo compute energies and compare forward with inverse dynamics.

    Args:
        spec: a `mujoco.MjSpec`, changed in place.
        keep_sensors: whether the engine reads sensors.
    """
    kinds = library("mujoco").mjtEnableBit
    spec.option.enableflags &= ~(int(kinds.mjENBL_ENERGY) | int(kinds.mjENBL_FWDINV))
    for sensor in [] if keep_sensors else list(spec.sensors):
        spec.delete(sensor)
    return spec


def refusal(error: Exception) -> UserError:
    """Return the error of MuJoCo about a model as one line."""
    return UserError(f"the model is refused by MuJoCo: {one_line(error)}; {REMEDY}")


def _of_text(text: str, folder: str = "") -> Any:
    """Return the specification of a text; of URDF with the shapes that are only drawn, where a link has no others.

    Args:
        text: MJCF or URDF.
        folder: of the meshes that it names.
    """
    mujoco = library("mujoco")
    before, root, after = text.rpartition("</robot>")
    is_urdf = bool(root) and "<mujoco" not in text
    if is_urdf:
        text = f'{before}<mujoco><compiler discardvisual="false"/></mujoco>{root}{after}'
    spec = _parsed(mujoco.MjSpec.from_string, text)
    if folder:
        spec.modelfiledir = folder
    if is_urdf:
        _draw_what_has_no_other_shape(spec, Path(folder))
    return spec


def _of_file(path: Path) -> Any:
    text = path.read_text(errors="replace")
    is_urdf = "</robot>" in text
    return _of_text(text, f"{path.parent}/") if is_urdf else _parsed(library("mujoco").MjSpec.from_file, str(path))


def _draw_what_has_no_other_shape(spec: Any, folder: Path) -> None:
    """Keep shapes without contact, weightless, in links without others, unless MuJoCo cannot read their meshes."""
    meshes = {mesh.name: folder / mesh.file for mesh in spec.meshes}

    def is_readable(geom: Any) -> bool:
        file = meshes.get(geom.meshname)
        return file is None or (file.suffix.lower() in MESHES and file.is_file())

    for body in spec.bodies:
        touches = [bool(geom.contype or geom.conaffinity) for geom in body.geoms]
        for geom, is_solid in zip(list(body.geoms), touches, strict=True):
            if is_solid:
                continue
            geom.mass = 0
            if any(touches) or not is_readable(geom):
                spec.delete(geom)
    used = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in used:
            spec.delete(mesh)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """Return the result of a parser of MuJoCo; its only warning, of a number that is NaN, is an error."""
    mujoco, messages = library("mujoco"), list[str]()
    # By default MuJoCo prints its warnings, and writes them to a file in the working directory.
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)
    try:
        spec = parse(text)
    finally:
        mujoco.set_mju_user_warning(before)
    if messages:
        raise ValueError(messages[0])
    return spec


def _name_bodies(spec: Any) -> None:
    """Name bodies that have no name, since sensors refer to bodies by name."""
    names = {body.name for body in spec.bodies}
    for index, body in enumerate(spec.bodies):
        if not body.name:
            name = f"body_{index}"
            body.name = name if name not in names else f"{name}_without_name"


def _existing(text: str) -> Path:
    path = Path(text)
    try:
        if path.is_file():
            return path
        what = "is a directory" if path.is_dir() else "does not exist"
    except (OSError, ValueError):
        what = "is not a path"
    raise UserError(f"model = {shown(text)} {what}; {REMEDY}")


def _in_package(name: str) -> Path:
    package = importlib.util.find_spec("brax") or library("brax").__spec__
    folder = Path(str(package.origin)).parent / "envs" / "assets"
    return folder / known(name, sorted(path.name for path in folder.glob("*.xml")), "model of brax")
