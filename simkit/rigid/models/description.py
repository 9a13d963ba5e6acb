"""Description of an articulated model for any engine: bodies, shapes to draw, gravity and initial state."""

import dataclasses
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.errors import UserError, known, one_line
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.models.source import library


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The G geoms to be drawn, each a box of half lengths rounded by a radius.

    Spheres, capsules and boxes are exact. Cylinders, ellipsoids and meshes are drawn as the rounded box of their
    extent; planes and height fields are not drawn.

    Attributes:
        body: index of the body of each geom, (G,); 0 is the world.
        position: in the body frame in m, (G, 3).
        orientation: in the body frame, (G, 4).
        half_lengths: in m, (G, 3).
        radius: in m, (G,).
    """

    body: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    half_lengths: np.ndarray
    radius: np.ndarray


@dataclasses.dataclass(frozen=True)
class Description:
    """A model without its world body: B bodies, nq coordinates, nv velocities, nu actuators.

    Attributes:
        mujoco: the compiled `mujoco.MjModel`, not to be modified.
        mass: in kg, (B,).
        inertia: principal moments in kg m^2, (B, 3).
        inertia_frame: orientation of the principal axes in the body frame, (B, 4).
        armature: inertia of the rotors, (nv,).
        gravity: magnitude in m/s^2.
        down: unit vector along gravity, (3,); zero if the model switches gravity off.
        position: coordinates at the start, (nq,).
        velocity: velocities at the start, (nv,).
        control: controls at the start, (nu,).
        springs: of S joints with one coordinate, (3, S): stiffness, index of the coordinate, rest position.
        shapes: geoms to be drawn.
        lines: where each geom, joint, tendon, actuator, equality, body, sensor and pair is, by kind: "arm.xml:12".
    """

    mujoco: Any
    mass: np.ndarray
    inertia: np.ndarray
    inertia_frame: np.ndarray
    armature: np.ndarray
    gravity: float
    down: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    control: np.ndarray
    springs: np.ndarray
    shapes: Shapes
    lines: Mapping[str, Mapping[int, str]]

    def place_of(self, kind: str, which: Any) -> str:
        """Return the name and line of the first of some parts, such as "joint 'knee' (line 7)", or "" of none.

        Args:
            kind: of the parts, as in ``lines``.
            which: for each part whether it is one.
        """
        indices = np.flatnonzero(which)
        if not len(indices):
            return ""
        name, line = getattr(self.mujoco, kind)(indices[0]).name, self.lines[kind].get(int(indices[0]))
        return f"{kind} {repr(name) if name else indices[0]}" + (f" ({line})" if line else "")

    def masses(self, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return masses in kg (B, ...) and principal moments in kg m^2 (B, 3, ...), scaled with the masses."""
        mass = params["mass"]
        if isinstance(mass, dict):
            mass = jnp.stack([mass[name] for name in names(self.mujoco, "body")[1:]])
        mass = mass * params["mass_scale"]
        ratio = mass / jnp.asarray(self.mass.reshape((-1,) + (1,) * (mass.ndim - 1)), mass.dtype)
        inertia = self.inertia.reshape(self.inertia.shape + (1,) * (mass.ndim - 1))
        return mass, jnp.asarray(inertia, mass.dtype) * ratio[:, None]

    def rotors(self, params: Params) -> jax.Array:
        """Return the inertia of the rotors of the model, (nv,)."""
        return jnp.asarray(self.armature, params["time_step"].dtype)

    def stiffness(self, params: Params) -> jax.Array:
        """Return the stiffness of the model's springs at joints with one coordinate, (S,)."""
        return jnp.asarray(self.springs[0], params["time_step"].dtype)

    def gravity_vector(self, params: Params) -> jax.Array:
        """Return the acceleration of free fall in m/s^2, (3, ...) for a strength (...).

        A parameter ``slope``, in rad, turns it about the axis y, so that x points downhill.
        """
        x, y, z = (params["gravity"] * float(component) for component in self.down)
        if "slope" not in params:
            return jnp.stack([x, y, z])
        sine, cosine = jnp.sin(params["slope"]), jnp.cos(params["slope"])
        return jnp.stack([cosine * x - sine * z, y, cosine * z + sine * x])


