// Rigid bodies of true shape with marks that show how they turn, the planes below them, rods, targets and paths.

// Marks on a body at a point of its surface: pale where positive, dark where negative.
const MARKS = {
  ball: `vec3 n = normalize(vPlace); float stripe = soft(0.13 - abs(n.z)), point = soft(abs(n.x - n.y) * 0.70711 - 0.98);
    return (1.0 - point) * 0.5 * stripe - 0.75 * point;`,
  capsule: `vec3 n = normalize(vec3(vPlace.xy, vPlace.z - clamp(vPlace.z, -half_z, half_z)));
    return n.x > 0.0 ? 0.5 * soft(0.13 - abs(n.y)) : 0.0;`,
  disk: "return 0.45 * soft(min(abs(vPlace.x), abs(vPlace.y)) * sign(vPlace.x * vPlace.y));",
  box: "return vPlace.z > half_z * 0.999 ? two_faced * 0.5 : 0.0;",
  plain: "return 0.0;",
};

/** Let the color of a material depend on the place in its geometry, vPlace, by code of its fragment shader. */
function colorByPlace(material, uniforms, declarations, statements) {
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, uniforms);
    const extend = (name, part, code) => {
      shader[name] = shader[name].replace(`#include <${part}>`, `#include <${part}>\n${code}`);
    };
    extend("vertexShader", "common", "varying vec3 vPlace;");
    extend("vertexShader", "begin_vertex", "vPlace = position;");
    extend("fragmentShader", "common", `varying vec3 vPlace;\n${declarations}`);
    extend("fragmentShader", "color_fragment", statements);
  };
  return material;
}

/** Return a material whose color is changed by marks of a kind. */
function markedMaterial(kind, half, twoFaced) {
  const material = new THREE.MeshPhysicalMaterial({ roughness: 0.42, clearcoat: 0.25, clearcoatRoughness: 0.35 });
  material.customProgramCacheKey = () => kind;
  return colorByPlace(
    material,
    { half_z: { value: half }, two_faced: { value: twoFaced ? 1 : 0 } },
    `uniform float half_z; uniform float two_faced;
    float soft(float inside) { return clamp(0.5 + inside / max(fwidth(inside), 1e-6), 0.0, 1.0); }
    float marked() { ${MARKS[kind]} }`,
    `float pale = marked();
    diffuseColor.rgb = pale > 0.0 ? mix(diffuseColor.rgb, vec3(1.0), pale) : diffuseColor.rgb * (1.0 + pale);`,
  );
}

/** Return the geometry of a box whose edges are rounded by a radius: parts of a sphere moved to its corners. */
function roundedBox([x, y, z], radius) {
  const geometry = new THREE.SphereGeometry(1, 32, 25, Math.PI / 32);
  const { position, normal } = geometry.attributes;
  for (let k = 0; k < position.count; k += 1) {
    const place = [position.getX(k), position.getZ(k), position.getY(k)];
    // Next to a plane of symmetry the surface is flat.
    const flat = place.map((part) => (Math.abs(part) < 0.13 ? 0 : part));
    const length = Math.hypot(...flat) || 1;
    const [a, b, c] = flat.map((part) => part / length);
    position.setXYZ(k, Math.sign(place[0]) * x + radius * a, -(Math.sign(place[1]) * y + radius * b), Math.sign(place[2]) * z + radius * c);
    normal.setXYZ(k, a, -b, c);
  }
  return geometry;
}

