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
