// Particles: exact spheres in space, or disks in their plane with periodic images, drawn on one square each; cell, bonds.

const SPHERE_VERTEX = `
  attribute vec3 center; attribute vec3 tint; attribute float radius;
  uniform float scale; uniform bool flat_;
  varying vec3 vCorner; varying vec3 vCenter; varying vec3 vTint; varying float vRadius; varying vec2 vSquare; varying vec3 vPlace;
  void main() {
    vTint = tint; vSquare = position.xy; vRadius = radius * scale;
    vPlace = center + (flat_ ? vec3(position.x, 0.0, position.y) * radius : vec3(0.0));
    vCenter = (modelViewMatrix * vec4(center, 1.0)).xyz;
    if (flat_) vCorner = (modelViewMatrix * vec4(vPlace, 1.0)).xyz;
    else {
      // A square that faces the eye and holds the outline of the sphere.
      float away = length(vCenter);
      vec3 back = -vCenter / away, right = normalize(cross(vec3(0.0, 1.0, 0.0), back));
      float reach = vRadius * away / sqrt(max(away * away - vRadius * vRadius, 1e-9));
      vCorner = vCenter + (right * position.x + cross(back, right) * position.y) * reach * 1.02;
    }
    gl_Position = projectionMatrix * vec4(vCorner, 1.0);
  }`;

const SPHERE_FRAGMENT = `
  uniform mat4 projectionMatrix; uniform bool flat_; uniform vec3 ink, paper; uniform vec2 depths;
  uniform mat3 inverse_; uniform vec3 low; uniform vec3 periodic;
  varying vec3 vCorner; varying vec3 vCenter; varying vec3 vTint; varying float vRadius; varying vec2 vSquare; varying vec3 vPlace;
  void main() {
    if (flat_) {
      float away = length(vSquare), pixel = max(fwidth(away), 1e-6);
      vec3 along = inverse_ * (vPlace - low);
      if (away > 1.0 || any(greaterThan(periodic * abs(along - 0.5), vec3(0.5)))) discard;
      float edge = smoothstep(1.0 - 2.2 * pixel, 1.0 - 0.9 * pixel, away);
      float shade = 1.0 + 0.07 * dot(vSquare, vec2(-0.6, 0.8));
      gl_FragColor = vec4(mix(min(vTint * shade, vec3(1.0)), ink, edge * 0.85), clamp((1.0 - away) / pixel, 0.0, 1.0));
      gl_FragDepth = gl_FragCoord.z;
      return;
    }
    vec3 sight = normalize(vCorner);
    float b = dot(sight, vCenter), within = b * b - dot(vCenter, vCenter) + vRadius * vRadius;
    if (within < 0.0) discard;
    vec3 point = sight * (b - sqrt(within)), normal = (point - vCenter) / vRadius;
    vec3 lamp = normalize(vec3(-0.45, 0.65, 0.62));
    float facing = dot(normal, lamp), rim = 1.0 - max(dot(normal, -sight), 0.0);
    float light = 0.5 + 0.5 * smoothstep(-0.35, 1.0, facing);
    vec3 color = vTint * light * (1.0 - 0.42 * rim * rim) + 0.06 * vTint * max(normal.y, 0.0);
    color += 0.34 * pow(max(dot(normal, normalize(lamp - sight)), 0.0), 42.0);
    float haze = clamp((-point.z - depths.x) / max(depths.y - depths.x, 1e-6), 0.0, 1.0);
    gl_FragColor = vec4(mix(min(color, vec3(1.0)), paper, 0.5 * haze * haze), clamp(within / max(fwidth(within), 1e-9), 0.0, 1.0));
    vec4 seen = projectionMatrix * vec4(point, 1.0);
    gl_FragDepth = 0.5 * seen.z / seen.w + 0.5;
  }`;

class ParticleScene {
  constructor(stage, drawing) {
    Object.assign(this, { stage, drawing, capacity: 0, isFlat: drawing.kind === "disks" });
    this.scale = new ColorScale(drawing.scale);
    const value = (given) => ({ value: given });
    this.uniforms = {
      scale: value(1 / stage.size), flat_: value(this.isFlat), ink: value(new THREE.Color()), paper: value(new THREE.Color()),
      depths: value(new THREE.Vector2()), inverse_: value(new THREE.Matrix3()), low: value(new THREE.Vector3()),
      periodic: value(new THREE.Vector3()),
    };
    this.material = new THREE.ShaderMaterial({
      uniforms: this.uniforms, vertexShader: SPHERE_VERTEX, fragmentShader: SPHERE_FRAGMENT, alphaToCoverage: true,
      side: THREE.DoubleSide,
    });
    this.edges = new Rods(stage.world, new THREE.MeshBasicMaterial());
    this.bonds = new Rods(stage.world, new THREE.MeshStandardMaterial({ roughness: 0.5 }));
    this.recolor();
  }

  recolor() {
    // These colors are those of the screen, without conversion.
    for (const name of ["ink", "paper"])
      this.uniforms[name].value.setRGB(...rgb(this.stage.theme[name]).map((part) => part / 255), THREE.LinearSRGBColorSpace);
  }

