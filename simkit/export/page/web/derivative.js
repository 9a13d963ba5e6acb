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