/** Return the hull of points, three numbers each: every triangle with all points on one side. */
function hullOf(numbers) {
  const points = [];
  for (let k = 0; k + 2 < numbers.length; k += 3) {
    const point = new THREE.Vector3(...numbers.slice(k, k + 3));
    if (!points.some((other) => other.distanceTo(point) === 0)) points.push(point);
  }
  const size = Math.max(...points.map((point) => point.length()));
  const found = [];
  const [u, v, normal] = [new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3()];
  for (let a = 0; a < points.length; a += 1)
    for (let b = a + 1; b < points.length; b += 1)
      for (let c = b + 1; c < points.length; c += 1) {
        normal.crossVectors(u.subVectors(points[b], points[a]), v.subVectors(points[c], points[a]));
        if (normal.length() < 1e-9 * size * size) continue;
        normal.normalize();
        const heights = points.map((point) => normal.dot(point) - normal.dot(points[a]));
        if (heights.every((height) => height < 1e-5 * size)) found.push(points[a], points[b], points[c]);
        else if (heights.every((height) => height > -1e-5 * size)) found.push(points[a], points[c], points[b]);
      }
  const geometry = new THREE.BufferGeometry().setFromPoints(found);
  geometry.computeVertexNormals();
  return geometry;
}

/** Return kind and geometry of a body with its sizes in m. */
function solidOf(half, radius, disk, corners, isFine) {
  const [across, along] = isFine ? [64, 40] : [28, 18];
  if (disk === 2) return ["ball", new THREE.SphereGeometry(1, across, along).scale(...half)];
  if (disk === 3) return ["plain", hullOf(corners)];
  if (disk) return ["disk", new THREE.CylinderGeometry(half[0], half[0], 2 * half[2], 72).rotateX(Math.PI / 2)];
  if (!half.some((length) => length > 0)) return ["ball", new THREE.SphereGeometry(radius, across, along)];
  if (radius > 0 && !(half[0] > 0) && !(half[1] > 0))
    return ["capsule", new THREE.CapsuleGeometry(radius, 2 * half[2], along / 2, across).rotateX(Math.PI / 2)];
  if (radius > 0) return ["box", roundedBox(half, radius)];
  return ["box", new THREE.BoxGeometry(...half.map((length) => 2 * length))];
}

class BodyScene {
  constructor(stage, drawing) {
    Object.assign(this, { stage, drawing, groups: new Map(), planes: new Map() });
    this.scale = drawing.scale ? new ColorScale(drawing.scale) : null;
    const standard = (color) => new THREE.MeshStandardMaterial({ color, roughness: 0.5 });
    this.links = new Rods(stage.world, standard("#ffffff"));
    this.paths = new Rods(stage.world, new THREE.MeshBasicMaterial());
    this.pins = this.balls("#39434f");
    this.marks = this.balls(ACCENT);
    this.rings = new THREE.Group();
    stage.world.add(this.rings);
  }

  balls(color) {
    const mesh = new THREE.InstancedMesh(new THREE.SphereGeometry(1, 32, 20), new THREE.MeshStandardMaterial({ color }), 64);
    Object.assign(mesh, { frustumCulled: false, castShadow: true });
    this.stage.world.add(mesh);
    return mesh;
  }

  place(mesh, points, radius) {
    mesh.count = Math.min(points.length, 64);
    points.slice(0, 64).forEach((point, k) => mesh.setMatrixAt(k, new THREE.Matrix4().makeScale(radius, radius, radius).setPosition(...point)));
    mesh.instanceMatrix.needsUpdate = true;
  }

  /** Show a frame, with the paths up to it: lines of {center, color, isPresent} and their ages in runs. */
  update(frame, trail = []) {
    const { drawing, stage } = this;
    const bodies = readBodies(frame, drawing, this.scale);
    const shown = bodies.filter((body) => body.isPresent && Math.hypot(...body.half) + body.radius > 0);
    this.showSolids(shown);
    this.showPlanes(frame);
    const thin = 0.0032 * stage.size;
    this.links.show(linksOf(frame).map(([from, to]) => [from, to, thin, rgb(WALL)]));
    const thinnest = Math.min(...shown.map((body) => body.radius || Infinity));
    this.place(this.pins, pointsOf(frame, "pivots"), Math.max(2.6 * thin, Number.isFinite(thinnest) ? 1.35 * thinnest : 0));
    this.showTargets(pointsOf(frame, "target"));
    this.showPaths(trail);
  }

