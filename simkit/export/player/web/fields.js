// Fields of flows: a plane of colors that may rise in relief, or slices and a surface of equal values in space.

/** Return the texture of a color scale: one color for each code of a byte, the last one for what is missing. */
function paletteOf(scale) {
  const data = new Uint8Array(1024);
  for (let code = 0; code < 256; code += 1)
    data.set([...scale.colors[code === 255 ? 256 : Math.min(255, Math.floor(((code + 0.5) / 255) * 256))], 255], 4 * code);
  const texture = new THREE.DataTexture(data, 256, 1);
  texture.needsUpdate = true;
  return texture;
}

/** Return a texture of the number of a cell at evenly spaced places from low to high. */
function cellsAt(centers, low, high, size = 1024) {
  const { before, share } = sampled(centers, low, high, size);
  const data = Float32Array.from(before, (cell, k) => cell + share[k]);
  const texture = new THREE.DataTexture(data, size, 1, THREE.RedFormat, THREE.FloatType);
  texture.needsUpdate = true;
  return texture;
}

// Interpolation between cells; a place is missing where the nearest cell is.
const SAMPLE = `
  uniform sampler2D field, bodies, palette, columns, rows; uniform vec2 cells;
  float cellOf(sampler2D line, float place) {
    float at = clamp(place, 0.0, 1.0) * 1024.0 - 0.5, below = clamp(floor(at), 0.0, 1022.0);
    return mix(texelFetch(line, ivec2(below, 0), 0).r, texelFetch(line, ivec2(below + 1.0, 0), 0).r, clamp(at - below, 0.0, 1.0));
  }
  float code(sampler2D image, vec2 place) {
    vec2 at = vec2(cellOf(columns, place.x), cellOf(rows, place.y)), low = floor(min(at, max(cells - 2.0, 0.0))), share = at - low;
    vec2 high = min(low + 1.0, cells - 1.0);
    vec4 found = 255.0 * vec4(texelFetch(image, ivec2(low.y, low.x), 0).r, texelFetch(image, ivec2(low.y, high.x), 0).r,
      texelFetch(image, ivec2(high.y, low.x), 0).r, texelFetch(image, ivec2(high.y, high.x), 0).r);
    vec4 weight = vec4((1.0 - share.x) * (1.0 - share.y), share.x * (1.0 - share.y), (1.0 - share.x) * share.y, share.x * share.y);
    vec4 known = weight * step(found, vec4(254.5));
    float total = dot(known, vec4(1.0));
    return total < 0.5 ? 255.0 : dot(known, found) / total;
  }`;

