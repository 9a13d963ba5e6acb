// Frames of the run: bytes of the page are decoded once, and a frame's numbers when it is shown.

class Frames {
  /** Decode the arrays, described as {name, bits, low, step, frames, shape, differences}, from their bytes. */
  constructor(descriptions, bytes) {
    this.arrays = {};
    let begin = 0;
    for (const given of descriptions) {
      const size = given.shape.reduce((product, length) => product * length, 1);
      const count = given.frames * size;
      const Kind = given.bits === 8 ? Uint8Array : Uint16Array;
      const codes = new Kind(count);
      const isWide = given.bits > 8;
      for (let k = 0; k < count; k += 1) codes[k] = isWide ? (bytes[begin + k] << 8) | bytes[begin + count + k] : bytes[begin + k];
      begin += count * (isWide ? 2 : 1);
      const [alongFrames, within] = given.differences;
      if (alongFrames || within) for (let k = 0; k < count; k += 1) codes[k] = (codes[k] >>> 1) ^ -(codes[k] & 1);
      // Sums wrap around as the differences did.
      for (let turn = 0; turn < alongFrames; turn += 1) for (let k = size; k < count; k += 1) codes[k] += codes[k - size];
      for (let turn = 0; turn < within; turn += 1) for (let k = 1; k < count; k += 1) if (k % size) codes[k] += codes[k - 1];
      this.arrays[given.name] = { ...given, size, codes };
    }
  }

  /** Return the arrays of a frame as {shape, codes, low, data}, numbers being made where they are asked for. */
  at(index) {
    const arrays = {};
    for (const [name, { size, codes, frames, shape, low, step, bits }] of Object.entries(this.arrays)) {
      const place = frames > 1 ? index : 0;
      const own = codes.subarray(place * size, (place + 1) * size);
      const missing = 2 ** bits - 1;
      arrays[name] = {
        shape,
        low,
        codes: own,
        get data() {
          const data = Float32Array.from(own, (code) => (code === missing ? NaN : low + step * code));
          Object.defineProperty(this, "data", { value: data });
          return data;
        },
      };
    }
    return { arrays };
  }
}
