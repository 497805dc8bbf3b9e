// The integral of one pixel, and who made it. The same as bimichi.explain.chain and bimichi.explain.contributions.

const TOLERANCE = 1e-9;

function scaledValue(x, centre, factor) {
  if (centre === 0 && factor === 1) return x;
  return Math.min(1, Math.max(-1, (x - centre) * factor));
}

// Sources by |x|, ascending, ties in their order; null if one is missing.
function ascending(x) {
  if (x.some(Number.isNaN)) return null;
  return x.map((_, k) => k).sort((i, j) => Math.abs(x[i]) - Math.abs(x[j]) || i - j);
}

// What source k adds to the code of an element: 3^k in A, for, or twice that in B, against.
const digit = (x, k) => (x[k] < 0 ? 2 : 1) * 3 ** k;

// Steps { code, weight, value, product } of weight above 0, from all sources to the largest alone.
function chainOf(x, values) {
  const order = ascending(x);
  const steps = [];
  let code = order.reduce((sum, k) => sum + digit(x, k), 0);
  let below = 0;
  for (const k of order) {
    const weight = Math.abs(x[k]) - below;
    if (weight > 0) steps.push({ code, weight, value: values[code], product: weight * values[code] });
    below = Math.abs(x[k]);
    code -= digit(x, k);
  }
  return steps;
}

// Shapley values of the game C(x with the sources outside S at 0), by the potential of Hart and Mas-Colell on the
// 2^m parts of this pixel's largest element.
function contributionsOf(x, values) {
  const m = x.length;
  const digits = x.map((_, k) => digit(x, k));
  const codes = new Int32Array(1 << m);
  const potential = new Float64Array(1 << m);
  for (let set = 1; set < codes.length; set++) {
    const last = 31 - Math.clz32(set);
    codes[set] = codes[set ^ (1 << last)] + digits[last];
    let sum = values[codes[set]];
    let size = 0;
    for (let k = 0; k <= last; k++) {
      if ((set >> k) & 1) {
        sum += potential[set ^ (1 << k)];
        size += 1;
      }
    }
    potential[set] = sum / size;
  }
  const parts = new Float64Array(m);
  let set = (1 << m) - 1;
  let below = 0;
  for (const k of ascending(x)) {
    const weight = Math.abs(x[k]) - below;
    for (let j = 0; j < m; j++) {
      if ((set >> j) & 1) parts[j] += weight * (potential[set] - potential[set ^ (1 << j)]);
    }
    below = Math.abs(x[k]);
    set ^= 1 << k;
  }
  return Array.from(parts);
}

// The integral of every pixel.
function integrate(sources, values) {
  const m = sources.length;
  const size = sources[0].indices.length;
  const integral = new Float64Array(size);
  const key = new Float64Array(m);
  const step = new Int32Array(m);
  const power = Array.from(key, (_, k) => 3 ** k);
  for (let i = 0; i < size; i++) {
    let code = 0;
    let missing = false;
    for (let k = 0; k < m; k++) {
      const x = sources[k].entered[sources[k].indices[i]];
      missing ||= x !== x;
      const own = Math.abs(x);
      const adds = x < 0 ? 2 * power[k] : power[k];
      code += adds;
      let j = k;
      for (; j > 0 && key[j - 1] > own; j--) {
        key[j] = key[j - 1];
        step[j] = step[j - 1];
      }
      key[j] = own;
      step[j] = adds;
    }
    let sum = 0;
    for (let k = 0, below = 0; k < m; k++) {
      sum += (key[k] - below) * values[code];
      below = key[k];
      code -= step[k];
    }
    integral[i] = missing ? NaN : sum;
  }
  return integral;
}
