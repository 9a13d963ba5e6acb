// The simulation: parameters, state and number of steps; each change of the state runs a program of the page.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

/** Return the elements of a tensor as numbers; 64-bit integers, which JavaScript holds as BigInt, are converted. */
function numbersOf(tensor) {
  return typeof tensor.data[0] === "bigint" ? Array.from(tensor.data, Number) : tensor.data;
}

class Simulation {
  /** Return the simulation that the page describes, at its start. */
  static async load(runtime, description) {
    const simulation = new Simulation();
    simulation.runtime = runtime;
    simulation.description = description;
    simulation.seed = description.seed;
    simulation.values = {};
    for (const input of description.inputs) simulation.values[input.name] = [...input.default];
    for (const name of ["start", "advance", "show"]) simulation[name] = await Program.load(runtime, name);
    await simulation.reset();
    return simulation;
  }

  tensor(type, numbers, shape) {
    return new this.runtime.Tensor(type, ARRAYS[type].from(numbers), shape);
  }

  parameters(values = this.values) {
    const inputs = this.description.inputs;
    return Object.fromEntries(inputs.map((i) => [i.name, this.tensor(i.dtype, values[i.name], i.shape)]));
  }

  /** Return the words of the random key of the seed. */
  key() {
    const words = this.description.keyWords;
    return Uint32Array.from({ length: words }, (_, place) => (place === words - 1 ? this.seed >>> 0 : 0));
  }

  /** Return the first state with other parameters. */
  begin(values) {
    const key = this.tensor("uint32", this.key(), [this.description.keyWords]);
    return this.start.run({ ...this.parameters(values), key });
  }

  /** Restart with the present parameters and seed. */
  async reset() {
    this.state = await this.begin();
    this.steps = 0;
  }

  /** Take `count` steps, or fewer if the time in milliseconds is over; return the number of steps taken. */
  async take(count, milliseconds = Infinity) {
    const began = performance.now();
    const parameters = this.parameters();
    let taken = 0;
    while (taken < count && (taken === 0 || performance.now() - began < milliseconds)) {
      const next = await this.advance.run({ ...parameters, ...this.state });
      const state = {};
      for (const name in next) state[name.replace("next.", "state.")] = next[name];
      this.state = state;
      taken += 1;
    }
    this.steps += taken;
    return taken;
  }

  /** Return the frame of a state: arrays and their shapes by name, diagnostics by name, and the status. */
  async look(state = this.state, values = this.values) {
    const found = await this.show.run({ ...this.parameters(values), ...state });
    const arrays = {};
    const diagnostics = {};
    for (const [name, tensor] of Object.entries(found)) {
      const [kind, ...rest] = name.split(".");
      if (kind === "frame") arrays[rest.join(".")] = { shape: tensor.dims, data: numbersOf(tensor) };
      if (kind === "diagnostic" && tensor.data.length === 1) diagnostics[rest.join(".")] = Number(tensor.data[0]);
    }
    return { arrays, diagnostics, status: Number(found.status.data[0]) };
  }
}
