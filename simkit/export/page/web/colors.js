// Color scales and the colors of the design.

let INK = "#1d2733";
let MUTED = "#5d6875";
let FAINT = "#d5dae0";
const WALL = "#8793a1";
const SIDES = { wall: WALL, hot: "#b40426", cold: "#3b4cc0" };
const ACCENT = "#d1495b";

/** 256 colors over [low, high] and one for what is not a number, or one color for each whole number. */
class ColorScale {
  constructor({ low, high, levels, words, table }) {
    Object.assign(this, { low, high, levels, words });
    const bytes = Uint8Array.from(atob(table), (letter) => letter.charCodeAt(0));
    this.packed = new Uint32Array(bytes.buffer);
    this.colors = Array.from({ length: 257 }, (_, place) => [...bytes.subarray(4 * place, 4 * place + 3)]);
  }

  /** Return the place of a value in the table; that of what is not finite is 256. */
  place(value) {
    if (!Number.isFinite(value)) return 256;
    const rounded = this.levels ? Math.round(value) : value;
    const place = ((rounded - this.low) / (this.high - this.low)) * 256;
    return Math.min(255, Math.max(0, Math.floor(place)));
  }

  /** Return the color [red, green, blue] of a value. */
  color(value) {
    return this.colors[this.place(value)];
  }
}

/** Return a color as CSS, mixed with white by a share and darkened by a factor. */
function css([red, green, blue], pale = 0, dark = 1) {
  const mixed = [red, green, blue].map((part) => Math.round((part + pale * (255 - part)) * dark));
  return `rgb(${mixed.map((part) => Math.min(255, Math.max(0, part))).join(",")})`;
}

/** Return [red, green, blue] of "#rrggbb". */
function rgb(hexadecimal) {
  return [1, 3, 5].map((place) => parseInt(hexadecimal.slice(place, place + 2), 16));
}
