// The player: shows a frame, plays, and answers the buttons, the keyboard and the pointer.

const description = JSON.parse(document.getElementById("description").textContent);
const { drawing } = description;
const byId = (id) => document.getElementById(id);
Object.assign(SCENES, { field: FieldScene, volume: VolumeScene });
// Seconds for which the end is shown before it begins again.
const HOLD = 1;

class Player {
  constructor(frames) {
    Object.assign(this, { frames, count: description.stamps.length, index: 0, speed: 1, due: 0, isPlaying: false });
    this.stage = new Stage(byId("picture"), boxOfScene(drawing));
    this.stage.changed = () => this.draw();
    this.scene = new SCENES[drawing.kind](this.stage, drawing);
    this.isPlane = drawing.kind === "field" || drawing.kind === "disks";
    this.turns(!this.isPlane);
    this.paths = drawing.palette ? Array.from({ length: this.count }, (_, k) => pathOf(frames.at(k), drawing, this.scene.scale)) : [];
    byId("scrub").max = this.count - 1;
  }

  /** Let one finger or the left button turn the camera, or move it along a plane that is seen from in front. */
  turns(isTurning) {
    const { controls } = this.stage;
    controls.mouseButtons.LEFT = isTurning ? THREE.MOUSE.ROTATE : THREE.MOUSE.PAN;
    controls.mouseButtons.RIGHT = isTurning ? THREE.MOUSE.PAN : THREE.MOUSE.ROTATE;
    controls.touches.ONE = isTurning ? THREE.TOUCH.ROTATE : THREE.TOUCH.PAN;
  }

  show(index) {
    this.index = Math.min(Math.max(Math.round(index), 0), this.count - 1);
    const path = this.paths.slice(0, this.index + 1).map((each, k) => ({ ...each, age: (this.index - k) / this.count }));
    this.scene.update(this.frames.at(this.index), path);
    byId("scrub").value = this.index;
    byId("scrub").setAttribute("aria-valuetext", description.stamps[this.index]);
    byId("stamp").textContent = description.stamps[this.index];
    this.draw();
  }

  /** Ask for a picture before the screen is refreshed next. */
  draw() {
    this.isStale = true;
  }

  paint() {
    this.isStale = false;
    this.scene.prepare?.();
    this.stage.render();
    const { width, height } = this.stage;
    paint(byId("overlay"), width, height, (context) => this.annotate(context, width, height));
  }

  annotate(context, width, height) {
    context.font = FONT;
    this.scene.annotate?.(context);
    drawLegend(context, this.scene.scale, drawing.label, width, height);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = byId("view");
    if (!width || !height) return;
    const isNarrow = width < 600;
    const edge = drawing.kind === "field" ? [18, isNarrow ? 104 : 118, 62, isNarrow ? 58 : 78] : [14, this.scene.scale ? 106 : 14, 14, 14];
    this.stage.resize(width, height, edge);
    this.draw();
  }

  recolor() {
    const chosen = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    this.stage.theme = THEMES[chosen];
    ({ ink: INK, muted: MUTED, faint: FAINT } = this.stage.theme);
    this.scene.recolor?.();
    this.show(this.index);
  }

  play(isPlaying) {
    this.isPlaying = isPlaying && this.count > 1;
    if (this.isPlaying && this.index === this.count - 1) this.show(0);
    Object.assign(this, { before: performance.now(), due: 0 });
    byId("play").textContent = this.isPlaying ? "Pause" : "Play";
  }

  step(by) {
    this.play(false);
    this.show(this.index + by);
  }

  /** Take as many frames as time has passed for; begin again after the end. */
  advance(now) {
    const rate = description.frames_per_second * this.speed;
    this.due += ((now - this.before) / 1000) * rate;
    this.before = now;
    if (this.index === this.count - 1 && this.due < HOLD * rate) return;
    const whole = Math.floor(this.due);
    if (!whole) return;
    this.due = this.index === this.count - 1 ? 0 : this.due - whole;
    this.show(this.index === this.count - 1 ? 0 : this.index + whole);
  }

