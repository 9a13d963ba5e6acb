// Minimization within bounds by projected L-BFGS (Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4).

const MEMORY = 8;
// Largest change of a coordinate, whose range is about 1, in the first and in any later iteration.
const FIRST_MOVE = 0.1;
const LARGEST_MOVE = 0.3;
const ENOUGH = 1e-4;
const MOST_TRIALS = 14;
const MOST_ITERATIONS = 100;
// Iterations that together gain less than this share of the value are the last.
const [PATIENCE, GAIN] = [5, 1e-5];

const inner = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
const largest = (a) => a.reduce((found, value) => Math.max(found, Math.abs(value)), 0);

/** Return minus the inverse Hessian of the pairs (s, y) times a gradient. */
function quasiNewton(gradient, pairs) {
  let direction = gradient.map((value) => -value);
  const shares = [];
  for (const { s, y } of pairs.toReversed()) {
    const share = inner(s, direction) / inner(s, y);
    shares.unshift(share);
    direction = direction.map((value, place) => value - share * y[place]);
  }
  const last = pairs.at(-1);
  if (last) direction = direction.map((value) => (value * inner(last.s, last.y)) / inner(last.y, last.y));
  pairs.forEach(({ s, y }, number) => {
    const share = shares[number] - inner(y, direction) / inner(s, y);
    direction = direction.map((value, place) => value + share * s[place]);
  });
  return direction;
}

/**
 * Minimize a function within bounds; yield every point {x, value, gradient} that is lower than the one before.
 *
 * `evaluate(x)` returns {value, gradient}, not finite where a run fails; `bounds` are [low, high] of each coordinate.
 */
async function* minimized(evaluate, start, bounds) {
  const within = (x) => x.map((value, place) => Math.min(bounds[place][1], Math.max(bounds[place][0], value)));
  let at = { x: within(start), ...(await evaluate(within(start))) };
  yield at;
  const values = [at.value];
  let pairs = [];
  // A gradient below this is zero: an objective such as a squared distance vanishes at its minimum with its gradient.
  const small = 1e-9 * largest(at.gradient);
  for (let iteration = 0; iteration < MOST_ITERATIONS; iteration += 1) {
    // Coordinates at a bound that the objective presses against stay there.
    const isFree = at.gradient.map((slope, place) => slope * (at.x[place] - bounds[place][slope > 0 ? 0 : 1]) !== 0);
    const slope = at.gradient.map((value, place) => (isFree[place] ? value : 0));
    if (!(largest(slope) > small)) return;
    const free = (vector) => vector.map((value, place) => (isFree[place] ? value : 0));
    const curved = pairs.map(({ s, y }) => ({ s: free(s), y: free(y) })).filter(({ s, y }) => inner(s, y) > 0);
    let direction = free(quasiNewton(slope, curved));
    if (!(inner(direction, slope) < 0)) [direction, pairs] = [slope.map((value) => -value), []];
    const move = pairs.length ? LARGEST_MOVE : FIRST_MOVE;
    let share = pairs.length ? Math.min(1, move / largest(direction)) : move / largest(direction);
    let next = null;
    for (let trial = 0; trial < MOST_TRIALS && !next; trial += 1) {
      const x = within(at.x.map((value, place) => value + share * direction[place]));
      const found = await evaluate(x);
      const expected = inner(slope, x.map((value, place) => value - at.x[place]));
      if (found.value <= at.value + ENOUGH * expected && found.gradient.every(Number.isFinite)) next = { x, ...found };
      // The minimum of the parabola through both values and the slope, not too near either end.
      const best = (-0.5 * expected) / (found.value - at.value - expected);
      share *= Number.isFinite(best) ? Math.min(0.5, Math.max(0.1, best)) : 0.1;
    }
    if (!next || !(next.value < at.value)) return;
    const s = next.x.map((value, place) => value - at.x[place]);
    const y = next.gradient.map((value, place) => value - at.gradient[place]);
    if (inner(s, y) > 1e-12 * inner(y, y)) pairs = [...pairs, { s, y }].slice(-MEMORY);
    at = next;
    yield at;
    values.push(at.value);
    if (values.at(-1 - PATIENCE) - at.value < GAIN * Math.abs(at.value)) return;
  }
}
