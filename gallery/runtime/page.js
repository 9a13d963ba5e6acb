"use strict";
(() => {
// onnxruntime-web, started from the bytes in this page or in the script beside it that several pages share.

/** Return the bytes of a block of the page or of the shared script, which is gzip in base64. */
async function bytesOf(id) {
  const text = document.getElementById(id)?.textContent ?? window.SIMKIT_RUNTIME?.[id];
  if (!text) throw new Error("the runtime beside this page is missing");
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return onnxruntime-web on one thread: browsers do not allow pages from a file to share memory between threads. */
async function startRuntime() {
  const [code, machine] = await Promise.all([bytesOf("runtime-script"), bytesOf("runtime-wasm")]);
  const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const runtime = await import(address);
  URL.revokeObjectURL(address);
  runtime.env.wasm.numThreads = 1;
  runtime.env.wasm.wasmBinary = machine;
  runtime.env.logLevel = "error";
  return runtime;
}

/** One of the simulation's programs: {input name: tensor} -> {output name: tensor}. */
class Program {
  static async load(runtime, name) {
    const options = { executionProviders: ["wasm"], logSeverityLevel: 3 };
    const program = new Program();
    program.session = await runtime.InferenceSession.create(await bytesOf(`model-${name}`), options);
    return program;
  }

  run(tensors) {
    const feeds = {};
    for (const name of this.session.inputNames) feeds[name] = tensors[name];
    return this.session.run(feeds);
  }
}

// The simulation: parameters, state and number of steps; each change of the state runs a program of the page.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

/** Return the elements of a tensor as numbers; 64-bit integers, which JavaScript holds as BigInt, are converted. */
function numbersOf(tensor) {
  return typeof tensor.data[0] === "bigint" ? Array.from(tensor.data, Number) : tensor.data;
}

class Simulation {
  /** Return the simulation that the page describes, at its start. */
  static async load(runtime, description) {
    const simulation = new Simulation();
    simulation.runtime = runtime;
    simulation.description = description;
    simulation.seed = description.seed;
    simulation.values = {};
    for (const input of description.inputs) simulation.values[input.name] = [...input.default];
    for (const name of ["start", "advance", "show"]) simulation[name] = await Program.load(runtime, name);
    await simulation.reset();
    return simulation;
  }

  tensor(type, numbers, shape) {
    return new this.runtime.Tensor(type, ARRAYS[type].from(numbers), shape);
  }

  parameters(values = this.values) {
    const inputs = this.description.inputs;
    return Object.fromEntries(inputs.map((i) => [i.name, this.tensor(i.dtype, values[i.name], i.shape)]));
  }

  /** Return the words of the random key of the seed. */
  key() {
    const words = this.description.keyWords;
    return Uint32Array.from({ length: words }, (_, place) => (place === words - 1 ? this.seed >>> 0 : 0));
  }

  /** Return the first state with other parameters. */
  begin(values) {
    const key = this.tensor("uint32", this.key(), [this.description.keyWords]);
    return this.start.run({ ...this.parameters(values), key });
  }

  /** Restart with the present parameters and seed. */
  async reset() {
    this.state = await this.begin();
    this.steps = 0;
  }

  /** Take `count` steps, or fewer if the time in milliseconds is over; return the number of steps taken. */
  async take(count, milliseconds = Infinity) {
    const began = performance.now();
    const parameters = this.parameters();
    let taken = 0;
    while (taken < count && (taken === 0 || performance.now() - began < milliseconds)) {
      const next = await this.advance.run({ ...parameters, ...this.state });
      const state = {};
      for (const name in next) state[name.replace("next.", "state.")] = next[name];
      this.state = state;
      taken += 1;
    }
    this.steps += taken;
    return taken;
  }

  /** Return the frame of a state: arrays and their shapes by name, diagnostics by name, and the status. */
  async look(state = this.state, values = this.values) {
    const found = await this.show.run({ ...this.parameters(values), ...state });
    const arrays = {};
    const diagnostics = {};
    for (const [name, tensor] of Object.entries(found)) {
      const [kind, ...rest] = name.split(".");
      if (kind === "frame") arrays[rest.join(".")] = { shape: tensor.dims, data: numbersOf(tensor) };
      if (kind === "diagnostic" && tensor.data.length === 1) diagnostics[rest.join(".")] = Number(tensor.data[0]);
    }
    return { arrays, diagnostics, status: Number(found.status.data[0]) };
  }
}

// Color scales and the colors of the design.

let INK = "#1d2733";
let MUTED = "#5d6875";
let FAINT = "#d5dae0";
const WALL = "#8793a1";
const SIDES = { wall: WALL, hot: "#b40426", cold: "#3b4cc0" };
const ACCENT = "#d1495b";

/** 256 colors over [low, high] and one for what is not a number, or one color for each whole number. */
class ColorScale {
  constructor({ low, high, levels, words, table }) {
    Object.assign(this, { low, high, levels, words });
    const bytes = Uint8Array.from(atob(table), (letter) => letter.charCodeAt(0));
    this.packed = new Uint32Array(bytes.buffer);
    this.colors = Array.from({ length: 257 }, (_, place) => [...bytes.subarray(4 * place, 4 * place + 3)]);
  }

  /** Return the place of a value in the table; that of what is not finite is 256. */
  place(value) {
    if (!Number.isFinite(value)) return 256;
    const rounded = this.levels ? Math.round(value) : value;
    const place = ((rounded - this.low) / (this.high - this.low)) * 256;
    return Math.min(255, Math.max(0, Math.floor(place)));
  }

  /** Return the color [red, green, blue] of a value. */
  color(value) {
    return this.colors[this.place(value)];
  }
}

/** Return a color as CSS, mixed with white by a share and darkened by a factor. */
function css([red, green, blue], pale = 0, dark = 1) {
  const mixed = [red, green, blue].map((part) => Math.round((part + pale * (255 - part)) * dark));
  return `rgb(${mixed.map((part) => Math.min(255, Math.max(0, part))).join(",")})`;
}

/** Return [red, green, blue] of "#rrggbb". */
function rgb(hexadecimal) {
  return [1, 3, 5].map((place) => parseInt(hexadecimal.slice(place, place + 2), 16));
}

// Axes, tick marks, color bars and lines over time, drawn on a canvas.

const FONT = '12px "DejaVu Sans", "Helvetica Neue", Arial, sans-serif';

/** Return a number as a short text. */
function shortNumber(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e5 || size < 1e-3
      ? value.toExponential(Math.max(digits - 2, 1)).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(digits)));
  return text.replace(/-/g, "\u2212");
}

/** Return about `count` round numbers within [low, high]. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && found.length < 100; k += 1)
    found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** A window of the plane on a rectangle {left, top, width, height} of the canvas, y upward. */
class Plot {
  constructor(rectangle, [xLow, xHigh, yLow, yHigh]) {
    Object.assign(this, rectangle, { xLow, xHigh, yLow, yHigh });
    this.scale = this.width / (xHigh - xLow);
  }

  x(value) {
    return this.left + ((value - this.xLow) / (this.xHigh - this.xLow)) * this.width;
  }

  y(value) {
    return this.top + this.height - ((value - this.yLow) / (this.yHigh - this.yLow)) * this.height;
  }

  /** Draw numbers along the left and the lower side, and what they mean; ticks are [place, text] or null. */
  drawAxes(context, labels, given = [null, null], distance = 6) {
    context.font = FONT;
    context.fillStyle = INK;
    context.strokeStyle = MUTED;
    context.lineWidth = 0.8;
    const bottom = this.top + this.height + distance;
    const named = (values) => values.map((value) => [value, shortNumber(value)]);
    const across = given[0] || named(ticks(this.xLow, this.xHigh, Math.min(8, this.width / 70)));
    const up = given[1] || named(ticks(this.yLow, this.yHigh, Math.min(8, this.height / 32)));
    context.beginPath();
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const [value, text] of across) {
      const x = this.x(value);
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + 4);
      context.fillText(text, x, bottom + 7);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    let widest = 0;
    for (const [value, text] of up) {
      const y = this.y(value);
      context.moveTo(this.left - distance, y);
      context.lineTo(this.left - distance - 4, y);
      context.fillText(text, this.left - distance - 7, y);
      widest = Math.max(widest, context.measureText(text).width);
    }
    context.stroke();
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillText(labels[0], this.left + this.width / 2, bottom + 24);
    context.save();
    context.translate(this.left - distance - 14 - widest, this.top + this.height / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "bottom";
    context.fillText(labels[1], 0, 0);
    context.restore();
  }
}

/** Draw a color bar in a rectangle, with its numbers to the right and its label beside them. */
function drawColorBar(context, scale, label, { left, top, width, height }) {
  const count = scale.levels ? scale.levels.length : 64;
  const shades = context.createLinearGradient(0, top + height, 0, top);
  for (let k = 0; k < count; k += 1) {
    const color = css(scale.colors[Math.floor(((k + 0.5) / count) * 256)]);
    // Whole numbers have one color each, with nothing between.
    for (const share of scale.levels ? [k, k + 1] : [k + 0.5]) shades.addColorStop(share / count, color);
  }
  context.fillStyle = shades;
  context.fillRect(left, top, width, height);
  context.strokeStyle = MUTED;
  context.lineWidth = 0.8;
  context.strokeRect(left, top, width, height);
  context.font = FONT;
  context.fillStyle = INK;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const range = scale.high - scale.low;
  const values = scale.levels || ticks(scale.low, scale.high, Math.min(6, height / 40));
  let widest = 0;
  values.forEach((value, place) => {
    const text = scale.words ? scale.words[place] : shortNumber(value);
    const y = top + height * (1 - (value - scale.low) / range);
    context.fillText(text, left + width + 6, y);
    widest = Math.max(widest, context.measureText(text).width);
  });
  context.save();
  context.translate(left + width + 14 + widest, top + height / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.textBaseline = "top";
  context.fillText(label, 0, 0, height * 1.3);
  context.restore();
}

/** Draw a line through points (xs, ys) with axes, in a rectangle; limits of y may be given. */
function drawLine(context, rectangle, xs, ys, labels, limits = null) {
  const finite = ys.filter(Number.isFinite);
  let [low, high] = limits || [Math.min(...finite), Math.max(...finite)];
  if (!finite.length) [low, high] = [0, 1];
  const margin = limits ? 0 : 0.08 * (high - low) || 0.1 * Math.abs(high) || 1;
  const last = xs[xs.length - 1] ?? 1;
  const plot = new Plot(rectangle, [xs[0] ?? 0, last > xs[0] ? last : (xs[0] ?? 0) + 1, low - margin, high + margin]);
  plot.drawAxes(context, labels, [null, null], 0);
  context.strokeStyle = FAINT;
  context.strokeRect(plot.left, plot.top, plot.width, plot.height);
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top, plot.width, plot.height);
  context.clip();
  context.beginPath();
  xs.forEach((x, place) => {
    if (Number.isFinite(ys[place])) context.lineTo(plot.x(x), plot.y(ys[place]));
  });
  context.strokeStyle = "#1f6fb2";
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  context.stroke();
  context.restore();
  if (finite.length) {
    context.beginPath();
    context.arc(plot.x(xs[xs.length - 1]), plot.y(ys[ys.length - 1]), 3, 0, 2 * Math.PI);
    context.fillStyle = "#1f6fb2";
    context.fill();
  }
  return plot;
}

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

// Bodies, points and rods in the arrays of a frame.

/** Return the solids, rods and marks of a frame, for any camera. */
function readBodies(frame, drawing, scale) {
  const { position, orientation, radius, half_lengths: half, disk } = frame.arrays;
  const found = [];
  const palette = drawing.palette.map(rgb);
  const values = frame.arrays[drawing.quantity];
  for (let k = 0; k < radius.data.length; k += 1) {
    const center = Array.from(position.data.slice(3 * k, 3 * k + 3));
    const turn = Array.from(orientation.data.slice(4 * k, 4 * k + 4));
    const isPresent = [...center, ...turn, radius.data[k]].every(Number.isFinite) && turn.some((part) => part !== 0);
    let color = palette[drawing.body_of_shape[k] % palette.length];
    if (scale) {
      const wide = values.data.length / radius.data.length;
      const value = wide > 1 ? Math.hypot(...values.data.slice(wide * k, wide * k + wide)) : values.data[k];
      color = scale.color(value);
    }
    found.push({
      isPresent,
      center,
      turn,
      radius: radius.data[k],
      half: half && half.data.length ? Array.from(half.data.slice(3 * k, 3 * k + 3)) : [0, 0, 0],
      disk: Boolean(disk && disk.data[k]),
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

// View of balls from the side: x to the right, z up, with the floor, their spin and the paths behind them.

class SideView {
  constructor(drawing) {
    this.drawing = drawing;
    this.scale = drawing.scale ? new ColorScale(drawing.scale) : null;
  }

  plot(width) {
    const room = width - 64 - (this.scale ? 110 : 20);
    const [xLow, xHigh, zLow, zHigh] = this.drawing.window;
    const shape = (zHigh - zLow) / (xHigh - xLow);
    const height = Math.min(Math.max(room * shape, 200), 480);
    // The window is widened to fill the picture.
    const wide = Math.max(xHigh - xLow, ((zHigh - zLow) * room) / height);
    const high = Math.max(zHigh - zLow, (wide * height) / room);
    const [x, z] = [(xLow + xHigh) / 2, this.drawing.floor ? zLow : (zLow + zHigh - high) / 2];
    return new Plot({ left: 64, top: 12, width: room, height }, [x - wide / 2, x + wide / 2, z, z + high]);
  }

  height(width) {
    return this.plot(width).height + 12 + 56;
  }

  draw(context, width, height, frame, trail) {
    const { drawing } = this;
    const plot = this.plot(width);
    const place = ([x, , z]) => ({ x: plot.x(x), y: plot.y(z) });
    context.save();
    context.beginPath();
    context.rect(plot.left, plot.top, plot.width, plot.height);
    context.clip();
    context.strokeStyle = FAINT;
    context.lineWidth = 0.8;
    context.beginPath();
    for (const z of ticks(plot.yLow, plot.yHigh, plot.height / 45)) {
      context.moveTo(plot.left, plot.y(z));
      context.lineTo(plot.left + plot.width, plot.y(z));
    }
    context.stroke();
    if (drawing.floor) {
      context.fillStyle = FAINT;
      context.fillRect(plot.left, plot.y(0), plot.width, plot.height);
      context.fillStyle = MUTED;
      context.fillRect(plot.left, plot.y(0) - 0.6, plot.width, 1.4);
    }
    for (const point of pointsOf(frame, "target")) {
      const { x, y } = place(point);
      context.strokeStyle = ACCENT;
      context.fillStyle = ACCENT;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, 9, 0, 2 * Math.PI);
      context.stroke();
      context.beginPath();
      context.arc(x, y, 4, 0, 2 * Math.PI);
      context.fill();
    }
    context.lineWidth = 2.2;
    context.lineCap = "round";
    trail.draw(context, place, this.scale ? 0.6 : 0.3);
    context.strokeStyle = WALL;
    context.lineWidth = 2;
    for (const [from, to] of linksOf(frame)) {
      const [a, b] = [place(from), place(to)];
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
      context.stroke();
    }
    const bodies = readBodies(frame, drawing, this.scale).filter((body) => body.isPresent);
    bodies.sort((a, b) => b.center[1] - a.center[1]);
    for (const body of bodies) this.drawBall(context, place(body.center), body, plot.scale);
    context.restore();
    plot.drawAxes(context, ["x (m)", "z (m)"], [null, null], 2);
    if (this.scale) {
      const high = Math.min(plot.height, 340);
      const bar = { left: plot.left + plot.width + 22, top: plot.top + (plot.height - high) / 2, width: 14, height: high };
      drawColorBar(context, this.scale, drawing.label, bar);
    }
  }

  drawBall(context, { x, y }, body, scale) {
    const radius = Math.max(body.radius * scale, 2);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = css(body.color);
    context.fill();
    context.strokeStyle = INK;
    context.lineWidth = 1;
    context.stroke();
    if (radius < 4) return;
    // The near half of the circle about its own axis z and a dot on that circle show its spin.
    const axes = axesOf(body.turn);
    const isDark = 0.299 * body.color[0] + 0.587 * body.color[1] + 0.114 * body.color[2] < 128;
    const ink = isDark ? "#ffffff" : INK;
    context.strokeStyle = ink;
    context.fillStyle = ink;
    context.lineWidth = Math.max(0.1 * radius, 1.2);
    context.beginPath();
    let isOpen = false;
    for (const angle of [...ROUND, 0]) {
      const point = plus(plus([0, 0, 0], axes[0], Math.cos(angle)), axes[1], Math.sin(angle));
      // Seen along +y, the near side is that of negative y.
      const isSeen = point[1] <= 1e-9;
      const [a, b] = [x + 0.93 * radius * point[0], y - 0.93 * radius * point[2]];
      if (isSeen && isOpen) context.lineTo(a, b);
      else if (isSeen) context.moveTo(a, b);
      isOpen = isSeen;
    }
    context.stroke();
    const dotted = plus(axes[0], axes[1], -1).map((part) => part * Math.SQRT1_2);
    if (dotted[1] < 0.1) {
      context.beginPath();
      context.arc(x + radius * dotted[0], y - radius * dotted[2], 0.2 * radius, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

// View of one diagnostic over time.

class ChartView {
  constructor(drawing) {
    this.drawing = drawing;
  }

  height(width) {
    return Math.min(0.5 * width, 420);
  }

  draw(context, width, height, frame, trail, history) {
    const { drawing } = this;
    const rectangle = { left: 84, top: 16, width: width - 110, height: height - 16 - 52 };
    const labels = [history.label, drawing.label];
    drawLine(context, rectangle, history.times, history.of(drawing.quantity), labels, drawing.limits);
  }
}

/** The diagnostics of the frames that were drawn since the start. */
class History {
  constructor(clock, label) {
    Object.assign(this, { clock, label });
    this.clear();
  }

  clear() {
    this.times = [];
    this.frames = [];
  }

  add(diagnostics, steps) {
    this.times.push(this.clock in diagnostics ? diagnostics[this.clock] : steps);
    this.frames.push(diagnostics);
    if (this.frames.length < 4000) return;
    // Every other one of a long history is enough for a line.
    this.times = this.times.filter((_, place) => place % 2 === 0);
    this.frames = this.frames.filter((_, place) => place % 2 === 0);
  }

  of(name) {
    return this.frames.map((diagnostics) => diagnostics[name] ?? NaN);
  }
}

const VIEWS = {
  field: FieldView,
  disks: DiskView,
  spheres: SphereView,
  bodies: BodyView,
  side: SideView,
  chart: ChartView,
};

// Sliders of the parameters, buttons, the pace, the seed, and the list of diagnostics.

/** Return an element with a class and a text. */
function element(tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  return made;
}

/** A slider and a field of one number, within its bounds; the slider of a wide range is logarithmic. */
class Slider {
  constructor(entry, changed) {
    Object.assign(this, { entry, changed, value: entry.default });
    this.line = element("div", "slider");
    this.line.title = entry.doc;
    const label = element("label");
    label.append(element("span", "name", entry.label), element("span", "unit", entry.unit));
    if (!entry.live) label.append(element("span", "start", "start"));
    this.range = Object.assign(element("input"), { type: "range", min: 0, max: 1000, step: 1 });
    this.range.setAttribute("aria-label", entry.label);
    this.number = Object.assign(element("input"), { type: "number", step: "any" });
    Object.assign(this.number, { min: entry.low ?? "", max: entry.high ?? "" });
    this.number.setAttribute("aria-label", entry.label);
    this.range.addEventListener("input", () => this.take(this.valueAt(Number(this.range.value) / 1000)));
    this.number.addEventListener("change", () => {
      // A slider ends where the bounds do, or near the default where there are none; a number may go beyond it.
      const value = this.number.value.trim() === "" ? NaN : Number(this.number.value);
      const [low, high] = [entry.low ?? -Infinity, entry.high ?? Infinity];
      this.take(Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : this.value);
    });
    this.line.append(label, this.range, this.number);
    this.show();
  }

  valueAt(share) {
    const { first, last, logarithmic } = this.entry;
    if (share <= 0) return first;
    if (share >= 1) return last;
    const value = logarithmic ? first * (last / first) ** share : first + share * (last - first);
    return Math.min(last, Math.max(first, Number(value.toPrecision(4))));
  }

  show() {
    const { first, last, logarithmic } = this.entry;
    const way = (value) => (logarithmic ? Math.log(Math.max(value, first) / first) : value - first);
    this.range.value = Math.round((1000 * way(this.value)) / way(last));
    this.number.value = Number(this.value.toPrecision(7));
  }

  take(value) {
    if (value === this.value) return this.show();
    this.value = value;
    this.show();
    return this.changed(this.entry, value);
  }
}

/** Fill the panel of parameters; return the sliders by their labels. */
function makeSliders(description, changed) {
  const panel = document.getElementById("parameters");
  const sliders = {};
  for (const entry of description.sliders) {
    const slider = new Slider(entry, changed);
    sliders[entry.label] = slider;
    panel.append(slider.line);
  }
  if (description.without_slider.length)
    panel.append(element("p", "note", `Fixed in this page: ${description.without_slider.join(", ")}.`));
  if (description.sliders.some((entry) => !entry.live))
    panel.append(element("p", "note", "Parameters marked \u201cstart\u201d act on the initial state: changing one begins again."));
  return sliders;
}

/** Fill the list of diagnostics; return a function that shows their values. */
function makeReadout(description) {
  const table = document.getElementById("diagnostics");
  const cells = {};
  for (const { name, label, unit, doc } of description.diagnostics) {
    const row = element("tr");
    row.title = doc;
    cells[name] = element("td", "value");
    row.append(element("td", "", label), cells[name], element("td", "unit", unit));
    table.append(row);
  }
  return (diagnostics) => {
    for (const name in cells) cells[name].textContent = name in diagnostics ? shortNumber(diagnostics[name], 5) : "";
  };
}

// Minimization within bounds by projected L-BFGS (Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4).

const MEMORY = 8;
// Largest change of a coordinate, whose range is about 1, in the first and in any later iteration.
const FIRST_MOVE = 0.1;
const LARGEST_MOVE = 0.3;
const ENOUGH = 1e-4;
const MOST_TRIALS = 14;
const MOST_ITERATIONS = 100;
// Iterations that together gain less than this share of the value are the last.
const [PATIENCE, GAIN] = [5, 1e-5];

const inner = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
const largest = (a) => a.reduce((found, value) => Math.max(found, Math.abs(value)), 0);

/** Return minus the inverse Hessian of the pairs (s, y) times a gradient. */
function quasiNewton(gradient, pairs) {
  let direction = gradient.map((value) => -value);
  const shares = [];
  for (const { s, y } of pairs.toReversed()) {
    const share = inner(s, direction) / inner(s, y);
    shares.unshift(share);
    direction = direction.map((value, place) => value - share * y[place]);
  }
  const last = pairs.at(-1);
  if (last) direction = direction.map((value) => (value * inner(last.s, last.y)) / inner(last.y, last.y));
  pairs.forEach(({ s, y }, number) => {
    const share = shares[number] - inner(y, direction) / inner(s, y);
    direction = direction.map((value, place) => value + share * s[place]);
  });
  return direction;
}

/**
 * Minimize a function within bounds; yield every point {x, value, gradient} that is lower than the one before.
 *
 * `evaluate(x)` returns {value, gradient}, not finite where a run fails; `bounds` are [low, high] of each coordinate.
 */
async function* minimized(evaluate, start, bounds) {
  const within = (x) => x.map((value, place) => Math.min(bounds[place][1], Math.max(bounds[place][0], value)));
  let at = { x: within(start), ...(await evaluate(within(start))) };
  yield at;
  const values = [at.value];
  let pairs = [];
  // A gradient below this is zero: an objective such as a squared distance vanishes at its minimum with its gradient.
  const small = 1e-9 * largest(at.gradient);
  for (let iteration = 0; iteration < MOST_ITERATIONS; iteration += 1) {
    // Coordinates at a bound that the objective presses against stay there.
    const isFree = at.gradient.map((slope, place) => slope * (at.x[place] - bounds[place][slope > 0 ? 0 : 1]) !== 0);
    const slope = at.gradient.map((value, place) => (isFree[place] ? value : 0));
    if (!(largest(slope) > small)) return;
    const free = (vector) => vector.map((value, place) => (isFree[place] ? value : 0));
    const curved = pairs.map(({ s, y }) => ({ s: free(s), y: free(y) })).filter(({ s, y }) => inner(s, y) > 0);
    let direction = free(quasiNewton(slope, curved));
    if (!(inner(direction, slope) < 0)) [direction, pairs] = [slope.map((value) => -value), []];
    const move = pairs.length ? LARGEST_MOVE : FIRST_MOVE;
    let share = pairs.length ? Math.min(1, move / largest(direction)) : move / largest(direction);
    let next = null;
    for (let trial = 0; trial < MOST_TRIALS && !next; trial += 1) {
      const x = within(at.x.map((value, place) => value + share * direction[place]));
      const found = await evaluate(x);
      const expected = inner(slope, x.map((value, place) => value - at.x[place]));
      if (found.value <= at.value + ENOUGH * expected && found.gradient.every(Number.isFinite)) next = { x, ...found };
      // The minimum of the parabola through both values and the slope, not too near either end.
      const best = (-0.5 * expected) / (found.value - at.value - expected);
      share *= Number.isFinite(best) ? Math.min(0.5, Math.max(0.1, best)) : 0.1;
    }
    if (!next || !(next.value < at.value)) return;
    const s = next.x.map((value, place) => value - at.x[place]);
    const y = next.gradient.map((value, place) => value - at.gradient[place]);
    if (inner(s, y) > 1e-12 * inner(y, y)) pairs = [...pairs, { s, y }].slice(-MEMORY);
    at = next;
    yield at;
    values.push(at.value);
    if (values.at(-1 - PATIENCE) - at.value < GAIN * Math.abs(at.value)) return;
  }
}

// The derivative program, in a thread of its own, so that the page stays alive while it runs.

/** What the thread runs: it loads a program once, and answers each request with the numbers of its outputs. */
function serve(runtime) {
  let session = null;
  self.onmessage = async ({ data: { machine, model, feeds } }) => {
    try {
      if (model) {
        Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: machine });
        session = await runtime.InferenceSession.create(model, { executionProviders: ["wasm"], logSeverityLevel: 3 });
        return self.postMessage({});
      }
      const tensors = session.inputNames.map((name) => [name, new runtime.Tensor(...feeds[name])]);
      const found = await session.run(Object.fromEntries(tensors));
      const numbers = Object.entries(found).map(([name, tensor]) => [name, Array.from(tensor.data, Number)]);
      return self.postMessage({ numbers: Object.fromEntries(numbers) });
    } catch (error) {
      return self.postMessage({ failure: String(error.message || error) });
    }
  };
}

/** A program in a thread: {input name: [type, numbers, shape]} -> {output name: numbers}. */
class ThreadedProgram {
  static async load(name) {
    const [code, machine, model] = await Promise.all(["runtime-script", "runtime-wasm", `model-${name}`].map(bytesOf));
    // A thread of a page from a file has an origin of its own: it may import nothing, and be no module. Its source
    // holds the runtime as a plain script, whose exports become an argument.
    const module = new TextDecoder().decode(code).replaceAll("import.meta.url", "self.location.href");
    const exported = /export *{([^}]*)};?/;
    const names = module.match(exported)[1].replace(/(\w+) as (\w+)/g, "$2: $1");
    const source = `${module.replace(exported, "")}\n(${serve})({ ${names} });`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const program = Object.assign(new ThreadedProgram(), { worker: new Worker(address), last: Promise.resolve() });
    await program.ask({ machine, model });
    URL.revokeObjectURL(address);
    return program;
  }

  /** Send a request to the thread after the answer to the one before. */
  ask(request) {
    const send = (resolve, reject) => {
      const { worker } = this;
      worker.onmessage = ({ data }) => (data.failure ? reject(new Error(data.failure)) : resolve(data.numbers));
      worker.onerror = ({ message }) => reject(new Error(message || "no thread can be started"));
      worker.postMessage(request);
    };
    const answer = this.last.then(() => new Promise(send));
    this.last = answer.catch(() => undefined);
    return answer;
  }
}

// What the derivative adds to the picture: arrows of better places and velocities, and a target that is dragged.

// Length of the longest arrow in pixels, the share of it at which an arrow vanishes, and the most arrows.
const [ARROW, SHORTEST, MOST_ARROWS] = [72, 0.1, 4];
// Step of a difference relative to the range of a parameter.
const STEP = { float64: 1e-6, float32: 1e-3 };

/** Return a place of space as pixels [x, y] of the picture, or null where the view has no such places. */
function pixelOf(view, width, height, point) {
  const plot = drawing.kind === "side" ? view.plot(width) : drawing.kind === "field" && new Plot(view.rectangle(width), drawing.window);
  if (plot) return [plot.x(point[0]), plot.y(drawing.kind === "side" ? point[2] : point[1])];
  if (!view.orbit) return null;
  const { x, y } = view.orbit.camera(drawing, width, height).project(point);
  return [x, y];
}

/** Return the center of obstacles, where the distance from the surface is negative, or null if there is none. */
function centerOf({ body_distance: distance }) {
  if (!distance || drawing.kind !== "field") return null;
  const { x: columns, y: rows } = drawing;
  const width = (line, k) => line[Math.min(k + 1, line.length - 1)] - line[Math.max(k - 1, 0)];
  // The weight falls from 1 to 0 across a cell, so that the center moves smoothly.
  const cell = Math.min(...columns.slice(1).map((x, k) => x - columns[k]));
  const sums = [0, 0, 0];
  for (let i = 0; i < columns.length; i += 1)
    for (let j = 0; j < rows.length; j += 1) {
      const share = Math.min(1, Math.max(0, 0.5 - distance.data[i * rows.length + j] / cell));
      const weight = share * width(columns, i) * width(rows, j);
      [1, columns[i], rows[j]].forEach((moment, k) => (sums[k] += weight * moment));
    }
  return sums[0] ? [sums[1] / sums[0], sums[2] / sums[0], 0] : null;
}

/** Return the places and velocities of a frame that parameters may set: {name: flat coordinates}. */
function placesOf(arrays) {
  const found = {};
  if (drawing.palette) {
    if (arrays.position) found.place = Array.from(arrays.position.data);
    if (arrays.velocity?.shape.at(-1) === 3) found.velocity = Array.from(arrays.velocity.data);
  }
  const center = centerOf(arrays);
  if (center) found.place = center;
  if (arrays.target?.data.length === 3) found.target = Array.from(arrays.target.data);
  return found;
}

class Overlay {
  constructor(derivative) {
    Object.assign(this, { derivative, player: derivative.player, arrows: [], longest: {}, reach: {}, moving: [] });
    const holder = this.player.canvas.parentElement;
    holder.classList.add("overlaid");
    this.handle = Object.assign(element("button", "handle"), { type: "button", hidden: true, title: "drag, or use the arrow keys" });
    this.handle.setAttribute("aria-label", "target");
    holder.insertAdjacentHTML("beforeend", '<svg role="img" aria-label="arrows toward a better start"></svg>');
    this.svg = holder.lastElementChild;
    holder.append(this.handle);
    this.handle.addEventListener("pointerdown", ({ pointerId }) => this.handle.setPointerCapture(pointerId));
    this.handle.addEventListener("pointermove", ({ pointerId, clientX, clientY }) => {
      const { left, top } = this.player.canvas.getBoundingClientRect();
      if (this.handle.hasPointerCapture(pointerId)) this.drag([clientX - left, clientY - top]);
    });
    this.handle.addEventListener("keydown", ({ key }) => {
      const way = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[key];
      if (way && this.target) this.drag(this.target.map((value, axis) => value + way[axis]));
    });
  }

  /** Measure how places, velocities and the target change with parameters, and make the arrows. */
  measure() {
    return this.player.inTurn(async () => {
      const { derivative, player } = this;
      const { simulation } = player;
      const sliders = Object.values(player.sliders);
      const at = async (entry, step) => {
        const values = structuredClone(simulation.values);
        if (entry) values[entry.input][entry.index] += step;
        return placesOf((await simulation.look(await simulation.begin(values), values)).arrays);
      };
      const before = await at(null, 0);
      this.reach = {};
      for (const { entry, value } of sliders) {
        if (!(before.target || (before.place && derivative.entries.includes(entry)))) continue;
        const scale = STEP[description.inputs[0].dtype] * (entry.last - entry.first);
        const step = value + scale > (entry.high ?? Infinity) ? -scale : scale;
        const after = await at(entry, step);
        this.reach[entry.label] = Object.fromEntries(
          Object.entries(before).map(([name, row]) => [name, row.map((old, k) => (after[name][k] - old) / step)]),
        );
      }
      this.moving = sliders.filter(({ entry }) => largest(this.reach[entry.label]?.target || []) > 1e-9);
      this.before = before;
      this.makeArrows();
      this.draw();
    });
  }

  /** Make an arrow for each body whose place or velocity at the start is set by parameters, along the better one. */
  makeArrows() {
    const { derivative, before } = this;
    const sign = derivative.about.goal === "maximize" ? 1 : -1;
    const found = [];
    for (let body = 0; 3 * body < (before.place?.length || 0); body += 1) {
      const of = (row) => row?.slice(3 * body, 3 * body + 3) || [];
      const moves = derivative.entries.map(({ label }, k) => {
        const { place, velocity } = this.reach[label] || {};
        // What moves the place as well is told by the arrow of the place.
        const name = largest(of(place)) > 1e-9 ? "place" : "velocity";
        return { name, row: of(name === "place" ? place : velocity), slope: sign * derivative.gradient[k] };
      });
      for (const name of ["place", "velocity"]) {
        const chosen = moves.filter((move) => move.name === name && largest(move.row) > 1e-9);
        if (!chosen.length) continue;
        // Parameters move a body at right angles to each other, as speed and angle, or x and y.
        const along = (axis) => chosen.reduce((sum, { row, slope }) => sum + (slope * row[axis]) / inner(row, row), 0);
        const way = [0, 1, 2].map(along);
        const size = Math.hypot(...way);
        this.longest[name] = Math.max(this.longest[name] || 0, size);
        const share = Math.sqrt(size / this.longest[name]);
        if (share > SHORTEST) found.push({ name, from: of(before.place), way: normalized(way), length: ARROW * share });
      }
    }
    this.arrows = found.slice(0, MOST_ARROWS);
  }

  draw() {
    const { player, svg, handle } = this;
    const [width, height] = [player.canvas.clientWidth, player.canvas.clientHeight];
    const pixel = (point) => pixelOf(player.view, width, height, point);
    const paths = [];
    for (const { name, from, way, length } of this.arrows) {
      const [start, ahead] = [pixel(from), pixel(plus(from, way, 1e-3))];
      if (!start) break;
      const [x, y] = [0, 1].map((axis) => ahead[axis] - start[axis]);
      const size = Math.hypot(x, y);
      if (!(size > 0)) continue;
      const at = (along, aside) => [start[0] + (along * x - aside * y) / size, start[1] + (along * y + aside * x) / size];
      const [end, ...head] = [at(length, 0), at(length - 10, -7), at(length, 0), at(length - 10, 7)];
      paths.push(`<path d="M${start}L${end}M${head.join("L")}" aria-label="better ${name} at the start"/>`);
    }
    svg.innerHTML = paths.join("");
    const target = this.moving.length && player.frame?.arrays.target;
    this.target = target ? pixel(Array.from(target.data)) : null;
    handle.hidden = !this.target;
    if (this.target) Object.assign(handle.style, { left: `${this.target[0]}px`, top: `${this.target[1]}px` });
  }

  /** Move the target to pixels of the picture, by the parameters that move it. */
  drag(wanted) {
    const { player, moving } = this;
    const [width, height] = [player.canvas.clientWidth, player.canvas.clientHeight];
    const place = Array.from(player.frame.arrays.target.data);
    const rows = moving.map(({ entry }) => this.reach[entry.label].target);
    const at = (moves) => {
      const moved = place.map((x, axis) => x + moves.reduce((sum, move, k) => sum + rows[k][axis] * move, 0));
      return pixelOf(player.view, width, height, moved);
    };
    const moves = moving.map(() => 0);
    // Parameters in turn, since in perspective the picture is not linear.
    for (let turn = 0; turn < 6 * moves.length; turn += 1) {
      const k = turn % moves.length;
      const [here, ahead] = [at(moves), at(moves.with(k, moves[k] + 1e-4))];
      const [slope, rest] = [ahead, wanted].map((there) => there.map((value, axis) => value - here[axis]));
      moves[k] += (1e-4 * inner(slope, rest)) / inner(slope, slope) || 0;
    }
    moving.forEach((slider, k) => {
      const { low, high } = slider.entry;
      slider.take(Math.min(high ?? Infinity, Math.max(low ?? -Infinity, slider.value + moves[k])));
    });
  }
}

// The objective and its gradient: numbers beside the sliders, improvement within bounds, and a scan of a parameter.

const TANGENT = "#c2410c";
const SCAN_POINTS = 25;
// A slope of this share of the largest one seen is that of an optimum.
const FLAT = 1e-6;

class Derivative {
  static async load(player) {
    const derivative = new Derivative();
    Object.assign(derivative, { player, about: description.derivative, path: [], steepest: [], scanned: null, isBusy: false });
    derivative.entries = derivative.about.labels.map((label) => player.sliders[label].entry);
    derivative.program = await ThreadedProgram.load("gradient");
    derivative.makePanel();
    derivative.overlay = new Overlay(derivative);
    return derivative;
  }

  makePanel() {
    const { about, entries, player } = this;
    const part = (id) => document.getElementById(id);
    const on = (id, event, action) => part(id).addEventListener(event, action);
    part("derivative").hidden = false;
    part("objective-name").textContent = `Objective: ${about.label}, to ${about.goal}`;
    part("objective-doc").textContent = about.doc;
    this.output = part("objective-value");
    this.slopes = entries.map((entry) => {
      const line = element("output", "slope");
      player.sliders[entry.label].line.append(line);
      return line;
    });
    for (const entry of entries) part("along").append(new Option(entry.label));
    for (const work of ["improve", "scan"]) on(work, "click", () => (this.isBusy ? (this.isStopped = true) : this[work]()));
    on("along", "change", () => this.draw((this.scanned = null)));
    new ResizeObserver(() => this.draw()).observe(part("curves"));
  }

  /** Return {value, gradient} of the objective by parameters, of one run with the page's other parameters and seed. */
  async at(numbers = this.numbers()) {
    const { player, entries } = this;
    const { inputs, keyWords } = description;
    const values = structuredClone(player.simulation.values);
    entries.forEach((entry, place) => (values[entry.input][entry.index] = numbers[place]));
    const feeds = Object.fromEntries(inputs.map((i) => [i.name, [i.dtype, ARRAYS[i.dtype].from(values[i.name]), i.shape]]));
    feeds.key = ["uint32", player.simulation.key(), [keyWords]];
    const found = await this.program.ask({ feeds });
    const gradient = entries.map(({ input, index }) => found[input.replace("params.", "gradient.")][index]);
    return { value: found.objective[0], gradient };
  }

  numbers() {
    return this.entries.map(({ input, index }) => this.player.simulation.values[input][index]);
  }

  /** Evaluate where the page is now, unless that has been done; while the thread works the latest request waits. */
  async update() {
    this.overlay.draw();
    const { values, seed } = this.player.simulation;
    const now = JSON.stringify([values, seed]);
    if (now === this.evaluated || this.isBusy || this.isEvaluating) return;
    this.isEvaluating = true;
    document.body.classList.add("differentiating");
    try {
      const found = await this.at();
      this.evaluated = now;
      if (!this.isBusy) this.show(found);
    } catch (error) {
      this.evaluated = now;
      this.output.textContent = `no derivative: ${error.message}`;
    } finally {
      this.isEvaluating = false;
      document.body.classList.remove("differentiating");
    }
    await this.update();
  }

  show({ value, gradient }) {
    this.value = value;
    this.gradient = gradient;
    const { about, entries, slopes } = this;
    this.output.textContent = `${about.label} = ${shortNumber(value, 6)}`;
    const sign = about.goal === "maximize" ? 1 : -1;
    entries.forEach(({ label, unit }, place) => {
      const slope = gradient[place];
      this.steepest[place] = Math.max(this.steepest[place] || 0, Math.abs(slope));
      const isFlat = Math.abs(slope) <= FLAT * this.steepest[place];
      const way = isFlat ? "flat" : sign * slope > 0 ? "\u2191 raise" : "\u2193 lower";
      slopes[place].textContent = `\u2202/\u2202 ${label} = ${shortNumber(slope, 5)}${unit ? ` per ${unit}` : ""}  ${way}`;
    });
    this.draw();
    this.overlay.measure();
  }

  /** Run a long work that can be stopped, with the name of its button changed meanwhile. */
  async busy(button, work) {
    const { player } = this;
    player.play(false);
    Object.assign(this, { isBusy: true, isStopped: false });
    const [own, other] = [button, button === "scan" ? "improve" : "scan"].map((id) => document.getElementById(id));
    const name = own.textContent;
    own.textContent = "Stop";
    other.disabled = true;
    try {
      await work();
    } catch (error) {
      this.output.textContent = `no derivative: ${error.message}`;
    } finally {
      own.textContent = name;
      other.disabled = false;
      this.isBusy = false;
      this.update();
    }
  }

  /** Follow the gradient to a minimum (or maximum) within the bounds, and play the run that it ends at. */
  async improve() {
    const { about, entries, player } = this;
    const sign = about.goal === "maximize" ? -1 : 1;
    // Coordinates are shares of a slider, or logarithms where its range is wide.
    const axes = entries.map(({ first, last, logarithmic, low, high }) => {
      const range = last - first;
      const to = (value) => (logarithmic ? Math.log(value / first) : (value - first) / range);
      const from = (x) => (logarithmic ? first * Math.exp(x) : first + x * range);
      const clamped = (x) => Math.min(high ?? Infinity, Math.max(low ?? -Infinity, from(x)));
      const bounds = [low === null ? -Infinity : to(low), high === null ? Infinity : to(high)];
      return { to, clamped, bounds, scale: (value) => sign * (logarithmic ? value : range) };
    });
    const evaluate = async (x) => {
      const numbers = x.map((one, place) => axes[place].clamped(one));
      const found = await this.at(numbers);
      const gradient = found.gradient.map((slope, place) => slope * axes[place].scale(numbers[place]));
      return { value: sign * found.value, gradient, found, numbers };
    };
    this.path = [];
    await this.busy("improve", async () => {
      const start = this.numbers().map((value, place) => axes[place].to(value));
      for await (const { found, numbers } of minimized(evaluate, start, axes.map(({ bounds }) => bounds))) {
        this.path.push(found.value);
        entries.forEach(({ label, input, index }, place) => {
          player.sliders[label].value = player.simulation.values[input][index] = numbers[place];
          player.sliders[label].show();
        });
        this.show(found);
        await player.inTurn(() => player.restart());
        if (this.isStopped) return;
      }
      player.play(true);
    });
  }

  /** Evaluate along the slider of one parameter; the picture shows every value with its slope. */
  async scan() {
    const chosen = this.entries.findIndex(({ label }) => label === document.getElementById("along").value);
    const slider = this.player.sliders[this.entries[chosen].label];
    const middle = this.numbers();
    this.scanned = { chosen, points: [] };
    await this.busy("scan", async () => {
      for (let place = 0; place < SCAN_POINTS && !this.isStopped; place += 1) {
        const numbers = [...middle];
        numbers[chosen] = slider.valueAt(place / (SCAN_POINTS - 1));
        const { value, gradient } = await this.at(numbers);
        if (Number.isFinite(value)) this.scanned.points.push([numbers[chosen], value, gradient[chosen]]);
        this.draw();
      }
    });
  }

  draw() {
    const { about, path, scanned } = this;
    const curve = (id, isShown, label, draw) => {
      const canvas = document.getElementById(id);
      const holder = canvas.parentElement;
      holder.hidden = !isShown;
      canvas.setAttribute("aria-label", `${about.label} by ${label}`);
      if (isShown) paint(canvas, holder.clientWidth, 190, (context) => draw(context, holder.clientWidth));
    };
    const rectangle = (width) => ({ left: 76, top: 8, width: width - 96, height: 132 });
    curve("loss", path.length > 1, "iteration", (context, width) =>
      drawLine(context, rectangle(width), path.map((_, step) => step), path, ["iteration", about.label]),
    );
    curve("scanned", Boolean(scanned?.points.length), "parameter, with slopes", (context, width) =>
      this.drawScan(context, rectangle(width)),
    );
  }

  drawScan(context, rectangle) {
    const { label, unit, logarithmic } = this.entries[this.scanned.chosen];
    const points = this.scanned.points.map(([x, y, slope]) => (logarithmic ? [Math.log10(x), y, slope * x * Math.LN10] : [x, y, slope]));
    const name = logarithmic ? `log10 of ${label}` : unit ? `${label} (${unit})` : label;
    const plot = drawLine(context, rectangle, points.map(([x]) => x), points.map(([, y]) => y), [name, this.about.label]);
    context.beginPath();
    for (const [x, y, slope] of points) {
      // A tangent of 26 pixels about each point.
      const [a, b] = [plot.width / (plot.xHigh - plot.xLow), (-slope * plot.height) / (plot.yHigh - plot.yLow)];
      const size = 13 / Math.hypot(a, b);
      context.moveTo(plot.x(x) - a * size, plot.y(y) - b * size);
      context.lineTo(plot.x(x) + a * size, plot.y(y) + b * size);
    }
    context.strokeStyle = TANGENT;
    context.lineWidth = 1.8;
    context.stroke();
  }
}

// The page: starts the simulation, plays it at its pace, and draws what it shows.

const description = JSON.parse(document.getElementById("description").textContent);
const { drawing } = description;

class Player {
  constructor(simulation) {
    Object.assign(this, { simulation, isPlaying: false, speed: 1, debt: 0, last: Promise.resolve(), drawn: [] });
    this.view = new VIEWS[drawing.kind](drawing);
    this.trail = drawing.palette ? new Trail(drawing, this.view.scale) : null;
    this.history = new History(description.clock.name, description.clock.label);
    this.canvas = document.getElementById("picture");
    this.readout = makeReadout(description);
    this.sliders = makeSliders(description, (entry, value) => this.set(entry, value));
    this.chosen = document.getElementById("chosen");
    for (const { name, label } of description.diagnostics)
      if (name !== description.clock.name) this.chosen.append(new Option(label, name));
    this.chosen.value = description.main || this.chosen.options[0]?.value || "";
    document.getElementById("history-part").hidden = !this.chosen.options.length || drawing.kind === "chart";
  }

  /** Queue an asynchronous function: a program must not be called while another one runs. */
  inTurn(work) {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }

  set(entry, value) {
    this.simulation.values[entry.input][entry.index] = value;
    return this.inTurn(async () => {
      if (!entry.live) await this.restart();
      else await this.show();
    });
  }

  async restart() {
    await this.simulation.reset();
    this.debt = 0;
    this.trail?.clear();
    this.history.clear();
    await this.show();
  }

  async show() {
    this.frame = await this.simulation.look();
    const { diagnostics, status } = this.frame;
    if (this.stepsShown !== this.simulation.steps || !this.history.frames.length) {
      this.trail?.add(this.frame, this.simulation.steps);
      this.history.add(diagnostics, this.simulation.steps);
    }
    this.stepsShown = this.simulation.steps;
    this.readout(diagnostics);
    this.draw();
    const end = description.statuses[status];
    this.isStopped = Boolean(end && end.stops);
    this.say(end ? end.message : "", Boolean(end && end.failed));
    if (this.isStopped) this.play(false);
  }

  draw() {
    if (!this.frame) return;
    const width = this.canvas.parentElement.clientWidth;
    paint(this.canvas, width, this.view.height(width), (context, height) =>
      this.view.draw(context, width, height, this.frame, this.trail, this.history),
    );
    const chart = document.getElementById("history");
    if (!document.getElementById("history-part").hidden) {
      const own = chart.parentElement.clientWidth;
      paint(chart, own, 150, (context) => {
        const rectangle = { left: 76, top: 8, width: own - 96, height: 92 };
        const { label, unit } = description.diagnostics.find(({ name }) => name === this.chosen.value);
        const labels = [this.history.label, unit];
        chart.setAttribute("aria-label", label);
        drawLine(context, rectangle, this.history.times, this.history.of(this.chosen.value), labels);
      });
    }
    const { clock } = description;
    const time = this.frame.diagnostics[clock.name];
    const stamp = time === undefined ? `step ${this.simulation.steps}` : `${clock.symbol} ${shortNumber(time, 5)} ${clock.unit}`;
    document.getElementById("stamp").textContent = stamp;
    this.derivative?.update();
  }

  play(isPlaying) {
    this.isPlaying = isPlaying && !this.isStopped;
    this.before = performance.now();
    document.getElementById("play").textContent = this.isPlaying ? "Pause" : "Play";
  }

  say(message, isFailure = true) {
    const line = document.getElementById("message");
    line.classList.toggle("failure", isFailure);
    line.textContent = message;
    line.hidden = !message;
  }

  /** Take the steps that are due since the last picture, for at most 40 ms, and draw a new one. */
  async turn() {
    const now = performance.now();
    const { steps_per_second: usual } = description;
    const due = this.speed ? ((now - this.before) / 1000) * usual * this.speed : Infinity;
    this.debt = Math.min(this.debt + due, this.speed ? Math.max(0.25 * usual * this.speed, 1) : Infinity);
    this.before = now;
    if (this.debt < 1) return;
    // The run of an objective ends at its horizon; a page without one, or played beyond it, has no end.
    const left = this.horizon - this.simulation.steps;
    const taken = await this.simulation.take(Math.min(Math.floor(this.debt), left > 0 ? left : 100000), 40);
    this.debt = this.speed ? this.debt - taken : 0;
    await this.show();
    if (this.simulation.steps === this.horizon) this.play(false);
    this.drawn.push({ now: performance.now(), taken });
    while (this.drawn.length > 30) this.drawn.shift();
    const span = (this.drawn[this.drawn.length - 1].now - this.drawn[0].now) / 1000;
    const steps = this.drawn.slice(1).reduce((sum, one) => sum + one.taken, 0);
    if (span > 0)
      document.getElementById("rate").textContent =
        `${Math.round((this.drawn.length - 1) / span)} frames/s, ${shortNumber(steps / span, 3)} steps/s`;
  }

  async run() {
    for (;;) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (!this.isPlaying) continue;
      try {
        await this.inTurn(() => this.turn());
      } catch (error) {
        this.play(false);
        this.say(`The simulation cannot continue: ${error.message || error}`);
      }
    }
  }
}

/** Draw on a canvas of a size in pixels of the page, as finely as the screen is. */
function paint(canvas, width, height, draw) {
  const fine = window.devicePixelRatio || 1;
  const [across, up] = [Math.round(width * fine), Math.round(height * fine)];
  if (canvas.width !== across || canvas.height !== up) {
    canvas.width = across;
    canvas.height = up;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(fine, 0, 0, fine, 0, 0);
  context.clearRect(0, 0, width, height);
  draw(context, height);
}

/** Add the event handlers of the buttons and the pointer. */
function connect(player) {
  const on = (id, event, action) => document.getElementById(id).addEventListener(event, action);
  on("play", "click", () => player.play(!player.isPlaying));
  on("step", "click", () => {
    player.play(false);
    player.inTurn(async () => {
      if (player.isStopped) return;
      await player.simulation.take(1);
      await player.show();
    });
  });
  on("reset", "click", () => player.inTurn(() => player.restart()));
  on("defaults", "click", () => {
    for (const slider of Object.values(player.sliders)) slider.take(slider.entry.default);
  });
  on("speed", "change", (event) => {
    player.speed = Number(event.target.value);
    player.debt = 0;
  });
  on("chosen", "change", () => player.draw());
  const seed = document.getElementById("seed");
  seed.value = description.seed;
  seed.addEventListener("change", () => {
    const value = Math.floor(Number(seed.value));
    player.simulation.seed = value >= 0 && value < 2 ** 31 ? value : description.seed;
    seed.value = player.simulation.seed;
    player.inTurn(() => player.restart());
  });
  document.getElementById("seed-part").hidden = !description.draws;
  new ResizeObserver(() => player.draw()).observe(player.canvas.parentElement);
  const { orbit } = player.view;
  if (!orbit) return;
  player.canvas.classList.add("turns");
  player.canvas.title = "drag to look from another side";
  player.canvas.addEventListener("pointerdown", (event) => player.canvas.setPointerCapture(event.pointerId));
  player.canvas.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1)) return;
    orbit.turn(event.movementX, event.movementY);
    player.draw();
  });
}

async function main() {
  const began = performance.now();
  try {
    const runtime = await startRuntime();
    const player = new Player(await Simulation.load(runtime, description));
    player.horizon = description.derivative?.steps;
    connect(player);
    if (description.derivative) player.derivative = await Derivative.load(player);
    await player.inTurn(() => player.show());
    document.body.classList.add("ready");
    document.getElementById("rate").textContent = `ready after ${((performance.now() - began) / 1000).toFixed(1)} s`;
    player.run();
    // For the console: player.simulation.take(100), player.show(), player.frame.
    window.player = player;
  } catch (error) {
    const line = document.getElementById("message");
    line.classList.add("failure");
    line.textContent = `This page cannot compute here: ${error.message || error}`;
    line.hidden = false;
    console.error(error);
  }
}

main();

})();