class FieldScene {
  constructor(stage, drawing) {
    Object.assign(this, { stage, drawing, relief: 0 });
    this.scale = new ColorScale(drawing.scale);
    const [xLow, xHigh, yLow, yHigh] = drawing.window;
    const [width, height] = [xHigh - xLow, yHigh - yLow];
    const value = (given) => ({ value: given });
    this.uniforms = {
      field: value(null), bodies: value(null), has_bodies: value(false), palette: value(paletteOf(this.scale)),
      columns: value(cellsAt(drawing.x, xLow, xHigh)), rows: value(cellsAt(drawing.y, yLow, yHigh)),
      cells: value(new THREE.Vector2(drawing.x.length, drawing.y.length)), size: value(new THREE.Vector2(width, height)),
      relief: value(0), wall: value(new THREE.Vector3(...rgb(WALL).map((part) => part / 255))), near: value(1), pixel: value(1),
      gap_x: value(new THREE.Vector2(...this.gap("x_gap", xLow, width))), gap_y: value(new THREE.Vector2(...this.gap("y_gap", yLow, height))),
    };
    const material = new THREE.ShaderMaterial({
      uniforms: this.uniforms,
      side: THREE.DoubleSide,
      vertexShader: `${SAMPLE} uniform float relief; uniform vec2 size; varying vec2 vPlace; varying vec3 vNormal2;
        float height(vec2 place) { float c = code(field, place); return relief * (c > 254.5 ? 0.0 : c / 254.0 - 0.5); }
        void main() {
          vPlace = uv; vNormal2 = vec3(0.0, -1.0, 0.0);
          vec3 place = vec3((uv.x - 0.5) * size.x, 0.0, (uv.y - 0.5) * size.y);
          if (relief > 0.0) {
            vec2 d = vec2(1.0 / 110.0, 0.0);
            place.y = -height(uv);
            vNormal2 = vec3((height(uv - d.xy) - height(uv + d.xy)) / (2.0 * d.x * size.x), -1.0,
              (height(uv - d.yx) - height(uv + d.yx)) / (2.0 * d.x * size.y));
          }
          gl_Position = projectionMatrix * modelViewMatrix * vec4(place, 1.0);
        }`,
      fragmentShader: `${SAMPLE} uniform bool has_bodies; uniform float relief, near, pixel; uniform vec3 wall; uniform vec2 gap_x, gap_y;
        varying vec2 vPlace; varying vec3 vNormal2;
        void main() {
          if ((vPlace.x > gap_x.x && vPlace.x < gap_x.y) || (vPlace.y > gap_y.x && vPlace.y < gap_y.y)) discard;
          float c = code(field, vPlace);
          vec3 color = texture2D(palette, vec2((c + 0.5) / 256.0, 0.5)).rgb;
          if (relief > 0.0) {
            vec3 normal = normalize(vNormal2), lamp = normalize(vec3(-0.5, -0.7, 0.6));
            color = color * (0.62 + 0.42 * max(dot(normal, lamp), 0.0)) + 0.16 * pow(max(dot(normal, normalize(lamp + vec3(0.0, -1.0, 0.0))), 0.0), 24.0);
          }
          if (has_bodies) {
            float away = code(bodies, vPlace) / 254.0 * 2.0 * near - near;
            color = mix(wall, color, clamp(0.5 + away / max(fwidth(away), 1e-6), 0.0, 1.0));
          }
          gl_FragColor = vec4(color, 1.0);
        }`,
    });
    this.mesh = new THREE.Mesh(new THREE.PlaneGeometry(1, 1, 320, 320), material);
    this.mesh.frustumCulled = false;
    this.mesh.position.set((xLow + xHigh) / 2, 0, (yLow + yHigh) / 2);
    stage.world.add(this.mesh);
    this.walls = new FieldView(drawing);
  }

  gap(name, low, length) {
    return (this.drawing[name]?.[0] ?? [low - 2 * length, low - 2 * length]).map((end) => (end - low) / length);
  }

  /** Put the bytes of a frame into a texture, whose rows are lines along y. */
  texture(name, { codes, shape }) {
    const uniform = this.uniforms[name];
    if (!uniform.value) uniform.value = new THREE.DataTexture(new Uint8Array(codes.length), shape[1], shape[0], THREE.RedFormat);
    uniform.value.unpackAlignment = 1;
    uniform.value.image.data.set(codes);
    uniform.value.needsUpdate = true;
  }

  update(frame) {
    this.velocity = frame.arrays.side_velocity;
    this.texture("field", frame.arrays[this.drawing.quantity]);
    const bodies = frame.arrays.body_distance;
    if (!bodies) return;
    this.texture("bodies", bodies);
    this.uniforms.has_bodies.value = true;
    this.uniforms.near.value = -bodies.low;
  }

  /** Let values rise out of the plane, by a share of its diagonal. */
  rise(share) {
    this.relief = share;
    this.uniforms.relief.value = share * this.stage.size;
  }

  /** Draw axes and walls around the field while it is seen from in front. */
  annotate(context) {
    const { stage, drawing } = this;
    const [xLow, xHigh, yLow, yHigh] = drawing.window;
    const offset = stage.camera.position.clone().sub(stage.controls.target);
    if (this.relief || Math.hypot(offset.x, offset.z) > 1e-3 * offset.length()) return;
    const [a, b] = [stage.project([xLow, 0, yLow]), stage.project([xHigh, 0, yHigh])];
    const plot = new Plot({ left: a.x, top: b.y, width: b.x - a.x, height: a.y - b.y }, drawing.window);
    this.walls.drawSides(context, plot, this.velocity);
    plot.drawAxes(context, drawing.labels, drawing.ticks, BAND + 2);
  }
}