  grow(count) {
    this.mesh?.removeFromParent();
    this.mesh?.geometry.dispose();
    this.capacity = Math.ceil(1.2 * count) + 4;
    const geometry = new THREE.InstancedBufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]), 3));
    geometry.setIndex([0, 1, 2, 0, 2, 3]);
    const attribute = (Kind, width, normalized = false) =>
      new THREE.InstancedBufferAttribute(new Kind(width * this.capacity), width, normalized);
    geometry.setAttribute("center", attribute(Float32Array, 3));
    geometry.setAttribute("radius", attribute(Float32Array, 1));
    geometry.setAttribute("tint", attribute(Uint8Array, 3, true));
    this.mesh = new THREE.Mesh(geometry, this.material);
    this.mesh.frustumCulled = false;
    this.stage.world.add(this.mesh);
  }

  update(frame) {
    const { drawing, isFlat } = this;
    const { data: position } = frame.arrays.position;
    const { data: diameter } = frame.arrays.diameter;
    const { data: values } = frame.arrays[drawing.quantity];
    const width = isFlat ? 2 : 3;
    const isInCell = this.cell(frame, width);
    const size = drawing.bonds?.length ? 0.58 : 1;
    const found = [];
    for (let k = 0; k < diameter.length; k += 1) {
      let place = Array.from(position.subarray(width * k, width * k + width));
      if (!(diameter[k] > 0) || !place.every(Number.isFinite)) continue;
      if (isFlat) place = [place[0], 0, place[1]];
      if (isInCell && this.wraps) place = this.inside(place);
      found.push([k, place]);
      if (isInCell && isFlat) for (const image of this.images(place, diameter[k] / 2)) found.push([k, image]);
    }
    if (found.length > this.capacity) this.grow(found.length);
    if (!this.mesh) return;
    const { center, radius, tint } = this.mesh.geometry.attributes;
    found.forEach(([k, place], number) => {
      center.array.set(place, 3 * number);
      radius.array[number] = (size * diameter[k]) / 2;
      tint.array.set(this.scale.color(values[k]), 3 * number);
    });
    for (const attribute of [center, radius, tint]) attribute.needsUpdate = true;
    this.mesh.geometry.instanceCount = found.length;
    this.showBonds(position, diameter);
  }

  /** Show the edges of the cell, and return whether there is one; its vectors are three, y across a plane. */
  cell(frame, width) {
    const { drawing, stage } = this;
    const { cell, box } = frame.arrays;
    const given = (cell ?? box)?.data;
    if (!drawing.cell || !given) return false;
    const row = (k) => Array.from({ length: width }, (_, axis) => (cell ? given[width * k + axis] : axis === k ? given[k] : 0));
    const inSpace = (point, across = 0) => (this.isFlat ? [point[0], across, point[1]] : point);
    const vectors = Array.from({ length: width }, (_, k) => inSpace(row(k)));
    const low = inSpace(drawing.cell);
    const thin = (this.isFlat ? 0.0011 : 0.0009) * stage.size;
    const color = rgb(stage.theme[this.isFlat ? "ink" : "muted"]);
    this.edges.show(edgesOf(low, vectors).map(([a, b]) => [a, b, thin, color]));
    this.vectors = this.isFlat ? [vectors[0], [0, 1, 0], vectors[1]] : vectors;
    const [[a, b, c], [d, e, f], [g, h, i]] = this.vectors;
    this.uniforms.inverse_.value.set(a, d, g, b, e, h, c, f, i).invert();
    this.uniforms.low.value.set(...low);
    this.uniforms.periodic.value.set(...inSpace(drawing.periodic.map(Number)));
    return true;
  }

  /** Return the coordinates of a place along the vectors of the cell. */
  along(place) {
    const { low, inverse_: inverse } = this.uniforms;
    return new THREE.Vector3(...place).sub(low.value).applyMatrix3(inverse.value).toArray();
  }

  /** Return a place, moved by whole vectors; what lies on a side, despite round-off, is at the lower one. */
  inside(place) {
    const turns = this.along(place).map((part, k) => this.uniforms.periodic.value.getComponent(k) * Math.floor(part + 0.004));
    return place.map((value, axis) => turns.reduce((sum, count, k) => sum - count * this.vectors[k][axis], value));
  }

  /** Return the images of a disk in the plane that reach into the cell, or nearly. */
  images(place, radius) {
    const { inverse_: inverse, periodic } = this.uniforms;
    const { elements } = inverse.value;
    const along = this.along(place);
    const shifts = [0, 2].map((k) => {
      const reach = radius * Math.hypot(elements[k], elements[k + 6]);
      const repeats = periodic.value.getComponent(k);
      return [0, ...(repeats && along[k] < reach ? [1] : []), ...(repeats && along[k] > 1 - reach ? [-1] : [])];
    });
    const [first, , second] = this.vectors;
    return shifts[0].flatMap((i) =>
      shifts[1].filter((j) => i || j).map((j) => place.map((part, axis) => part + i * first[axis] + j * second[axis])),
    );
  }

  showBonds(position, diameter) {
    const { drawing, stage } = this;
    const point = (k) => Array.from(position.subarray(3 * k, 3 * k + 3));
    const rods = [];
    for (const [i, j] of drawing.bonds ?? []) {
      const [a, b] = [point(i), point(j)];
      const apart = Math.hypot(...a.map((part, axis) => part - b[axis]));
      if (apart < (drawing.bond * (diameter[i] + diameter[j])) / 2) rods.push([a, b, 0.07 * diameter[i], rgb(WALL)]);
    }
    this.bonds.show(rods);
  }

  /** Before a picture: particles are paler the farther they are. */
  prepare() {
    const { camera } = this.stage;
    const away = camera.position.length();
    this.uniforms.depths.value.set(away - 0.45, away + 0.55);
  }
}

const SCENES = { bodies: BodyScene, spheres: ParticleScene, disks: ParticleScene };
