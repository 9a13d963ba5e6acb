// View of a scalar field in the plane: one color per pixel, its walls and bodies, and a color bar.

const BAND = 6;
// Pixels below which the margins are small.
const NARROW = 480;

/** Return linear interpolation at the middles of pixels over [low, high]: lower cell center and weight of the next. */
function sampled(centers, low, high, pixels) {
  const before = new Int32Array(pixels);
  const share = new Float64Array(pixels);
  let cell = 0;
  for (let k = 0; k < pixels; k += 1) {
    const middle = low + ((k + 0.5) / pixels) * (high - low);
    while (cell < centers.length - 2 && centers[cell + 1] < middle) cell += 1;
    before[k] = cell;
    if (centers.length > 1)
      share[k] = Math.min(1, Math.max(0, (middle - centers[cell]) / (centers[cell + 1] - centers[cell])));
  }
  return { before, share };
}

class FieldView {
  constructor(drawing) {
    this.drawing = drawing;
    this.scale = new ColorScale(drawing.scale);
    this.page = document.createElement("canvas");
  }

  /** Return the rectangle of the field on a canvas of some width. */
  rectangle(width) {
    const [xLow, xHigh, yLow, yHigh] = this.drawing.window;
    const shape = (yHigh - yLow) / (xHigh - xLow);
    const [left, right] = width < NARROW ? [52, 92] : [76, 120];
    const room = { left, top: 16, width: Math.max(width - left - right, 60) };
    const height = Math.min(room.width * shape, 560);
    const own = Math.round(height / shape);
    return { left: room.left + Math.round((room.width - own) / 2), top: room.top, width: own, height: Math.round(height) };
  }

  height(width) {
    return Math.max(this.rectangle(width).height + 16 + 64, width < NARROW ? 140 : 190);
  }

  draw(context, width, height, frame) {
    const { drawing } = this;
    const rectangle = this.rectangle(width);
    const plot = new Plot(rectangle, drawing.window);
    this.paint(frame, rectangle.width, rectangle.height);
    context.imageSmoothingEnabled = true;
    context.drawImage(this.page, plot.left, plot.top, plot.width, plot.height);
    this.drawSides(context, plot, frame.arrays.side_velocity);
    plot.drawAxes(context, drawing.labels, drawing.ticks, BAND + 2);
    const high = Math.min(plot.height, 340);
    const bar = { left: plot.left + plot.width + 26, top: plot.top + (plot.height - high) / 2, width: 14, height: high };
    drawColorBar(context, this.scale, drawing.label, bar);
  }

  paint(frame, width, height) {
    const { drawing, scale, page } = this;
    const [xLow, xHigh, yLow, yHigh] = drawing.window;
    const { shape, data } = frame.arrays[drawing.quantity];
    const body = frame.arrays.body_distance;
    const [nx, ny] = shape;
    if (page.width !== width || page.height !== height) {
      Object.assign(page, { width, height });
      this.columns = sampled(drawing.x, xLow, xHigh, width);
      this.rows = sampled(drawing.y, yLow, yHigh, height);
      this.image = page.getContext("2d").createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const places = new Float32Array(nx * ny);
    const factor = 256 / (scale.high - scale.low);
    for (let k = 0; k < places.length; k += 1) places[k] = (data[k] - scale.low) * factor;
    const pixel = (xHigh - xLow) / width;
    const wall = rgb(WALL);
    for (let row = 0; row < height; row += 1) {
      const j = this.rows.before[row];
      const up = this.rows.share[row];
      const above = ny > 1 ? 1 : 0;
      const line = (height - 1 - row) * width;
      for (let column = 0; column < width; column += 1) {
        const i = this.columns.before[column];
        const across = this.columns.share[column];
        const a = i * ny + j;
        const b = nx > 1 ? a + ny : a;
        const value =
          (1 - across) * ((1 - up) * places[a] + up * places[a + above]) +
          across * ((1 - up) * places[b] + up * places[b + above]);
        const place = value >= 0 ? (value < 255 ? value | 0 : 255) : value < 0 ? 0 : 256;
        this.pixels[line + column] = scale.packed[place];
        if (body) {
          const { data: d } = body;
          const away =
            (1 - across) * ((1 - up) * d[a] + up * d[a + above]) + across * ((1 - up) * d[b] + up * d[b + above]);
          const cover = Math.min(1, Math.max(0, 0.5 - away / pixel));
          if (cover > 0)
            for (let part = 0; part < 3; part += 1) {
              const at = 4 * (line + column) + part;
              this.image.data[at] += cover * (wall[part] - this.image.data[at]);
            }
        }
      }
    }
    for (const [name, along] of [["x_gap", 0], ["y_gap", 1]]) {
      for (const [low, high] of drawing[name] || []) {
        const [begin, end, size] = along ? [yLow, yHigh, height] : [xLow, xHigh, width];
        const from = Math.round(((low - begin) / (end - begin)) * size);
        const to = Math.round(((high - begin) / (end - begin)) * size);
        for (let k = 0; k < this.pixels.length; k += 1) {
          const place = along ? height - 1 - Math.floor(k / width) : k % width;
          if (place >= from && place < to) this.pixels[k] = 0xffffffff;
        }
      }
    }
    page.getContext("2d").putImageData(this.image, 0, 0);
  }

  /** Draw walls as bands outside of the field, with chevrons on those that move, and dashes where the flow slips. */
  drawSides(context, plot, velocity) {
    const solid = this.drawing.sides.map((kind) => (kind in SIDES ? BAND : 0));
    const right = plot.left + plot.width;
    const bottom = plot.top + plot.height;
    const start = plot.left - solid[0];
    const whole = plot.width + solid[0] + solid[1];
    const places = [
      [plot.left - BAND, plot.top, BAND, plot.height],
      [right, plot.top, BAND, plot.height],
      [start, bottom, whole, BAND],
      [start, plot.top - BAND, whole, BAND],
    ];
    this.drawing.sides.forEach((kind, side) => {
      const [x, y, width, height] = places[side];
      if (kind in SIDES) {
        context.fillStyle = SIDES[kind];
        context.fillRect(x, y, width, height);
        if (velocity && velocity.data[side]) this.drawChevrons(context, places[side], side < 2, velocity.data[side]);
      } else if (kind === "free_slip") {
        context.strokeStyle = MUTED;
        context.lineWidth = 1;
        context.setLineDash([6, 4]);
        context.beginPath();
        if (side < 2) context.rect(x + BAND / 2, y, 0, height);
        else context.rect(x, y + BAND / 2, width, 0);
        context.stroke();
        context.setLineDash([]);
      }
    });
  }

  drawChevrons(context, [x, y, width, height], upright, velocity) {
    const length = upright ? height : width;
    const count = Math.max(Math.floor(length / 54), 1);
    const point = 2.2 * Math.sign(velocity) * (upright ? -1 : 1);
    context.strokeStyle = "#ffffff";
    context.lineWidth = 1.2;
    context.beginPath();
    for (let k = 0; k < count; k += 1) {
      const middle = (length * (k + 0.5)) / count;
      [0.15, 0.5, 0.85].forEach((share, place) => {
        const along = middle + (place === 1 ? point : -point);
        const [a, b] = upright ? [x + share * BAND, y + along] : [x + along, y + share * BAND];
        if (place) context.lineTo(a, b);
        else context.moveTo(a, b);
      });
    }
    context.stroke();
  }
}
