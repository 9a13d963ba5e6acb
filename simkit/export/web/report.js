"use strict";

// Charts: a line for each diagnostic, its value at the pointer, a range chosen by dragging, all of it by a double click.
const probe = document.body.appendChild(document.createElement("i"));
const color = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
const short = (value) => (Number.isFinite(value) ? Number(value.toPrecision(5)).toString() : "undefined");

class Chart {
  constructor(figure, data, clock) {
    Object.assign(this, { figure, clock, name: data.name, x: clock.values, y: data.values });
    this.canvas = figure.querySelector("canvas");
    this.reading = figure.querySelector("output");
    this.range = [0, this.x.length - 1];
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.at = null; this.draw(); });
    this.canvas.addEventListener("pointerdown", (event) => { this.from = this.index(event); });
    this.canvas.addEventListener("pointerup", (event) => this.zoom(this.index(event)));
    this.canvas.addEventListener("dblclick", () => { this.range = [0, this.x.length - 1]; this.draw(); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** Return the index of the stored value nearest to the pointer. */
  index(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - left - 60) / (width - 72), 0), 1);
    const [first, last] = this.range;
    const wanted = this.x[first] + share * (this.x[last] - this.x[first]);
    let best = first;
    for (let place = first; place <= last; place += 1) {
      if (Math.abs(this.x[place] - wanted) < Math.abs(this.x[best] - wanted)) best = place;
    }
    return best;
  }

  point(event) {
    this.at = this.index(event);
    this.draw();
  }

  zoom(to) {
    const [low, high] = [this.from, to].sort((a, b) => a - b);
    if (this.from !== undefined && high - low > 1) this.range = [low, high];
    this.from = undefined;
    this.draw();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const [first, last] = this.range;
    this.at = Math.min(Math.max((this.at ?? first) + step, first), last);
    event.preventDefault();
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = devicePixelRatio;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "11px system-ui, sans-serif";
    const [first, last] = this.range;
    let values = this.y.slice(first, last + 1).filter((value) => value !== null);
    if (!values.length) values = [0, 1];
    // Positive values over more than three decades have a logarithmic axis.
    const least = Math.min(...values);
    const scaled = least > 0 && Math.max(...values) > 1e3 * least ? Math.log10 : (value) => value;
    let [low, high] = [scaled(least), scaled(Math.max(...values))];
    const isConstant = high - low <= 1e-6 * Math.max(Math.abs(low), Math.abs(high));
    const spread = isConstant ? Math.abs(high) / 10 || 1 : 0.06 * (high - low);
    [low, high] = [low - spread, high + spread];
    const across = (x) => 60 + ((x - this.x[first]) / (this.x[last] - this.x[first] || 1)) * (width - 72);
    const place = (mark) => height - 24 - ((mark - low) / (high - low)) * (height - 34);
    const up = (y) => place(scaled(y));
    const marks = ticks(low, high, 4).filter((mark) => scaled !== Math.log10 || Number.isInteger(mark));
    context.strokeStyle = color("--line");
    context.fillStyle = color("--muted");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const mark of marks) {
      context.strokeRect(60, place(mark), width - 72, 0);
      context.fillText(scaled === Math.log10 ? `1e${mark}` : short(mark), 54, place(mark));
    }
    context.textAlign = "center";
    for (const mark of ticks(this.x[first], this.x[last], Math.max(width / 90, 2))) {
      context.fillText(short(mark), across(mark), height - 10);
    }
    context.strokeStyle = color("--accent");
    context.lineWidth = 1.6;
    context.beginPath();
    let drawn = false;
    for (let index = first; index <= last; index += 1) {
      const value = this.y[index];
      if (value !== null) context[drawn ? "lineTo" : "moveTo"](across(this.x[index]), up(value));
      drawn = value !== null;
    }
    context.stroke();
    const at = this.at ?? last;
    if (this.y[at] !== null) {
      context.fillStyle = color("--accent");
      context.beginPath();
      context.arc(across(this.x[at]), up(this.y[at]), 3.5, 0, 7);
      context.fill();
    }
    this.reading.textContent = `${short(this.y[at] ?? NaN)} at ${this.clock.name} ${short(this.x[at])}`;
  }
}

const embedded = document.querySelector("#data");
if (embedded) {
  const { clock, series } = JSON.parse(embedded.textContent);
  document.querySelectorAll("figure.chart").forEach((figure, place) => new Chart(figure, series[place], clock));
}

// Tables are sorted by a click on the head of a column: numbers by size, others as text.
for (const table of document.querySelectorAll("table.sorted")) {
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falls = head.ariaSort === "ascending";
      table.querySelectorAll("th").forEach((other) => { other.ariaSort = null; });
      head.ariaSort = falls ? "descending" : "ascending";
      const key = (row) => row.children[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [left, right] = [Number(key(a)), Number(key(b))];
        const order = Number.isNaN(left - right) ? key(a).localeCompare(key(b)) : left - right;
        return falls ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
