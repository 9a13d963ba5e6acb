// View of rigid bodies in perspective: shaded solids on a floor that catches their shadows, and their paths.

const SHADOW = "rgba(52,64,88,0.26)";

class BodyView {
  constructor(drawing) {
    this.drawing = drawing;
    this.scale = drawing.scale ? new ColorScale(drawing.scale) : null;
    this.orbit = new Orbit(drawing.azimuth, drawing.elevation);
    this.size = Math.hypot(...drawing.high.map((high, axis) => high - drawing.low[axis])) || 1;
    this.middle = drawing.high.map((high, axis) => (high + drawing.low[axis]) / 2);
    // A lamp at the upper left, wherever the camera is.
    const [aside, height] = [((drawing.azimuth - 40) * Math.PI) / 180, (52 * Math.PI) / 180];
    this.light = [Math.cos(aside) * Math.cos(height), Math.sin(aside) * Math.cos(height), Math.sin(height)];
  }

  height(width) {
    return Math.min(Math.max(0.6 * width, 260), 560);
  }

  draw(context, width, height, frame, trail) {
    const { drawing } = this;
    const camera = this.orbit.camera(drawing, width - (this.scale ? 110 : 0), height);
    this.camera = camera;
    const bodies = readBodies(frame, drawing, this.scale).filter(
      (body) => body.isPresent && Math.hypot(...body.half) + body.radius > 0,
    );
    const solids = bodies.map(
      (body) =>
        new Solid(body.center, body.turn, body.half, body.radius, body.color, {
          disk: body.disk,
          twoFaced: drawing.two_faced,
        }),
    );
    const target = pointsOf(frame, "target");
    for (const plane of this.planes(frame)) this.drawPlane(context, camera, plane);
    this.drawTargets(context, camera, target);
    if (drawing.floor) {
      context.beginPath();
      for (const body of solids) traceShadow(context, camera, body, this.light);
      context.fillStyle = SHADOW;
      context.fill("nonzero");
    }
    this.drawPaths(context, camera, trail);
    const thin = 0.0032 * this.size;
    const parts = [...solids];
    for (const link of linksOf(frame)) parts.push(this.rod(link, thin));
    const thinnest = Math.min(...solids.map((body) => body.radius || Infinity));
    const pin = Math.max(2.6 * thin, Number.isFinite(thinnest) ? 1.35 * thinnest : 0);
    for (const place of pointsOf(frame, "pivots"))
      parts.push(new Solid(place, null, [0, 0, 0], pin, rgb("#39434f"), { plain: true }));
    for (const part of parts) part.depth = camera.project(part.center).depth;
    parts.sort((a, b) => b.depth - a.depth);
    for (const part of parts) part.draw(context, camera, this.light);
    if (this.scale) {
      const high = Math.min(height - 60, 340);
      const bar = { left: width - 96, top: (height - high) / 2, width: 14, height: high };
      drawColorBar(context, this.scale, drawing.label, bar);
    }
  }

  rod([from, to], radius) {
    const axis = normalized(plus(to, from, -1));
    const middle = plus(from, to).map((part) => part / 2);
    const half = Math.hypot(...plus(to, from, -1)) / 2;
    const rod = new Solid(middle, null, [0, 0, half], radius, rgb(WALL), { plain: true });
    rod.axes = [...acrossOf(axis), axis];
    return rod;
  }

  /** Return the planes [normal, offset] that the camera sees from in front. */
  planes(frame) {
    const given = frame.arrays.planes ? frame.arrays.planes.data : [];
    const found = [];
    let isLevel = false;
    for (let k = 0; k + 3 < given.length; k += 4) {
      const plane = [Array.from(given.slice(k, k + 3)), given[k + 3]];
      if (!plane.flat().every(Number.isFinite)) continue;
      if (plane[0][2] > 1 - 1e-6 && Math.abs(plane[1]) < 1e-6 * this.size) isLevel = true;
      else found.push(plane);
    }
    if (this.drawing.floor || isLevel) found.push([[0, 0, 1], 0]);
    return found.filter(([normal, offset]) => dot(normal, this.camera.eye) > offset);
  }

