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
