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
