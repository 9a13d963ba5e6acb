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
