// Bodies, points and rods in the arrays of a frame.

/** Return a + factor b. */
function plus(a, b, factor = 1) {
  return a.map((part, axis) => part + factor * b[axis]);
}

/** Return the three axes of a body, turned by a quaternion (w first) of any length. */
function axesOf([w, x, y, z]) {
  const s = 2 / (w * w + x * x + y * y + z * z);
  return [
    [1 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)],
    [s * (x * y - w * z), 1 - s * (x * x + z * z), s * (y * z + w * x)],
    [s * (x * z + w * y), s * (y * z - w * x), 1 - s * (x * x + y * y)],
  ];
}

/** Return the solids, rods and marks of a frame, for any camera. */
function readBodies(frame, drawing, scale) {
  const { position, orientation, radius, half_lengths: half, disk, corners } = frame.arrays;
  const found = [];
  const most = corners ? corners.data.length / radius.data.length : 0;
  const palette = drawing.palette.map(rgb);
  const values = frame.arrays[drawing.quantity];
  for (let k = 0; k < radius.data.length; k += 1) {
    const center = Array.from(position.data.slice(3 * k, 3 * k + 3));
    const turn = Array.from(orientation.data.slice(4 * k, 4 * k + 4));
    const isPresent = [...center, ...turn, radius.data[k]].every(Number.isFinite) && turn.some((part) => part !== 0);
    let color = palette[drawing.body_of_shape[k] % palette.length];
    if (scale) {
      // A number of each body is that of all of its shapes.
      const row = drawing.row_of_shape[k];
      const wide = values.data.length / (1 + Math.max(...drawing.row_of_shape));
      const value = wide > 1 ? Math.hypot(...values.data.slice(wide * row, wide * row + wide)) : values.data[row];
      color = scale.color(value);
    }
    found.push({
      isPresent,
      center,
      turn,
      radius: radius.data[k],
      half: half && half.data.length ? Array.from(half.data.slice(3 * k, 3 * k + 3)) : [0, 0, 0],
      // 1 for a cylinder, 2 for an ellipsoid, 3 for the hull of its corners.
      disk: disk && disk.data.length ? disk.data[k] : 0,
      corners: Array.from(corners ? corners.data.slice(most * k, most * k + most) : []),
      color,
    });
  }
  return found;
}

/** Return the points of an array (n, 3) of a frame; those that are not finite are left out. */
function pointsOf(frame, name) {
  const array = frame.arrays[name];
  if (!array) return [];
  const points = [];
  for (let k = 0; k + 2 < array.data.length; k += 3) points.push(Array.from(array.data.slice(k, k + 3)));
  return points.filter((point) => point.every(Number.isFinite));
}

/** Return the thin rods of a frame, two ends each. */
function linksOf(frame) {
  const ends = frame.arrays.links ? frame.arrays.links.data : [];
  const found = [];
  for (let k = 0; k + 5 < ends.length; k += 6) {
    const link = [Array.from(ends.slice(k, k + 3)), Array.from(ends.slice(k + 3, k + 6))];
    if (link.flat().every(Number.isFinite)) found.push(link);
  }
  return found;
}