  /** Draw the squares of a plane, which fade away from the middle. */
  drawPlane(context, camera, [normal, offset]) {
    const { tile } = this.drawing;
    const level = cross([0, 0, 1], normal);
    const first = Math.hypot(...level) > 1e-9 ? normalized(level) : [1, 0, 0];
    const second = cross(normal, first);
    const reach = 0.85 * this.size;
    const foot = plus(this.middle, normal, offset - dot(normal, this.middle));
    const [u0, v0] = [dot(foot, first), dot(foot, second)];
    const base = normal.map((part) => part * offset);
    const at = (u, v) => plus(plus(base, first, u), second, v);
    for (let i = Math.floor((u0 - reach) / tile); i * tile < u0 + reach; i += 1)
      for (let j = Math.floor((v0 - reach) / tile); j * tile < v0 + reach; j += 1) {
        const away = Math.hypot((i + 0.5) * tile - u0, (j + 0.5) * tile - v0) / reach;
        const strength = Math.min(1, 2.2 * (1 - away));
        if (strength <= 0) continue;
        const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([a, b]) => at((i + a) * tile, (j + b) * tile));
        if (corners.some((corner) => dot(plus(corner, camera.eye, -1), camera.forward) < 0.02 * this.size)) continue;
        context.globalAlpha = strength;
        fillPath(context, corners.map((corner) => camera.project(corner)), (i + j) % 2 ? "#d9dfe6" : "#e9edf1");
      }
    context.globalAlpha = 1;
  }

  drawTargets(context, camera, points) {
    for (const point of points) {
      const seen = camera.project(point);
      const flat = this.drawing.floor && Math.abs(point[2]) < 0.025 * this.size;
      context.strokeStyle = ACCENT;
      context.fillStyle = ACCENT;
      context.lineWidth = 2;
      for (const share of [1, 0.45]) {
        const radius = 0.04 * this.size * share;
        const ring = flat
          ? circle(point, [1, 0, 0], [0, 1, 0], radius).map((place) => camera.project(place))
          : ROUND.map((a) => ({ x: seen.x + radius * seen.scale * Math.cos(a), y: seen.y + radius * seen.scale * Math.sin(a) }));
        context.beginPath();
        tracePath(context, ring);
        if (share < 1) context.fill();
        else context.stroke();
      }
    }
  }

  drawPaths(context, camera, trail) {
    context.lineWidth = 1.8;
    context.lineCap = "round";
    // The path of a traced point fades little.
    trail.draw(context, (point) => camera.project(point), trail.isTraced ? 0.65 : 0.3);
  }
}

/** The paths of bodies or traced points over the last 1500 frames. */
class Trail {
  constructor(drawing, scale) {
    Object.assign(this, { drawing, scale, frames: [] });
  }

  clear() {
    this.frames = [];
  }

  add(frame, steps) {
    const traced = pointsOf(frame, "trace");
    const bodies = traced.length ? [] : readBodies(frame, this.drawing, this.scale);
    if (bodies.length > this.drawing.most_paths) return;
    const line = traced.length
      ? traced.map((center) => ({ center, color: rgb(ACCENT), isPresent: true }))
      : bodies;
    this.isTraced = traced.length > 0;
    this.frames.push({ line, steps });
    if (this.frames.length > 1500) this.frames.shift();
  }

  draw(context, place, faintest) {
    const count = this.frames.length;
    for (let k = 1; k < count; k += 1) {
      const age = (this.frames[count - 1].steps - this.frames[k].steps) / description.steps;
      const strength = faintest + (0.9 - faintest) * Math.exp(-age / 0.12);
      this.frames[k].line.forEach((body, number) => {
        const before = this.frames[k - 1].line[number];
        if (!before || !body.isPresent || !before.isPresent) return;
        const [a, b] = [place(before.center), place(body.center)];
        context.strokeStyle = css(body.color, 1 - strength);
        context.beginPath();
        context.moveTo(a.x, a.y);
        context.lineTo(b.x, b.y);
        context.stroke();
      });
    }
  }
}
