// The derivative program, in a thread of its own, so that the page stays alive while it runs.

/** What the thread runs: it loads a program once, and answers each request with the numbers of its outputs. */
function serve(runtime) {
  let session = null;
  self.onmessage = async ({ data: { machine, model, options, feeds } }) => {
    try {
      if (model) {
        Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: machine });
        session = await runtime.InferenceSession.create(model, options);
        return self.postMessage({});
      }
      const tensors = session.inputNames.map((name) => [name, new runtime.Tensor(...feeds[name])]);
      const found = await session.run(Object.fromEntries(tensors));
      const numbers = Object.entries(found).map(([name, tensor]) => [name, Array.from(tensor.data, Number)]);
      return self.postMessage({ numbers: Object.fromEntries(numbers) });
    } catch (error) {
      return self.postMessage({ failure: String(error.message || error) });
    }
  };
}

/** A program in a thread: {input name: [type, numbers, shape]} -> {output name: numbers}. */
class ThreadedProgram {
  static async load(name) {
    const ids = ["runtime-script", "runtime-wasm", `model-${name}`];
    const [code, machine, model, options] = await Promise.all([...ids.map(bytesOf), sessionOptions()]);
    // A thread of a page from a file has an origin of its own: it may import nothing, and be no module. Its source
    // holds the runtime as a plain script, whose exports become an argument.
    const module = new TextDecoder().decode(code).replaceAll("import.meta.url", "self.location.href");
    const exported = /export *{([^}]*)};?/;
    const names = module.match(exported)[1].replace(/(\w+) as (\w+)/g, "$2: $1");
    const source = `${module.replace(exported, "")}\n(${serve})({ ${names} });`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const program = Object.assign(new ThreadedProgram(), { worker: new Worker(address), last: Promise.resolve() });
    await program.ask({ machine, model, options });
    URL.revokeObjectURL(address);
    return program;
  }

  /** Send a request to the thread after the answer to the one before. */
  ask(request) {
    const send = (resolve, reject) => {
      const { worker } = this;
      worker.onmessage = ({ data }) => (data.failure ? reject(new Error(data.failure)) : resolve(data.numbers));
      worker.onerror = ({ message }) => reject(new Error(message || "no thread can be started"));
      worker.postMessage(request);
    };
    const answer = this.last.then(() => new Promise(send));
    this.last = answer.catch(() => undefined);
    return answer;
  }
}