  showSolids(bodies) {
    for (const group of this.groups.values()) group.bodies = [];
    for (const body of bodies) {
      const key = [...body.half, body.radius, body.disk, ...body.corners].map(String).join();
      if (!this.groups.has(key)) this.groups.set(key, { bodies: [], capacity: 0 });
      this.groups.get(key).bodies.push(body);
    }
    const [matrix, turn, one] = [new THREE.Matrix4(), new THREE.Quaternion(), new THREE.Vector3(1, 1, 1)];
    for (const [key, group] of this.groups) {
      if (group.bodies.length > group.capacity) this.grow(group);
      // Shapes of another size, which a parameter had, are not kept.
      if (!group.bodies.length) {
        this.dispose(group);
        this.groups.delete(key);
        continue;
      }
      group.bodies.forEach((body, k) => {
        const [w, x, y, z] = body.turn;
        turn.set(x, y, z, w).normalize();
        group.mesh.setMatrixAt(k, matrix.compose(new THREE.Vector3(...body.center), turn, one));
        group.mesh.setColorAt(k, colorOf(body.color));
      });
      group.mesh.count = group.bodies.length;
      group.mesh.instanceMatrix.needsUpdate = true;
      group.mesh.instanceColor.needsUpdate = true;
    }
  }

  grow(group) {
    this.dispose(group);
    const { half, radius, disk, corners } = group.bodies[0];
    const [kind, geometry] = solidOf(half, radius, disk, corners, group.bodies.length <= 60);
    group.capacity = group.bodies.length;
    const top = half[2] + (kind === "box" ? radius : 0);
    group.mesh = new THREE.InstancedMesh(geometry, markedMaterial(kind, top, this.drawing.two_faced), group.capacity);
    Object.assign(group.mesh, { frustumCulled: false, castShadow: true, receiveShadow: true });
    this.stage.world.add(group.mesh);
  }

  dispose(group) {
    group.mesh?.removeFromParent();
    group.mesh?.geometry.dispose();
    group.mesh?.material.dispose();
  }

  showPlanes(frame) {
    const given = frame.arrays.planes?.data ?? [];
    const planes = this.drawing.floor ? [[0, 0, 1, 0]] : [];
    for (let k = 0; k + 3 < given.length; k += 4) {
      const plane = Array.from(given.slice(k, k + 4));
      const isFloor = plane[2] > 1 - 1e-4 && Math.abs(plane[3]) < 1e-4 * this.stage.size;
      if (plane.every(Number.isFinite) && !(isFloor && planes.length)) planes.push(isFloor ? [0, 0, 1, 0] : plane);
    }
    const key = planes.join(";");
    if (key === this.planesShown) return;
    this.planesShown = key;
    for (const mesh of this.planes.values()) mesh.removeFromParent();
    this.planes = new Map(planes.map((plane) => [plane.join(), this.plane(plane)]));
  }

