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
