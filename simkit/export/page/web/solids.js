// Balls, capsules, boxes, disks and rods as a camera sees them, and the shadows they cast on the floor.

const ROUND = Array.from({ length: 28 }, (_, k) => (2 * Math.PI * k) / 28);

/** Return the three axes of a body, turned by a quaternion (w first) of any length. */
function axesOf([w, x, y, z]) {
  const s = 2 / (w * w + x * x + y * y + z * z);
  return [
    [1 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)],
    [s * (x * y - w * z), 1 - s * (x * x + z * z), s * (y * z + w * x)],
    [s * (x * z + w * y), s * (y * z - w * x), 1 - s * (x * x + y * y)],
  ];
}

/** Return the points of a convex outline around points {x, y}. */
function hull(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  const chain = (line) => {
    const found = [];
    for (const point of line) {
      while (found.length > 1) {
        const [a, b] = found.slice(-2);
        if ((b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x) > 0) break;
        found.pop();
      }
      found.push(point);
    }
    return found.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.reverse())];
}

function tracePath(context, points) {
  points.forEach((point, place) => (place ? context.lineTo(point.x, point.y) : context.moveTo(point.x, point.y)));
  context.closePath();
}

function fillPath(context, points, style) {
  context.beginPath();
  tracePath(context, points);
  context.fillStyle = style;
  context.fill();
}

/** Return points on a circle about a center, in the plane of two vectors. */
function circle(center, first, second, radius) {
  return ROUND.map((angle) =>
    plus(plus(center, first, radius * Math.cos(angle)), second, radius * Math.sin(angle)),
  );
}