  /** Return squares on a plane, which fade away from the middle and catch shadows. */
  plane([x, y, z, offset]) {
    const { stage, drawing } = this;
    const normal = new THREE.Vector3(x, y, z).normalize();
    const level = new THREE.Vector3(0, 0, 1).cross(normal);
    const first = level.length() > 1e-9 ? level.normalize() : new THREE.Vector3(1, 0, 0);
    const second = new THREE.Vector3().crossVectors(normal, first);
    const middle = new THREE.Vector3(...stage.middle);
    const [u, v] = [middle.dot(first), middle.dot(second)];
    const reach = 1.6 * stage.size;
    this.tiles ??= stage.theme.tiles.map((color) => ({ value: new THREE.Color(color) }));
    const [first_tile, second_tile] = this.tiles;
    const [origin, tile] = [{ value: new THREE.Vector2(u, v) }, { value: drawing.tile }];
    const material = colorByPlace(
      new THREE.MeshStandardMaterial({ transparent: true, roughness: 0.95 }),
      { first_tile, second_tile, origin, tile, reach: { value: reach } },
      "uniform vec3 first_tile, second_tile; uniform vec2 origin; uniform float tile, reach;",
      `vec2 square = (vPlace.xy + origin) / tile, w = max(fwidth(square), 1e-4);
      // The mean of the squares over a pixel: no flicker far away.
      vec2 run = 2.0 * (abs(fract((square - 0.5 * w) / 2.0) - 0.5) - abs(fract((square + 0.5 * w) / 2.0) - 0.5)) / w;
      diffuseColor.rgb = mix(first_tile, second_tile, 0.5 - 0.5 * run.x * run.y);
      float rest = 1.0 - length(vPlace.xy) / reach;
      diffuseColor.a = pow(clamp(rest, 0.0, 1.0), 0.75) * smoothstep(0.0, 0.3, rest);`,
    );
    const mesh = new THREE.Mesh(new THREE.PlaneGeometry(2 * reach, 2 * reach), material);
    mesh.receiveShadow = true;
    mesh.matrixAutoUpdate = false;
    mesh.matrix.makeBasis(first, second, normal);
    mesh.matrix.setPosition(first.multiplyScalar(u).addScaledVector(second, v).addScaledVector(normal, offset));
    stage.world.add(mesh);
    return mesh;
  }

  recolor() {
    this.tiles?.forEach((tile, k) => tile.value.set(this.stage.theme.tiles[k]));
  }

  showTargets(points) {
    const { drawing, stage, rings } = this;
    const size = 0.04 * stage.size;
    const flat = points.filter((point) => drawing.floor && Math.abs(point[2]) < 0.025 * stage.size);
    this.place(this.marks, points.filter((point) => !flat.includes(point)), size / 2);
    while (rings.children.length < 2 * flat.length) {
      const shape = rings.children.length % 2 ? new THREE.CircleGeometry(0.45, 40) : new THREE.RingGeometry(0.9, 1.05, 56);
      rings.add(new THREE.Mesh(shape, new THREE.MeshBasicMaterial({ color: ACCENT, polygonOffset: true, polygonOffsetUnits: -4, polygonOffsetFactor: -2 })));
    }
    rings.children.forEach((ring, k) => {
      const point = flat[Math.floor(k / 2)];
      ring.visible = Boolean(point);
      if (point) ring.position.set(point[0], point[1], 1e-4 * stage.size);
      ring.scale.setScalar(size);
    });
  }

  /** Show the paths of bodies or traced points, which fade with their age. */
  showPaths(trail) {
    const paper = rgb(this.stage.theme.paper);
    const rods = [];
    for (let k = 1; k < trail.length; k += 1) {
      const strength = strengthOf(trail[k]);
      trail[k].line.forEach((body, number) => {
        const before = trail[k - 1].line[number];
        if (!before?.isPresent || !body.isPresent) return;
        const color = body.color.map((part, axis) => paper[axis] + strength * (part - paper[axis]));
        rods.push([before.center, body.center, 0.0016 * this.stage.size, color]);
      });
    }
    this.paths.show(rods);
  }
}

/** Return the strength of a color of a path by its age. */
function strengthOf({ faintest, age }) {
  return faintest + (0.9 - faintest) * Math.exp(-age / 0.12);
}

/** Return what a path holds of a frame: traced points, or the bodies if they are few. */
function pathOf(frame, drawing, scale) {
  const traced = pointsOf(frame, "trace").map((center) => ({ center, color: rgb(ACCENT), isPresent: true }));
  const line = traced.length ? traced : readBodies(frame, drawing, scale);
  return { line: line.length > drawing.most_paths && !traced.length ? [] : line, faintest: traced.length ? 0.65 : 0.3 };
}
