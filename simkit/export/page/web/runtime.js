// onnxruntime-web, started from the bytes in this page or in the script beside it that several pages share.

/** Return the bytes of a block of the page or of the shared script, which is gzip in base64. */
async function bytesOf(id) {
  const text = document.getElementById(id)?.textContent ?? window.SIMKIT_BLOCKS?.[id];
  if (!text) throw new Error("a script beside this page is missing");
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return onnxruntime-web on one thread: browsers do not allow pages from a file to share memory between threads. */
async function startRuntime() {
  const [code, machine] = await Promise.all([bytesOf("runtime-script"), bytesOf("runtime-wasm")]);
  const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const runtime = await import(address);
  URL.revokeObjectURL(address);
  runtime.env.wasm.numThreads = 1;
  runtime.env.wasm.wasmBinary = machine;
  runtime.env.logLevel = "error";
  return runtime;
}

/** Return the options of a session, with the constants that the programs of the page share. */
async function sessionOptions() {
  const externalData = [{ path: "constants", data: await bytesOf("constants") }];
  return { executionProviders: ["wasm"], logSeverityLevel: 3, externalData };
}

/** One of the simulation's programs: {input name: tensor} -> {output name: tensor}. */
class Program {
  static async load(runtime, name) {
    const [model, options] = await Promise.all([bytesOf(`model-${name}`), sessionOptions()]);
    const program = new Program();
    program.session = await runtime.InferenceSession.create(model, options);
    return program;
  }

  run(tensors) {
    const feeds = {};
    for (const name of this.session.inputNames) feeds[name] = tensors[name];
    return this.session.run(feeds);
  }
}