/** Return two unit vectors across a direction. */
function acrossOf(direction) {
  const first = normalized(cross(direction, Math.abs(direction[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0]));
  return [first, cross(direction, first)];
}

/** A body: its kind, center, axes, half lengths and radius in m, and its color. */
class Solid {
  constructor(center, quaternion, half, radius, color, { disk = false, twoFaced = false, plain = false } = {}) {
    Object.assign(this, { center, radius, color, twoFaced, plain, half: [...half] });
    this.axes = quaternion ? axesOf(quaternion) : [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    if (disk) {
      this.kind = "disk";
      this.half[1] = this.half[0];
    } else if (!half.some((length) => length > 0)) this.kind = "ball";
    else if (radius > 0 && !(half[0] > 0) && !(half[1] > 0)) this.kind = "capsule";
    else {
      this.kind = "box";
      this.half = this.half.map((length) => length + radius);
    }
  }

  /** Return a point given along the body's own axes. */
  at(x, y, z) {
    return plus(plus(plus(this.center, this.axes[0], x), this.axes[1], y), this.axes[2], z);
  }

  ends() {
    return [this.at(0, 0, -this.half[2]), this.at(0, 0, this.half[2])];
  }

  /** Return points whose hull is the body, as seen along a direction. */
  outline(direction) {
    if (this.kind === "box") return Array.from({ length: 8 }, (_, k) => this.corner(k));
    if (this.kind === "disk")
      return [-1, 1].flatMap((sign) =>
        circle(this.at(0, 0, sign * this.half[2]), this.axes[0], this.axes[1], this.half[0]),
      );
    const across = acrossOf(direction);
    const centers = this.kind === "ball" ? [this.center] : this.ends();
    return centers.flatMap((center) => circle(center, ...across, this.radius));
  }

  corner(number) {
    const [x, y, z] = this.half.map((length, axis) => ((number >> axis) & 1 ? length : -length));
    return this.at(x, y, z);
  }

  draw(context, camera, light) {
    if (this.kind === "ball") this.drawBall(context, camera);
    else if (this.kind === "capsule") this.drawCapsule(context, camera, light);
    else if (this.kind === "disk") this.drawDisk(context, camera, light);
    else this.drawBox(context, camera, light);
  }

  drawBall(context, camera) {
    const seen = camera.project(this.center);
    drawSphere(context, seen.x, seen.y, this.radius * seen.scale, this.color);
    if (this.plain) return;
    // A stripe about its own axis z and dots on it show how it turns.
    const toward = normalized(plus(camera.eye, this.center, -1));
    const light = this.color[0] + this.color[1] + this.color[2] > 560;
    context.strokeStyle = light ? "rgba(29,39,51,0.55)" : "rgba(255,255,255,0.75)";
    context.lineCap = "butt";
    context.lineWidth = Math.max(0.24 * this.radius * seen.scale, 0.8);
    context.beginPath();
    let isOpen = false;
    for (const angle of [...ROUND, 0]) {
      const normal = plus(plus([0, 0, 0], this.axes[0], Math.cos(angle)), this.axes[1], Math.sin(angle));
      const isSeen = dot(normal, toward) > 0.12;
      const point = camera.project(plus(this.center, normal, this.radius));
      if (isSeen && isOpen) context.lineTo(point.x, point.y);
      else if (isSeen) context.moveTo(point.x, point.y);
      isOpen = isSeen;
    }
    context.stroke();
    for (const sign of [-1, 1]) {
      const normal = plus(plus([0, 0, 0], this.axes[0], sign * Math.SQRT1_2), this.axes[1], -sign * Math.SQRT1_2);
      if (dot(normal, toward) < 0.12) continue;
      const point = camera.project(plus(this.center, normal, this.radius));
      context.beginPath();
      context.arc(point.x, point.y, Math.max(0.17 * this.radius * seen.scale, 0.7), 0, 2 * Math.PI);
      context.fillStyle = "rgba(20,28,38,0.75)";
      context.fill();
    }
  }

  drawCapsule(context, camera) {
    const [a, b] = this.ends().map((end) => camera.project(end));
    const reach = this.radius * Math.max(a.scale, b.scale);
    const outline = hull(this.outline(camera.forward).map((point) => camera.project(point)));
    const across = { x: a.y - b.y, y: b.x - a.x };
    const length = Math.hypot(across.x, across.y) || 1;
    // The lamp is at the upper left.
    const sign = (across.x + across.y > 0 ? -1 : 1) / length;
    const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    const [dx, dy] = [across.x * sign * reach, across.y * sign * reach];
    const shading = context.createLinearGradient(x + dx, y + dy, x - dx, y - dy);
    shading.addColorStop(0, css(this.color, 0.1, 0.95));
    shading.addColorStop(0.3, css(this.color, 0.5));
    shading.addColorStop(0.6, css(this.color, 0, 0.9));
    shading.addColorStop(1, css(this.color, 0, 0.55));
    fillPath(context, outline, shading);
    if (this.plain) return;
    const side = dot(this.axes[0], plus(camera.eye, this.center, -1)) > 0;
    if (!side) return;
    const [from, to] = [-1, 1].map((end) => camera.project(this.at(this.radius, 0, end * this.half[2])));
    context.strokeStyle = "rgba(255,255,255,0.6)";
    context.lineWidth = Math.max(0.2 * reach, 0.8);
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }

  drawDisk(context, camera, light) {
    const faces = [-1, 1].map((sign) => circle(this.at(0, 0, sign * this.half[2]), this.axes[0], this.axes[1], this.half[0]));
    const seen = faces.map((face) => face.map((point) => camera.project(point)));
    fillPath(context, hull(seen.flat()), css(this.color, 0, 0.6));
    const sign = dot(this.axes[2], plus(camera.eye, this.center, -1)) > 0 ? 1 : -1;
    const face = seen[(sign + 1) / 2];
    const shade = 0.7 + 0.3 * Math.max(0, sign * dot(this.axes[2], light));
    fillPath(context, face, css(this.color, 0, shade));
    const middle = camera.project(this.at(0, 0, sign * this.half[2]));
    const quarter = ROUND.length / 4;
    for (const first of [0, 2 * quarter])
      fillPath(
        context,
        [middle, ...Array.from({ length: quarter + 1 }, (_, k) => face[(first + k) % ROUND.length])],
        css(this.color, 0.45, shade),
      );
  }

  drawBox(context, camera, light) {
    context.lineJoin = "round";
    for (let axis = 0; axis < 3; axis += 1)
      for (const sign of [-1, 1]) {
        const normal = this.axes[axis].map((part) => sign * part);
        const middle = plus(this.center, normal, this.half[axis]);
        if (dot(normal, plus(camera.eye, middle, -1)) <= 0) continue;
        const [first, second] = [(axis + 1) % 3, (axis + 2) % 3];
        const points = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) =>
          camera.project(
            plus(plus(middle, this.axes[first], a * this.half[first]), this.axes[second], b * this.half[second]),
          ),
        );
        const shade = 0.62 + 0.42 * Math.max(0, dot(normal, light));
        const pale = this.twoFaced && axis === 2 && sign > 0 ? 0.5 : 0;
        fillPath(context, points, css(this.color, pale, shade));
        context.strokeStyle = css(this.color, 0, 0.45);
        context.lineWidth = 1;
        context.stroke();
      }
  }
}

/** Add the outline of a body's shadow on the floor z = 0 to the path, thrown by a lamp far away. */
function traceShadow(context, camera, body, light) {
  const ground = body
    .outline(light)
    .map((point) => camera.project(plus(point, light, -Math.max(point[2], 0) / light[2])));
  tracePath(context, hull(ground));
}
