// View of particles: disks of true size in the plane with their periodic images, or shaded spheres in space.

/** Return the edge lengths of a periodic box, or null in free space. */
function boxOf(frame) {
  const box = frame.arrays.box;
  return box && Array.from(box.data).every((length) => Number.isFinite(length) && length > 0) ? box.data : null;
}

function modulo(value, length) {
  return value - length * Math.floor(value / length);
}

class DiskView {
  constructor(drawing) {
    this.drawing = drawing;
    this.scale = new ColorScale(drawing.scale);
  }

  rectangle(width) {
    const [xLow, xHigh, yLow, yHigh] = this.drawing.window;
    const room = Math.max(width - 24 - 110, 60);
    const shape = (yHigh - yLow) / (xHigh - xLow);
    const height = Math.min(room * shape, 600);
    const own = height / shape;
    return { left: 24 + (room - own) / 2, top: 16, width: own, height };
  }

  height(width) {
    return Math.max(this.rectangle(width).height + 32, 190);
  }

  draw(context, width, height, frame) {
    const { drawing, scale } = this;
    const plot = new Plot(this.rectangle(width), drawing.window);
    const { data: position } = frame.arrays.position;
    const { data: diameter } = frame.arrays.diameter;
    const { data: values } = frame.arrays[drawing.quantity];
    const box = boxOf(frame);
    context.save();
    context.beginPath();
    if (box) {
      context.rect(plot.x(0), plot.y(box[1]), plot.scale * box[0], plot.scale * box[1]);
      context.clip();
    }
    context.lineWidth = 0.7;
    context.strokeStyle = INK;
    for (let k = 0; k < diameter.length; k += 1) {
      const radius = diameter[k] / 2;
      const [x, y] = [position[2 * k], position[2 * k + 1]];
      if (!Number.isFinite(x + y) || !(radius > 0)) continue;
      context.fillStyle = css(scale.color(values[k]));
      for (const [a, b] of box ? this.images(modulo(x, box[0]), modulo(y, box[1]), radius, box) : [[x, y]]) {
        context.beginPath();
        context.arc(plot.x(a), plot.y(b), Math.max(radius * plot.scale - 0.35, 0.5), 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      }
    }
    context.restore();
    if (box) {
      context.strokeStyle = INK;
      context.lineWidth = 1.2;
      context.strokeRect(plot.x(0), plot.y(box[1]), plot.scale * box[0], plot.scale * box[1]);
    }
    const high = Math.min(plot.height, 340);
    const bar = { left: plot.left + plot.width + 22, top: plot.top + (plot.height - high) / 2, width: 14, height: high };
    drawColorBar(context, scale, drawing.label, bar);
  }

  /** Return the centers of a disk and of its images that reach into the box. */
  images(x, y, radius, box) {
    const found = [];
    for (const a of [x, x - box[0], x + box[0]])
      for (const b of [y, y - box[1], y + box[1]]) {
        const across = Math.max(0, -a, a - box[0]);
        const up = Math.max(0, -b, b - box[1]);
        if (Math.hypot(across, up) < radius || (a === x && b === y)) found.push([a, b]);
      }
    return found;
  }
}

class SphereView {
  constructor(drawing) {
    this.drawing = drawing;
    this.scale = new ColorScale(drawing.scale);
    this.orbit = new Orbit(drawing.azimuth, drawing.elevation);
  }

  height(width) {
    return Math.min(0.7 * width, 560);
  }

  draw(context, width, height, frame) {
    const { drawing, scale } = this;
    const camera = this.orbit.camera(drawing, width - 110, height);
    const { data: position } = frame.arrays.position;
    const { data: diameter } = frame.arrays.diameter;
    const { data: values } = frame.arrays[drawing.quantity];
    const box = boxOf(frame);
    const spheres = [];
    for (let k = 0; k < diameter.length; k += 1) {
      let point = [position[3 * k], position[3 * k + 1], position[3 * k + 2]];
      if (!point.every(Number.isFinite) || !(diameter[k] > 0)) continue;
      // A particle on a side of the box is wrapped to the lower side, despite round-off.
      if (box) point = point.map((value, axis) => modulo(value + 0.004 * box[axis], box[axis]) - 0.004 * box[axis]);
      spheres.push({ point: camera.project(point), radius: (drawing.size * diameter[k]) / 2, value: values[k] });
    }
    spheres.sort((a, b) => b.point.depth - a.point.depth);
    const near = spheres.length ? spheres[spheres.length - 1].point.depth : 0;
    const far = spheres.length ? spheres[0].point.depth : 1;
    const edges = box ? boxEdges(box) : [];
    const lines = edges.map((ends) => ends.map((end) => camera.project(end)));
    this.drawEdges(context, lines.filter((line) => (line[0].depth + line[1].depth) / 2 >= (near + far) / 2));
    for (const { point, radius, value } of spheres) {
      const haze = 0.35 * ((point.depth - near) / Math.max(far - near, 1e-9));
      drawSphere(context, point.x, point.y, radius * point.scale, scale.color(value), haze);
    }
    this.drawEdges(context, lines.filter((line) => (line[0].depth + line[1].depth) / 2 < (near + far) / 2));
    const high = Math.min(height - 60, 340);
    drawColorBar(context, scale, drawing.label, { left: width - 96, top: (height - high) / 2, width: 14, height: high });
  }

  drawEdges(context, lines) {
    context.strokeStyle = INK;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.beginPath();
    for (const [a, b] of lines) {
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
    }
    context.stroke();
    context.globalAlpha = 1;
  }
}

/** Return the twelve edges of a box from the origin, two points each. */
function boxEdges(box) {
  const corner = (number) => [0, 1, 2].map((axis) => ((number >> axis) & 1) * box[axis]);
  const found = [];
  for (let a = 0; a < 8; a += 1)
    for (const bit of [1, 2, 4]) if (!(a & bit)) found.push([corner(a), corner(a | bit)]);
  return found;
}