  run() {
    const turn = (now) => {
      if (this.isPlaying) this.advance(now);
      if (this.isStale) this.paint();
      requestAnimationFrame(turn);
    };
    requestAnimationFrame(turn);
  }

  /** Return the picture with its title, color bar and time as a canvas. */
  picture() {
    this.paint();
    const [from, over] = [byId("picture"), byId("overlay")];
    const page = Object.assign(document.createElement("canvas"), { width: from.width, height: from.height });
    const context = page.getContext("2d");
    context.fillStyle = this.stage.theme.paper;
    context.fillRect(0, 0, page.width, page.height);
    context.drawImage(from, 0, 0);
    context.drawImage(over, 0, 0, page.width, page.height);
    const fine = page.width / this.stage.width;
    context.scale(fine, fine);
    context.font = FONT;
    context.fillStyle = INK;
    context.textBaseline = "top";
    context.fillText(`${description.title.slice(0, 80)}   ${description.stamps[this.index]}`, 14, 10);
    return page;
  }

  save() {
    this.picture().toBlob((blob) => {
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "picture.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}

function connect(player) {
  const on = (id, event, action) => byId(id).addEventListener(event, action);
  const reset = () => { player.stage.fit(); player.draw(); };
  on("play", "click", () => player.play(!player.isPlaying));
  on("back", "click", () => player.step(-1));
  on("next", "click", () => player.step(1));
  on("scrub", "input", () => { player.play(false); player.show(Number(byId("scrub").value)); });
  on("speed", "change", () => { player.speed = Number(byId("speed").value); });
  on("reset", "click", reset);
  on("save", "click", () => player.save());
  on("theme", "click", () => {
    document.documentElement.dataset.theme = player.stage.theme === THEMES.dark ? "light" : "dark";
    player.recolor();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => player.recolor());
  const { scene } = player;
  byId("volume-part").hidden = drawing.kind !== "volume";
  byId("relief-part").hidden = drawing.kind !== "field";
  const cut = () => { scene.cut(Number(byId("axis").value), Number(byId("slice").value) / 100); player.draw(); };
  const raise = () => { scene.raise(Number(byId("level").value) / 100); player.draw(); };
  const rise = () => {
    const share = Number(byId("relief").value) / 100;
    if (!scene.relief && share) player.stage.turn(-24, 24);
    if (!share) player.stage.fit();
    player.turns(share > 0);
    scene.rise(share);
    player.draw();
  };
  on("axis", "change", cut);
  on("slice", "input", cut);
  on("level", "input", raise);
  on("relief", "input", rise);
  if (drawing.kind === "volume") { cut(); raise(); }
  const angles = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, 8], ArrowDown: [0, -8] };
  const keys = {
    " ": () => player.play(!player.isPlaying), ArrowLeft: () => player.step(-1), ArrowRight: () => player.step(1),
    Home: () => player.step(-player.count), End: () => player.step(player.count), r: reset, s: () => player.save(),
    "+": () => player.stage.turn(0, 0, 0.9), "-": () => player.stage.turn(0, 0, 1 / 0.9),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|BUTTON/.test(event.target.tagName)) return;
    const action = event.shiftKey && angles[event.key] ? () => player.stage.turn(...angles[event.key]) : keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    player.draw();
  });
  new ResizeObserver(() => player.resize()).observe(byId("view"));
}

async function main() {
  try {
    const bytes = await bytesOf("frames");
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const frames = new Frames(description.arrays, new Uint8Array(await new Response(stream).arrayBuffer()));
    await startThree();
    const player = new Player(frames);
    player.resize();
    connect(player);
    player.recolor();
    document.body.classList.add("ready");
    player.run();
    player.play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    // For the console: player.show(10), player.stage.turn(30, 0), player.save().
    window.player = player;
  } catch (error) {
    const poster = await bytesOf("last-frame").catch(() => new Uint8Array());
    if (poster.length) Object.assign(byId("poster"), { src: URL.createObjectURL(new Blob([poster], { type: "image/png" })), hidden: false });
    byId("message").textContent = `This browser cannot draw in space (${error.message || error}); here is the last frame, and simkit render draws a film.`;
    byId("message").hidden = false;
    document.body.classList.add("failed");
  }
}

main();
