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
