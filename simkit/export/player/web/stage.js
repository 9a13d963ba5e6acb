// The stage: three.js from the page, a camera that orbits, a lamp with shadows, and colors of a light or a dark page.

let THREE, OrbitControls;

/** Start three.js from the blocks of the page; nothing is loaded from elsewhere. */
async function startThree() {
  const read = async (name) => new TextDecoder().decode(await bytesOf(`three-${name}`));
  const [core, module, controls] = await Promise.all(["core", "module", "OrbitControls"].map(read));
  const address = (code) => URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const coreAt = address(core);
  const moduleAt = address(module.replaceAll("./three.core.js", coreAt));
  const controlsAt = address(controls.replace("from 'three'", `from '${moduleAt}'`));
  THREE = await import(moduleAt);
  ({ OrbitControls } = await import(controlsAt));
  for (const used of [coreAt, moduleAt, controlsAt]) URL.revokeObjectURL(used);
}

const THEMES = {
  light: { paper: "#eef2f6", ink: "#1d2733", muted: "#5d6875", faint: "#d5dae0", tiles: ["#f2f5f8", "#e2e8ee"] },
  dark: { paper: "#171c23", ink: "#e6e9ee", muted: "#a3adb9", faint: "#38424e", tiles: ["#2b333d", "#232a33"] },
};
// A narrow view, as through a lens of 70 mm, and the part of the picture that is filled.
const HALF_ANGLE = 13;
const FILLED = 0.93;

/** Return the box of a scene and the direction from which it is seen first; a plane is seen along y. */
function boxOfScene({ kind, window: ends, low, high, azimuth, elevation }) {
  if (kind === "field") return [[ends[0], 0, ends[2]], [ends[1], 0, ends[3]], -90, 0];
  if (kind === "disks") return [[low[0], 0, low[1]], [high[0], 0, high[1]], -90, 0];
  return [low, high, azimuth ?? -58, elevation ?? 24];
}

/** Return the corners of a box. */
function cornersOf(low, high) {
  return Array.from({ length: 8 }, (_, k) => [0, 1, 2].map((axis) => ((k >> axis) & 1 ? high[axis] : low[axis])));
}

class Stage {
  /** Draw on a canvas a world whose box becomes one of unit diagonal around the origin, z up; a surface turns it. */
  constructor(canvas, [low, high, azimuth, elevation], surface = canvas) {
    Object.assign(this, { canvas, azimuth, elevation, margins: [0, 0, 0, 0], theme: THEMES.light });
    this.size = Math.hypot(...high.map((end, axis) => end - low[axis])) || 1;
    this.middle = high.map((end, axis) => (end + low[axis]) / 2);
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.scene = new THREE.Scene();
    this.world = new THREE.Group();
    this.world.scale.setScalar(1 / this.size);
    this.world.position.set(...this.middle.map((place) => -place / this.size));
    this.scene.add(this.world);
    this.corners = cornersOf(low, high).map((corner) => new THREE.Vector3(...corner).applyMatrix4(this.matrix()));
    this.camera = new THREE.PerspectiveCamera(2 * HALF_ANGLE, 1, 0.01, 60);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, surface);
    Object.assign(this.controls, { enableDamping: false, zoomToCursor: true, minDistance: 0.05, maxDistance: 25 });
    this.controls.addEventListener("start", () => { this.isTurned = true; });
    // The first direction is that of a picture which is drawn anyway.
    this.controls.addEventListener("change", () => this.isTurned && this.changed?.());
    this.light();
  }

  matrix() {
    this.world.updateMatrix();
    return this.world.matrix;
  }

  /** Light the world from the upper left of the first camera, with a faint light against it. */
  light() {
    const lamp = new THREE.DirectionalLight("#fff8ee", 2.5);
    const [aside, height] = [((this.azimuth - 40) * Math.PI) / 180, (54 * Math.PI) / 180];
    const along = [Math.cos(aside) * Math.cos(height), Math.sin(aside) * Math.cos(height), Math.sin(height)];
    lamp.position.set(...along.map((part) => 2 * part));
    lamp.castShadow = true;
    lamp.shadow.mapSize.set(2048, 2048);
    Object.assign(lamp.shadow.camera, { left: -0.8, right: 0.8, bottom: -0.8, top: 0.8, near: 0.5, far: 4 });
    Object.assign(lamp.shadow, { radius: 5, normalBias: 0.002, bias: -0.0006 });
    const sky = new THREE.HemisphereLight("#f4f8ff", "#c4beb6", 1.55);
    sky.position.set(0, 0, 1);
    const back = new THREE.DirectionalLight("#dfe9ff", 0.45);
    back.position.set(-along[0], -along[1], 0.5);
    this.scene.add(lamp, sky, back);
  }

  /** Set the size in pixels of the page, and the pixels that the world leaves free: above, right, below and left. */
  resize(width, height, margins) {
    Object.assign(this, { width, height, margins });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.setSize(width, height, false);
    const [above, right, below, left] = margins;
    this.camera.aspect = width / height;
    this.camera.setViewOffset(width, height, (right - left) / 2, (below - above) / 2, width, height);
    this.camera.updateProjectionMatrix();
    if (!this.isTurned) this.fit();
  }

  /** Look at the world from the first direction, near enough to fill the picture. */
  fit() {
    const [a, e] = [this.azimuth, this.elevation].map((angle) => (angle * Math.PI) / 180);
    const back = new THREE.Vector3(Math.cos(a) * Math.cos(e), Math.sin(a) * Math.cos(e), Math.sin(e));
    const right = new THREE.Vector3(-Math.sin(a), Math.cos(a), 0);
    const up = new THREE.Vector3().crossVectors(back, right);
    const [above, beside, below, left] = this.margins;
    const slope = Math.tan((HALF_ANGLE * Math.PI) / 180) * FILLED;
    const slopes = [slope * ((this.width - left - beside) / this.height), slope * ((this.height - above - below) / this.height)];
    const distances = this.corners.flatMap((corner) =>
      [right, up].map((axis, k) => Math.abs(corner.dot(axis)) / Math.max(slopes[k], 0.01) + corner.dot(back)),
    );
    this.controls.target.set(0, 0, 0);
    this.camera.position.copy(back).multiplyScalar(Math.min(Math.max(...distances, 0.1), 24));
    this.controls.update();
    this.isTurned = false;
  }

  /** Return where a point of the world is in the picture, in pixels. */
  project(point) {
    const seen = new THREE.Vector3(...point).applyMatrix4(this.matrix()).project(this.camera);
    return { x: ((seen.x + 1) / 2) * this.width, y: ((1 - seen.y) / 2) * this.height };
  }

  /** Turn the camera around the middle by angles in degrees, or move it nearer by a factor. */
  turn(across, up, nearer = 1) {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const place = new THREE.Spherical().setFromVector3(new THREE.Vector3(offset.x, offset.z, -offset.y));
    place.theta += (across * Math.PI) / 180;
    place.phi = Math.min(Math.max(place.phi - (up * Math.PI) / 180, 0.02), Math.PI - 0.02);
    place.radius = Math.min(Math.max(place.radius * nearer, 0.05), 25);
    const turned = new THREE.Vector3().setFromSpherical(place);
    this.camera.position.set(turned.x, -turned.z, turned.y).add(this.controls.target);
    this.isTurned = true;
    this.controls.update();
  }

  render() {
    this.renderer.render(this.scene, this.camera);
  }
}

