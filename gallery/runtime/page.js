"use strict";
(() => {
// onnxruntime-web, started from the bytes in this page or in the script beside it that several pages share.

/** Return the bytes of a block of the page or of the shared script, which is gzip in base64. */
async function bytesOf(id) {
  const text = document.getElementById(id)?.textContent ?? window.SIMKIT_BLOCKS?.[id];
  if (!text) throw new Error("a script beside this page is missing");
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

/** Return the options of a session, with the constants that the programs of the page share. */
async function sessionOptions() {
  const externalData = [{ path: "constants", data: await bytesOf("constants") }];
  return { executionProviders: ["wasm"], logSeverityLevel: 3, externalData };
}

/** One of the simulation's programs: {input name: tensor} -> {output name: tensor}. */
class Program {
  static async load(runtime, name) {
    const [model, options] = await Promise.all([bytesOf(`model-${name}`), sessionOptions()]);
    const program = new Program();
    program.session = await runtime.InferenceSession.create(model, options);
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

/** Draw on a canvas of a size in pixels of the page, as finely as the screen is. */
function paint(canvas, width, height, draw) {
  const fine = Math.min(window.devicePixelRatio || 1, 2);
  const [across, up] = [Math.round(width * fine), Math.round(height * fine)];
  if (canvas.width !== across || canvas.height !== up) Object.assign(canvas, { width: across, height: up });
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(fine, 0, 0, fine, 0, 0);
  context.clearRect(0, 0, width, height);
  draw(context, height);
}

/** Draw the color bar of a picture at its right side, if it has a scale. */
function drawLegend(context, scale, label, width, height) {
  if (!scale) return;
  const high = Math.min(height - 40, 340);
  drawColorBar(context, scale, label, { left: width - 92, top: (height - high) / 2, width: 13, height: high });
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

// The stage: three.js from the page, a camera that orbits, a lamp with shadows, and colors of a light or a dark page.

let THREE, OrbitControls;

/** Start three.js from the blocks of the page; nothing is loaded from elsewhere. */
async function startThree() {
  const read = async (name) => new TextDecoder().decode(await bytesOf(`three-${name}`));
  const [core, module, controls] = await Promise.all(["core", "module", "OrbitControls"].map(read));
  const address = (code) => URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const coreAt = address(core);
  const moduleAt = address(module.replaceAll("./three.core.js", coreAt));
  const controlsAt = address(controls.replace("from 'three'", `from '${moduleAt}'`));
  THREE = await import(moduleAt);
  ({ OrbitControls } = await import(controlsAt));
  for (const used of [coreAt, moduleAt, controlsAt]) URL.revokeObjectURL(used);
}

const THEMES = {
  light: { paper: "#eef2f6", ink: "#1d2733", muted: "#5d6875", faint: "#d5dae0", tiles: ["#f2f5f8", "#e2e8ee"] },
  dark: { paper: "#171c23", ink: "#e6e9ee", muted: "#a3adb9", faint: "#38424e", tiles: ["#2b333d", "#232a33"] },
};
// A narrow view, as through a lens of 70 mm, and the part of the picture that is filled.
const HALF_ANGLE = 13;
const FILLED = 0.93;

/** Return the box of a scene and the direction from which it is seen first; a plane is seen along y. */
function boxOfScene({ kind, window: ends, low, high, azimuth, elevation }) {
  if (kind === "field") return [[ends[0], 0, ends[2]], [ends[1], 0, ends[3]], -90, 0];
  if (kind === "disks") return [[low[0], 0, low[1]], [high[0], 0, high[1]], -90, 0];
  return [low, high, azimuth ?? -58, elevation ?? 24];
}

/** Return the corners of a box. */
function cornersOf(low, high) {
  return Array.from({ length: 8 }, (_, k) => [0, 1, 2].map((axis) => ((k >> axis) & 1 ? high[axis] : low[axis])));
}

class Stage {
  /** Draw on a canvas a world whose box becomes one of unit diagonal around the origin, z up; a surface turns it. */
  constructor(canvas, [low, high, azimuth, elevation], surface = canvas) {
    Object.assign(this, { canvas, azimuth, elevation, margins: [0, 0, 0, 0], theme: THEMES.light });
    this.size = Math.hypot(...high.map((end, axis) => end - low[axis])) || 1;
    this.middle = high.map((end, axis) => (end + low[axis]) / 2);
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.scene = new THREE.Scene();
    this.world = new THREE.Group();
    this.world.scale.setScalar(1 / this.size);
    this.world.position.set(...this.middle.map((place) => -place / this.size));
    this.scene.add(this.world);
    this.corners = cornersOf(low, high).map((corner) => new THREE.Vector3(...corner).applyMatrix4(this.matrix()));
    this.camera = new THREE.PerspectiveCamera(2 * HALF_ANGLE, 1, 0.01, 60);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, surface);
    Object.assign(this.controls, { enableDamping: false, zoomToCursor: true, minDistance: 0.05, maxDistance: 25 });
    this.controls.addEventListener("start", () => { this.isTurned = true; });
    // The first direction is that of a picture which is drawn anyway.
    this.controls.addEventListener("change", () => this.isTurned && this.changed?.());
    this.light();
  }

  matrix() {
    this.world.updateMatrix();
    return this.world.matrix;
  }

  /** Light the world from the upper left of the first camera, with a faint light against it. */
  light() {
    const lamp = new THREE.DirectionalLight("#fff8ee", 2.5);
    const [aside, height] = [((this.azimuth - 40) * Math.PI) / 180, (54 * Math.PI) / 180];
    const along = [Math.cos(aside) * Math.cos(height), Math.sin(aside) * Math.cos(height), Math.sin(height)];
    lamp.position.set(...along.map((part) => 2 * part));
    lamp.castShadow = true;
    lamp.shadow.mapSize.set(2048, 2048);
    Object.assign(lamp.shadow.camera, { left: -0.8, right: 0.8, bottom: -0.8, top: 0.8, near: 0.5, far: 4 });
    Object.assign(lamp.shadow, { radius: 5, normalBias: 0.002, bias: -0.0006 });
    const sky = new THREE.HemisphereLight("#f4f8ff", "#c4beb6", 1.55);
    sky.position.set(0, 0, 1);
    const back = new THREE.DirectionalLight("#dfe9ff", 0.45);
    back.position.set(-along[0], -along[1], 0.5);
    this.scene.add(lamp, sky, back);
  }

  /** Set the size in pixels of the page, and the pixels that the world leaves free: above, right, below and left. */
  resize(width, height, margins) {
    Object.assign(this, { width, height, margins });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.setSize(width, height, false);
    const [above, right, below, left] = margins;
    this.camera.aspect = width / height;
    this.camera.setViewOffset(width, height, (right - left) / 2, (below - above) / 2, width, height);
    this.camera.updateProjectionMatrix();
    if (!this.isTurned) this.fit();
  }

  /** Look at the world from the first direction, near enough to fill the picture. */
  fit() {
    const [a, e] = [this.azimuth, this.elevation].map((angle) => (angle * Math.PI) / 180);
    const back = new THREE.Vector3(Math.cos(a) * Math.cos(e), Math.sin(a) * Math.cos(e), Math.sin(e));
    const right = new THREE.Vector3(-Math.sin(a), Math.cos(a), 0);
    const up = new THREE.Vector3().crossVectors(back, right);
    const [above, beside, below, left] = this.margins;
    const slope = Math.tan((HALF_ANGLE * Math.PI) / 180) * FILLED;
    const slopes = [slope * ((this.width - left - beside) / this.height), slope * ((this.height - above - below) / this.height)];
    const distances = this.corners.flatMap((corner) =>
      [right, up].map((axis, k) => Math.abs(corner.dot(axis)) / Math.max(slopes[k], 0.01) + corner.dot(back)),
    );
    this.controls.target.set(0, 0, 0);
    this.camera.position.copy(back).multiplyScalar(Math.min(Math.max(...distances, 0.1), 24));
    this.controls.update();
    this.isTurned = false;
  }

  /** Return where a point of the world is in the picture, in pixels. */
  project(point) {
    const seen = new THREE.Vector3(...point).applyMatrix4(this.matrix()).project(this.camera);
    return { x: ((seen.x + 1) / 2) * this.width, y: ((1 - seen.y) / 2) * this.height };
  }

  /** Turn the camera around the middle by angles in degrees, or move it nearer by a factor. */
  turn(across, up, nearer = 1) {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const place = new THREE.Spherical().setFromVector3(new THREE.Vector3(offset.x, offset.z, -offset.y));
    place.theta += (across * Math.PI) / 180;
    place.phi = Math.min(Math.max(place.phi - (up * Math.PI) / 180, 0.02), Math.PI - 0.02);
    place.radius = Math.min(Math.max(place.radius * nearer, 0.05), 25);
    const turned = new THREE.Vector3().setFromSpherical(place);
    this.camera.position.set(turned.x, -turned.z, turned.y).add(this.controls.target);
    this.isTurned = true;
    this.controls.update();
  }

  render() {
    this.renderer.render(this.scene, this.camera);
  }
}

/** Round rods between pairs of points, as instances of one cylinder. */
class Rods {
  constructor(parent, material) {
    Object.assign(this, { parent, material, capacity: 0 });
    this.geometry = new THREE.CylinderGeometry(1, 1, 1, 10, 1).rotateX(Math.PI / 2);
  }

  /** Show rods [from, to, radius, color as three parts up to 255]. */
  show(rods) {
    if (rods.length > this.capacity) {
      this.mesh?.removeFromParent();
      this.capacity = Math.max(16, 2 * rods.length);
      this.mesh = new THREE.InstancedMesh(this.geometry, this.material, this.capacity);
      this.mesh.frustumCulled = false;
      this.mesh.castShadow = !this.material.isMeshBasicMaterial;
      this.parent.add(this.mesh);
    }
    if (!this.mesh) return;
    const [matrix, turn, from, along, unit] = [new THREE.Matrix4(), new THREE.Quaternion(), new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3(0, 0, 1)];
    rods.forEach(([a, b, radius, color], k) => {
      along.set(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
      const length = along.length();
      turn.setFromUnitVectors(unit, length ? along.divideScalar(length) : unit);
      from.set((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2);
      this.mesh.setMatrixAt(k, matrix.compose(from, turn, along.set(radius, radius, length || 1e-9)));
      this.mesh.setColorAt(k, colorOf(color));
    });
    this.mesh.count = rods.length;
    this.mesh.instanceMatrix.needsUpdate = true;
    if (this.mesh.instanceColor) this.mesh.instanceColor.needsUpdate = true;
  }
}

/** Return three's color of parts up to 255 on a screen. */
function colorOf([red, green, blue]) {
  return new THREE.Color().setRGB(red / 255, green / 255, blue / 255, THREE.SRGBColorSpace);
}

/** Return the edges of a cell with a corner and vectors as rows, as pairs of points in space. */
function edgesOf(low, vectors) {
  const count = vectors.length;
  const corner = (number) =>
    low.map((place, axis) => vectors.reduce((sum, vector, k) => sum + ((number >> k) & 1) * vector[axis], place));
  const found = [];
  for (let k = 0; k < 2 ** count; k += 1)
    for (let bit = 0; bit < count; bit += 1) if (!((k >> bit) & 1)) found.push([corner(k), corner(k | (1 << bit))]);
  return found;
}

// Rigid bodies of true shape with marks that show how they turn, the planes below them, rods, targets and paths.

// Marks on a body at a point of its surface: pale where positive, dark where negative.
const MARKS = {
  ball: `vec3 n = normalize(vMark); float stripe = soft(0.13 - abs(n.z)), point = soft(abs(n.x - n.y) * 0.70711 - 0.98);
    return (1.0 - point) * 0.5 * stripe - 0.75 * point;`,
  capsule: `vec3 n = normalize(vec3(vMark.xy, vMark.z - clamp(vMark.z, -half_z, half_z)));
    return n.x > 0.0 ? 0.5 * soft(0.13 - abs(n.y)) : 0.0;`,
  disk: "return 0.45 * soft(min(abs(vMark.x), abs(vMark.y)) * sign(vMark.x * vMark.y));",
  box: "return vMark.z > half_z * 0.999 ? two_faced * 0.5 : 0.0;",
  plain: "return 0.0;",
};

/** Return a material whose color is changed by marks of a kind. */
function markedMaterial(kind, half, twoFaced) {
  const material = new THREE.MeshPhysicalMaterial({ roughness: 0.42, clearcoat: 0.25, clearcoatRoughness: 0.35 });
  material.customProgramCacheKey = () => kind;
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, { half_z: { value: half }, two_faced: { value: twoFaced ? 1 : 0 } });
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nvarying vec3 vMark;")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\nvMark = position;");
    shader.fragmentShader = shader.fragmentShader
      .replace(
        "#include <common>",
        `#include <common>
        varying vec3 vMark; uniform float half_z; uniform float two_faced;
        float soft(float inside) { return clamp(0.5 + inside / max(fwidth(inside), 1e-6), 0.0, 1.0); }
        float marked() { ${MARKS[kind]} }`,
      )
      .replace(
        "#include <color_fragment>",
        `#include <color_fragment>
        float pale = marked();
        diffuseColor.rgb = pale > 0.0 ? mix(diffuseColor.rgb, vec3(1.0), pale) : diffuseColor.rgb * (1.0 + pale);`,
      );
  };
  return material;
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
    const material = new THREE.MeshStandardMaterial({ transparent: true, roughness: 0.95 });
    this.tiles ??= stage.theme.tiles.map((color) => ({ value: new THREE.Color(color) }));
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, {
        first_tile: this.tiles[0],
        second_tile: this.tiles[1],
        origin: { value: new THREE.Vector2(u, v) },
        tile: { value: drawing.tile },
        reach: { value: reach },
      });
      shader.vertexShader = shader.vertexShader
        .replace("#include <common>", "#include <common>\nvarying vec2 vPlane;")
        .replace("#include <begin_vertex>", "#include <begin_vertex>\nvPlane = position.xy;");
      shader.fragmentShader = shader.fragmentShader
        .replace(
          "#include <common>",
          `#include <common>
          varying vec2 vPlane; uniform vec3 first_tile, second_tile; uniform vec2 origin; uniform float tile, reach;`,
        )
        .replace(
          "#include <color_fragment>",
          `vec2 square = (vPlane + origin) / tile, w = max(fwidth(square), 1e-4);
          // The mean of the squares over a pixel: no flicker far away.
          vec2 run = 2.0 * (abs(fract((square - 0.5 * w) / 2.0) - 0.5) - abs(fract((square + 0.5 * w) / 2.0) - 0.5)) / w;
          diffuseColor.rgb = mix(first_tile, second_tile, 0.5 - 0.5 * run.x * run.y);
          diffuseColor.a = pow(clamp(1.0 - length(vPlane) / reach, 0.0, 1.0), 0.75) * smoothstep(0.0, 0.3, 1.0 - length(vPlane) / reach);`,
        );
    };
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

// View in space of bodies and particles, by the scenes of players, drawn into the picture of the page; paths of bodies.

class SpaceView {
  constructor(drawing) {
    Object.assign(this, { drawing, isPlane: drawing.kind === "disks" });
    const picture = document.getElementById("picture");
    this.stage = new Stage(document.createElement("canvas"), boxOfScene(drawing), picture);
    this.scene = new SCENES[drawing.kind](this.stage, drawing);
    Object.assign(this.scene, { wraps: true });
    this.scale = this.scene.scale;
    // The wheel, and a finger on a plane, move the page.
    Object.assign(this.stage.controls, { enableZoom: false, enabled: !this.isPlane });
    if (this.isPlane) picture.style.touchAction = "";
    else Object.assign(picture, { className: "turns", title: "drag, or use the arrow keys, to look from another side", tabIndex: 0 });
  }

  height(width) {
    const { low, high } = this.drawing;
    const shape = (high[1] - low[1]) / (high[0] - low[0]);
    return this.isPlane ? Math.max(Math.min((width - 134) * shape, 600) + 32, 190) : Math.min(Math.max(0.6 * width, 260), 560);
  }

  draw(context, width, height, frame, trail) {
    const { stage, scene } = this;
    const size = [width, height, window.devicePixelRatio].join();
    if (this.size !== size) stage.resize(width, height, [16, this.scale ? 106 : 14, 16, 14]);
    if (this.frame !== frame) scene.update(frame, trail?.path());
    Object.assign(this, { size, frame });
    scene.prepare?.();
    stage.render();
    context.drawImage(stage.canvas, 0, 0, width, height);
    drawLegend(context, this.scale, this.drawing.label, width, height);
  }
}

/** The paths of bodies or traced points since the start. */
class Trail {
  constructor(drawing, scale) {
    Object.assign(this, { drawing, scale, frames: [] });
  }

  clear() {
    this.frames = [];
  }

  add(frame, steps) {
    this.frames.push({ ...pathOf(frame, this.drawing, this.scale), steps });
    // Every other one of a long path is enough, and the last.
    if (this.frames.length > 600) this.frames = this.frames.filter((_, place) => place % 2 === 0);
  }

  /** Return the path with the age of each point in runs. */
  path() {
    const last = this.frames.at(-1)?.steps;
    return this.frames.map((each) => ({ ...each, age: (last - each.steps) / description.steps }));
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
    const path = trail.path();
    for (let k = 1; k < path.length; k += 1)
      path[k].line.forEach((body, number) => {
        const before = path[k - 1].line[number];
        if (!body.isPresent || !before?.isPresent) return;
        const [a, b] = [place(before.center), place(body.center)];
        context.strokeStyle = css(body.color, 1 - strengthOf(path[k]));
        context.beginPath();
        context.moveTo(a.x, a.y);
        context.lineTo(b.x, b.y);
        context.stroke();
      });
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
    for (let angle = 0; angle < 6.4; angle += Math.PI / 14) {
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

const VIEWS = { field: FieldView, side: SideView, chart: ChartView };

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
  self.onmessage = async ({ data: { machine, model, options, feeds } }) => {
    try {
      if (model) {
        Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: machine });
        session = await runtime.InferenceSession.create(model, options);
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
    const ids = ["runtime-script", "runtime-wasm", `model-${name}`];
    const [code, machine, model, options] = await Promise.all([...ids.map(bytesOf), sessionOptions()]);
    // A thread of a page from a file has an origin of its own: it may import nothing, and be no module. Its source
    // holds the runtime as a plain script, whose exports become an argument.
    const module = new TextDecoder().decode(code).replaceAll("import.meta.url", "self.location.href");
    const exported = /export *{([^}]*)};?/;
    const names = module.match(exported)[1].replace(/(\w+) as (\w+)/g, "$2: $1");
    const source = `${module.replace(exported, "")}\n(${serve})({ ${names} });`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const program = Object.assign(new ThreadedProgram(), { worker: new Worker(address), last: Promise.resolve() });
    await program.ask({ machine, model, options });
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
  if (!view.stage) return null;
  const { x, y } = view.stage.project(point);
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
        if (share > SHORTEST) found.push({ name, from: of(before.place), way: way.map((part) => part / (size || 1)), length: ARROW * share });
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
    this.view = new (VIEWS[drawing.kind] ?? SpaceView)(drawing);
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
  const { stage } = player.view;
  if (!stage) return;
  stage.changed = () => player.draw();
  const angles = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, 8], ArrowDown: [0, -8] };
  on("picture", "keydown", (event) => {
    if (!angles[event.key]) return;
    event.preventDefault();
    stage.turn(...angles[event.key]);
  });
}

async function main() {
  const began = performance.now();
  try {
    const runtime = await startRuntime();
    if (drawing.kind in SCENES) await startThree();
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