const SURFACE_FRAGMENT = `
  precision highp sampler3D;
  uniform sampler3D field; uniform sampler2D palette; uniform float level; uniform vec3 eye, size, lamp; uniform mat4 projectionMatrix, modelViewMatrix;
  varying vec3 vPlace;
  float at(vec3 place) { return texture(field, place).r * 255.0 / 254.0 - level; }
  void main() {
    // From where the line of sight enters the box, in steps of less than a cell, to where the value crosses the level.
    vec3 along = vPlace - eye, first = (0.0 - eye) / along, second = (1.0 - eye) / along, near = min(first, second);
    float begin = max(max(max(near.x, near.y), near.z), 0.0), steps = 100.0, part = (1.0 - begin) / steps, t = begin;
    float before = at(eye + begin * along);
    bool found = false;
    for (int k = 1; k <= 100; k++) {
      t = begin + part * float(k);
      float now = at(eye + t * along);
      if (now * before < 0.0) { found = true; break; }
      before = now;
    }
    if (!found) discard;
    float low = t - part, high = t;
    for (int k = 0; k < 6; k++) {
      float middle = 0.5 * (low + high);
      if (at(eye + middle * along) * before < 0.0) high = middle; else low = middle;
    }
    vec3 place = eye + high * along, d = 1.0 / vec3(textureSize(field, 0));
    vec3 normal = normalize(vec3(at(place + vec3(d.x, 0, 0)) - at(place - vec3(d.x, 0, 0)), at(place + vec3(0, d.y, 0)) - at(place - vec3(0, d.y, 0)),
      at(place + vec3(0, 0, d.z)) - at(place - vec3(0, 0, d.z))) / (d * size) + 1e-6);
    vec3 sight = normalize(along * size);
    if (dot(normal, sight) > 0.0) normal = -normal;
    vec3 color = texture2D(palette, vec2((level * 254.0 + 0.5) / 256.0, 0.5)).rgb;
    float rim = 1.0 - max(dot(normal, -sight), 0.0);
    color *= (0.48 + 0.6 * max(dot(normal, lamp), 0.0)) * (1.0 - 0.35 * rim * rim);
    color += 0.25 * pow(max(dot(normal, normalize(lamp - sight)), 0.0), 40.0);
    gl_FragColor = vec4(min(color, vec3(1.0)), 1.0);
    vec4 seen = projectionMatrix * modelViewMatrix * vec4(place, 1.0);
    gl_FragDepth = 0.5 * seen.z / seen.w + 0.5;
  }`;

class VolumeScene {
  constructor(stage, drawing) {
    Object.assign(this, { stage, drawing });
    this.scale = new ColorScale(drawing.scale);
    this.lengths = drawing.high.map((end, axis) => end - drawing.low[axis]);
    const value = (given) => ({ value: given });
    this.uniforms = {
      field: value(null), palette: value(paletteOf(this.scale)), level: value(0.5), eye: value(new THREE.Vector3()),
      size: value(new THREE.Vector3(...this.lengths)), lamp: value(new THREE.Vector3()),
    };
    // Obstacles are the surface on which the distance from them, stored about zero, is zero.
    const gray = new THREE.DataTexture(new Uint8Array([...rgb(WALL), 255]), 1, 1);
    gray.needsUpdate = true;
    this.solid = { ...this.uniforms, field: value(null), palette: value(gray), level: value(0.5) };
    const box = new THREE.BoxGeometry(1, 1, 1).translate(0.5, 0.5, 0.5);
    const vertexShader = `varying vec3 vPlace; void main() { vPlace = position; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`;
    const shader = (fragmentShader, side, uniforms = this.uniforms) => new THREE.ShaderMaterial({ uniforms, vertexShader, fragmentShader, side });
    this.surface = new THREE.Mesh(box, shader(SURFACE_FRAGMENT, THREE.BackSide));
    const slice = `precision highp sampler3D; uniform sampler3D field; uniform sampler2D palette; varying vec3 vPlace;
      void main() { gl_FragColor = vec4(texture2D(palette, vec2((texture(field, vPlace).r * 255.0 + 0.5) / 256.0, 0.5)).rgb, 1.0); }`;
    this.slice = new THREE.Mesh(new THREE.BufferGeometry(), shader(slice, THREE.DoubleSide));
    this.bodies = new THREE.Mesh(box, shader(SURFACE_FRAGMENT, THREE.BackSide, this.solid));
    for (const mesh of [this.surface, this.slice, this.bodies]) {
      mesh.scale.set(...this.lengths);
      mesh.position.set(...drawing.low);
      mesh.frustumCulled = false;
      stage.world.add(mesh);
    }
    this.edges = new Rods(stage.world, new THREE.MeshBasicMaterial());
    this.recolor();
    this.cut(drawing.axis ?? 2, 0.5);
  }