/** Round rods between pairs of points, as instances of one cylinder. */
class Rods {
  constructor(parent, material) {
    Object.assign(this, { parent, material, capacity: 0 });
    this.geometry = new THREE.CylinderGeometry(1, 1, 1, 10, 1).rotateX(Math.PI / 2);
  }

  /** Show rods [from, to, radius, color as three parts up to 255]. */
  show(rods) {
    if (rods.length > this.capacity) {
      this.mesh?.removeFromParent();
      this.capacity = Math.max(16, 2 * rods.length);
      this.mesh = new THREE.InstancedMesh(this.geometry, this.material, this.capacity);
      this.mesh.frustumCulled = false;
      this.mesh.castShadow = !this.material.isMeshBasicMaterial;
      this.parent.add(this.mesh);
    }
    if (!this.mesh) return;
    const [matrix, turn, from, along, unit] = [new THREE.Matrix4(), new THREE.Quaternion(), new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3(0, 0, 1)];
    rods.forEach(([a, b, radius, color], k) => {
      along.set(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
      const length = along.length();
      turn.setFromUnitVectors(unit, length ? along.divideScalar(length) : unit);
      from.set((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2);
      this.mesh.setMatrixAt(k, matrix.compose(from, turn, along.set(radius, radius, length || 1e-9)));
      this.mesh.setColorAt(k, colorOf(color));
    });
    this.mesh.count = rods.length;
    this.mesh.instanceMatrix.needsUpdate = true;
    if (this.mesh.instanceColor) this.mesh.instanceColor.needsUpdate = true;
  }
}

/** Return three's color of parts up to 255 on a screen. */
function colorOf([red, green, blue]) {
  return new THREE.Color().setRGB(red / 255, green / 255, blue / 255, THREE.SRGBColorSpace);
}

/** Return the edges of a cell with a corner and vectors as rows, as pairs of points in space. */
function edgesOf(low, vectors) {
  const count = vectors.length;
  const corner = (number) =>
    low.map((place, axis) => vectors.reduce((sum, vector, k) => sum + ((number >> k) & 1) * vector[axis], place));
  const found = [];
  for (let k = 0; k < 2 ** count; k += 1)
    for (let bit = 0; bit < count; bit += 1) if (!((k >> bit) & 1)) found.push([corner(k), corner(k | (1 << bit))]);
  return found;
}
