// A camera in perspective that holds a box of space, turned by dragging.

// A narrow view, as through a lens of 70 mm, and the part of the picture that is filled.
const HALF_HEIGHT = Math.tan((13 * Math.PI) / 180);
const FILLED = 0.93;

function dot(a, b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** Return a + factor b. */
function plus(a, b, factor = 1) {
  return [a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]];
}

function normalized(a) {
  const length = Math.hypot(...a) || 1;
  return [a[0] / length, a[1] / length, a[2] / length];
}

class Camera {
  /** Look at the points, from azimuth and elevation in degrees, from where all of them are in the picture. */
  constructor(points, azimuth, elevation, width, height) {
    const [a, e] = [azimuth, elevation].map((angle) => (angle * Math.PI) / 180);
    this.right = [-Math.sin(a), Math.cos(a), 0];
    this.forward = [-Math.cos(a) * Math.cos(e), -Math.sin(a) * Math.cos(e), -Math.sin(e)];
    this.up = cross(this.right, this.forward);
    Object.assign(this, { width, height, focal: height / 2 / HALF_HEIGHT });
    const middle = [0, 1, 2].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length);
    let farthest = Infinity;
    const place = [];
    for (const [axis, slope] of [
      [this.right, (HALF_HEIGHT * width) / height],
      [this.up, HALF_HEIGHT],
    ]) {
      // Each side of the picture is a plane through the eye that all points lie inside of.
      const angle = Math.atan(FILLED * slope);
      let [low, high] = [Infinity, Infinity];
      for (const point of points) {
        const offset = plus(point, middle, -1);
        const [across, depth] = [dot(offset, axis), dot(offset, this.forward)];
        low = Math.min(low, across * Math.cos(angle) + depth * Math.sin(angle));
        high = Math.min(high, -across * Math.cos(angle) + depth * Math.sin(angle));
      }
      place.push((low - high) / (2 * Math.cos(angle)));
      farthest = Math.min(farthest, (low + high) / (2 * Math.sin(angle)));
    }
    this.eye = plus(plus(plus(middle, this.right, place[0]), this.up, place[1]), this.forward, farthest);
  }

  /** Return where a point is in the picture, its depth, and the pixels per unit of length there. */
  project(point) {
    const offset = plus(point, this.eye, -1);
    const depth = Math.max(dot(offset, this.forward), 1e-9);
    const scale = this.focal / depth;
    return {
      x: this.width / 2 + scale * dot(offset, this.right),
      y: this.height / 2 - scale * dot(offset, this.up),
      depth,
      scale,
    };
  }
}

/** The direction of a camera, which the pointer changes. */
class Orbit {
  constructor(azimuth, elevation) {
    Object.assign(this, { azimuth, elevation });
  }

  turn(across, up) {
    this.azimuth -= 0.4 * across;
    this.elevation = Math.min(89, Math.max(1, this.elevation + 0.4 * up));
  }

  camera({ low, high }, width, height) {
    const corner = (number) => [0, 1, 2].map((axis) => ((number >> axis) & 1 ? high[axis] : low[axis]));
    const points = Array.from({ length: 8 }, (_, number) => corner(number));
    return new Camera(points, this.azimuth, this.elevation, width, height);
  }
}

const SPHERES = new Map();

/** Return a picture of a shaded sphere of a color. */
function spherePicture(color) {
  const name = color.join();
  if (!SPHERES.has(name)) {
    const size = 96;
    const picture = Object.assign(document.createElement("canvas"), { width: size, height: size });
    const context = picture.getContext("2d");
    const light = context.createRadialGradient(0.36 * size, 0.3 * size, 0.02 * size, 0.46 * size, 0.44 * size, 0.56 * size);
    light.addColorStop(0, css(color, 0.62));
    light.addColorStop(0.35, css(color, 0.12));
    light.addColorStop(0.75, css(color, 0, 0.82));
    light.addColorStop(1, css(color, 0, 0.5));
    context.fillStyle = light;
    context.beginPath();
    context.arc(size / 2, size / 2, size / 2 - 0.5, 0, 2 * Math.PI);
    context.fill();
    if (SPHERES.size > 600) SPHERES.clear();
    SPHERES.set(name, picture);
  }
  return SPHERES.get(name);
}

/** Draw a shaded sphere, paler by a share. */
function drawSphere(context, x, y, radius, color, haze = 0) {
  const mixed = color.map((part) => Math.round((part + haze * (225 - part)) / 6) * 6);
  context.drawImage(spherePicture(mixed), x - radius, y - radius, 2 * radius, 2 * radius);
}
