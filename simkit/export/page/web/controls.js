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
