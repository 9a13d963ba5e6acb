// The derivative program, in a thread of its own, so that the page stays alive while it runs.

/** What the thread runs: it loads a program once, and answers each request with the numbers of its outputs. */
function serve(runtime) {
  let session = null;
  self.onmessage = async ({ data: { id, load, feeds } }) => {
    try {
      if (load) {
        Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: load.machine });
        session = await runtime.InferenceSession.create(load.model, { executionProviders: ["wasm"], logSeverityLevel: 3 });
        self.postMessage({ id });
        return;
      }
      const tensors = {};
      for (const name of session.inputNames) tensors[name] = new runtime.Tensor(...feeds[name]);
      const found = await session.run(tensors);
      const numbers = Object.entries(found).map(([name, tensor]) => [name, Array.from(tensor.data, Number)]);
      self.postMessage({ id, numbers: Object.fromEntries(numbers) });
    } catch (error) {
      self.postMessage({ id, failure: String(error.message || error) });
    }
  };
}

/** A program in a thread: {input name: [type, numbers, shape]} -> {output name: numbers}. */
class ThreadedProgram {
  static async load(name) {
    const program = new ThreadedProgram();
    const [code, machine, model] = await Promise.all(["runtime-script", "runtime-wasm", `model-${name}`].map(bytesOf));
    program.waiting = new Map();
    // A thread of a page from a file has an origin of its own: it may import nothing, and be no module. Its source
    // holds the runtime as a plain script, whose exports become an argument.
    const module = new TextDecoder().decode(code).replaceAll("import.meta.url", "self.location.href");
    const names = /export *{([^}]*)};?/;
    const given = module.match(names)[1].replace(/(\w+) as (\w+)/g, "$2: $1");
    const source = `${module.replace(names, "")}\n(${serve})({ ${given} });`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    program.worker = new Worker(address);
    program.worker.onmessage = ({ data: { id, numbers, failure } }) => {
      const { resolve, reject } = program.waiting.get(id);
      program.waiting.delete(id);
      if (failure) reject(new Error(failure));
      else resolve(numbers);
    };
    program.worker.onerror = (event) => {
      for (const { reject } of program.waiting.values()) reject(new Error(event.message || "no thread can be started"));
      program.waiting.clear();
    };
    await program.ask({ load: { machine, model } });
    URL.revokeObjectURL(address);
    return program;
  }

  ask(request) {
    const id = (this.asked = (this.asked || 0) + 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...request });
    });
  }
}