def describe(model: Any, spec: Any, keyframe: str | int | None = None, file: str = "") -> Description:
    """Return the description of a compiled model.

    Its initial state is that of a keyframe; by default its custom number ``init_qpos`` (which brax reads), else its
    first keyframe.

    Args:
        model: a `mujoco.MjModel`.
        spec: the `mujoco.MjSpec` that it was compiled from.
        keyframe: name or index of the keyframe that it starts from; None for the default.
        file: that all parts are in; "" of a text.

    Raises:
        UserError: if it has no such keyframe.
    """
    mujoco = library("mujoco")
    strength = float(np.linalg.norm(model.opt.gravity))
    position, velocity, control = model.qpos0.copy(), np.zeros(model.nv), np.zeros(model.nu)
    if model.nkey or keyframe is not None:
        key = 0 if keyframe is None else _keyframe(model, keyframe)
        position, velocity, control = (a[key].copy() for a in (model.key_qpos, model.key_qvel, model.key_ctrl))
    custom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, "init_qpos")
    if keyframe is None and custom >= 0 and model.numeric_size[custom] == model.nq:
        first = model.numeric_adr[custom]
        position = model.numeric_data[first : first + model.nq].copy()
    # The first stiffness coefficient is the linear one; further ones are of higher order.
    stiffness = model.jnt_stiffness.reshape(model.njnt, -1)[:, 0]
    single = model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)
    off = mujoco.mjtDisableBit
    stiffness = stiffness * (not model.opt.disableflags & int(off.mjDSBL_SPRING))
    down = model.opt.gravity / strength if strength else np.array([0.0, 0.0, -1.0])
    where = model.jnt_qposadr[single]
    return Description(
        mujoco=model,
        mass=model.body_mass[1:].copy(),
        inertia=model.body_inertia[1:].copy(),
        inertia_frame=model.body_iquat[1:].copy(),
        armature=model.dof_armature.copy(),
        gravity=strength,
        down=down * (not model.opt.disableflags & int(off.mjDSBL_GRAVITY)),
        position=position,
        velocity=velocity,
        control=control,
        springs=np.stack([stiffness[single], where, model.qpos_spring[where]]),
        shapes=_shapes(model),
        lines={
            kind: {part.id: _line(part.info, file) for part in parts if part.info}
            for kind, parts in {
                "geom": spec.geoms,
                "joint": spec.joints,
                "tendon": spec.tendons,
                "actuator": spec.actuators,
                "equality": spec.equalities,
                "body": spec.bodies,
                "sensor": spec.sensors,
                "pair": spec.pairs,
            }.items()
        },
    )


def _keyframe(model: Any, keyframe: str | int) -> int:
    """Return the index of a keyframe."""
    if isinstance(keyframe, int):
        if keyframe >= model.nkey:
            raise UserError(f"keyframe = {keyframe} is not below the model's number of keyframes, {model.nkey}")
        return keyframe
    keyframes = [model.key(index).name for index in range(model.nkey)]
    return keyframes.index(known(keyframe, [name for name in keyframes if name], "keyframe", "keyframe of the model"))


def _line(info: str, file: str) -> str:
    """Return where a part is, from what MuJoCo says of it, such as ``line 12``."""
    line = one_line(info)
    return line.replace("line ", f"{file}:", 1) if file else line