  recolor() {
    const vectors = this.lengths.map((length, axis) => [0, 1, 2].map((other) => (other === axis ? length : 0)));
    const color = rgb(this.stage.theme.muted);
    this.edges.show(edgesOf(this.drawing.low, vectors).map(([a, b]) => [a, b, 0.0009 * this.stage.size, color]));
  }

  /** Show the slice across an axis at a share of its length. */
  cut(axis, share) {
    Object.assign(this, { axis, share });
    const [u, v] = [(axis + 1) % 3, (axis + 2) % 3];
    const points = [[0, 0], [1, 0], [1, 1], [0, 1]].flatMap(([a, b]) => {
      const point = [0, 0, 0];
      [point[axis], point[u], point[v]] = [share, a, b];
      return point;
    });
    this.slice.geometry.dispose();
    this.slice.geometry = new THREE.BufferGeometry();
    this.slice.geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(points), 3));
    this.slice.geometry.setIndex([0, 1, 2, 0, 2, 3]);
  }

  /** Show the surface on which the value is at a share of the range of colors; none at a share of 0. */
  raise(share) {
    this.surface.visible = share > 0;
    this.uniforms.level.value = share;
  }

  update(frame) {
    const { body_distance: distance } = frame.arrays;
    this.fill(this.uniforms.field, frame.arrays[this.drawing.quantity]);
    this.bodies.visible = Boolean(distance);
    if (distance) this.fill(this.solid.field, distance);
  }

  fill(field, { codes, shape }) {
    if (!field.value) {
      // Memory runs along z first, which is the first axis of the texture; its axes are named so in `turned`.
      field.value = new THREE.Data3DTexture(new Uint8Array(codes.length), shape[0], shape[1], shape[2]);
      Object.assign(field.value, { format: THREE.RedFormat, unpackAlignment: 1, minFilter: THREE.LinearFilter, magFilter: THREE.LinearFilter });
    }
    const [nx, ny, nz] = shape;
    const { data } = field.value.image;
    let from = 0;
    for (let i = 0; i < nx; i += 1)
      for (let j = 0; j < ny; j += 1)
        for (let k = 0; k < nz; k += 1, from += 1) data[(k * ny + j) * nx + i] = codes[from] === 255 ? 0 : codes[from];
    field.value.needsUpdate = true;
  }

  prepare() {
    const { camera } = this.stage;
    this.surface.updateWorldMatrix(true, false);
    this.uniforms.eye.value.copy(this.surface.worldToLocal(camera.position.clone()));
    this.uniforms.lamp.value.set(-0.45, 0.65, 0.62).normalize().applyQuaternion(camera.quaternion);
  }

  /** Name the axes at the middles of three edges. */
  annotate(context) {
    const { low, high, labels } = this.drawing;
    context.fillStyle = INK;
    context.textAlign = "center";
    context.textBaseline = "middle";
    labels.forEach((label, axis) => {
      const place = [low[0], low[1], low[2]].map((part, other) => (other === axis ? (low[axis] + high[axis]) / 2 : other === 1 && axis === 2 ? high[1] : part - 0.03 * this.stage.size));
      const { x, y } = this.stage.project(place);
      context.fillText(label, x, y);
    });
  }
}