def names(model: Any, kind: Literal["body", "joint", "actuator", "sensor"]) -> list[str]:
    """Return the names of a model's parts of a kind, as keys of parameters; a part without a name has its number.

    Args:
        model: a `mujoco.MjModel`.
        kind: ``"body"`` (the first is the world), ``"joint"``, ``"actuator"`` or ``"sensor"``.
    """
    count = {"body": model.nbody, "joint": model.njnt, "actuator": model.nu, "sensor": model.nsensor}[kind]
    found: list[str] = []
    for index in range(count):
        own = re.sub(r"[^A-Za-z0-9_]", "_", _latin(getattr(model, kind)(index).name))[:40].strip("_")
        name = own if own[:1].isalpha() else f"{kind}_{own or index}"
        # Two names that differ in other characters only: the later one is numbered.
        found.append(next(each for n in range(count + 1) if (each := name if n == 0 else f"{name}_{n}") not in found))
    return found


def _latin(text: str) -> str:
    """Return a text with Greek letters by their names, and other letters without accents."""
    letters = unicodedata.normalize("NFKD", text)
    names = (re.match(r"GREEK \w+ LETTER (\w+)", unicodedata.name(letter, "")) for letter in letters)
    # Unicode writes lambda without b.
    words = (name[1].lower().replace("lamda", "lambda") if name else "" for name in names)
    pairs = zip(letters, words, strict=True)
    return "".join(word or letter for letter, word in pairs if not unicodedata.combining(letter))


def place(shapes: Shapes, position: jax.Array, orientation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return positions (G, 3) and orientations (G, 4) of shapes for positions and orientations of their bodies.

    Args:
        shapes: the G geoms.
        position: of the body frames in m, (B, 3).
        orientation: of the body frames, (B, 4).
    """
    dtype = position.dtype
    world = jnp.zeros((1, 3), dtype), jnp.asarray([[1, 0, 0, 0]], dtype)
    at = vector.vector(jnp.concatenate([world[0], position])[shapes.body])
    turned = quaternion.quaternion(jnp.concatenate([world[1], orientation])[shapes.body])
    offset = vector.vector(jnp.asarray(shapes.position, dtype))
    in_body = quaternion.quaternion(jnp.asarray(shapes.orientation, dtype))
    orientations = quaternion.multiply(turned, in_body)
    return vector.stacked(at + quaternion.rotate(turned, offset)), quaternion.stacked(orientations)


def subtree_matrix(model: Any) -> np.ndarray:
    """Return the matrix that sums values of bodies over the subtree of each body, (nbody, nbody).

    Args:
        model: a `mujoco.MjModel`.
    """
    sums = np.eye(model.nbody)
    for body in range(model.nbody - 1, 0, -1):
        sums[model.body_parentid[body]] += sums[body]
    return sums


def _shapes(model: Any) -> Shapes:
    mujoco = library("mujoco")
    kinds = mujoco.mjtGeom
    rows = []
    for geom, number in enumerate(model.geom_type):
        kind = kinds(int(number))
        size, offset = model.geom_size[geom], np.zeros(3)
        if kind in (kinds.mjGEOM_PLANE, kinds.mjGEOM_HFIELD):
            continue
        if kind == kinds.mjGEOM_SPHERE:
            half, radius = np.zeros(3), size[0]
        elif kind == kinds.mjGEOM_CAPSULE:
            half, radius = np.array([0, 0, size[1]]), size[0]
        elif kind == kinds.mjGEOM_BOX:
            half, radius = size, 0.0
        else:
            offset, extent = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
            radius = extent.min()
            half = extent - radius
        turn = model.geom_quat[geom]
        moved = np.zeros(3)
        mujoco.mju_rotVecQuat(moved, offset, turn)
        rows.append((model.geom_bodyid[geom], model.geom_pos[geom] + moved, turn, half, radius))
    if not rows:
        # A model without drawn geoms: each body is drawn as the ball of its mass and inertia, 2/5 m r^2.
        radii = np.sqrt(2.5 * model.body_inertia[1:].mean(axis=1) / model.body_mass[1:])
        rows = [
            (body, model.body_ipos[body], np.array([1.0, 0, 0, 0]), np.zeros(3), radius)
            for body, radius in enumerate(radii, start=1)
        ]
    body, position, orientation, half_lengths, radius = (np.array(column) for column in zip(*rows, strict=True))
    return Shapes(body, position, orientation, half_lengths, radius)
