// The integral of every pixel, the steps of one pixel, and what each source contributes to it: the same as choquet,
// bimichi.explain.chain and bimichi.explain.contributions. MEASURES has these functions for both kinds of measure.

export const TOLERANCE = 1e-9;

export function scaledValue(x, centre, factor, low) {
  if (centre === 0 && factor === 1) return x;
  return Math.min(1, Math.max(low, (x - centre) * factor));
}

// C or |C|; with a link, the log-odds of a target: slope * output + offset.
export function outputOf(integral, { absolute, link }) {
  const output = absolute ? Math.abs(integral) : integral;
  return link ? output * link.slope + link.offset : output;
}

// What fuse gives: the output, or with a link the probability.
export function fusedOf(integral, report) {
  const output = outputOf(integral, report);
  if (!report.link) return output;
  const small = Math.exp(-Math.abs(output));
  return (output < 0 ? small : 1) / (1 + small);
}

// What a part of the integral is multiplied by to be a part of the log-odds.
export function partFactor(integral, { absolute, link }) {
  if (!link) return 1;
  return absolute && integral < 0 ? -link.slope : link.slope;
}

// Sources by |x|, ascending, ties in their order; null if one is missing.
function ascending(x) {
  if (x.some(Number.isNaN)) return null;
  return x.map((_, k) => k).sort((i, j) => Math.abs(x[i]) - Math.abs(x[j]) || i - j);
}

// What source k adds to the code of an element: 3^k in A, for, or twice that in B, against.
const digit = (x, k) => (x[k] < 0 ? 2 : 1) * 3 ** k;

// Steps { code, weight, value, product, up, down } of weight above 0, from all sources to the largest alone; `up` and
// `down` are the sources in A and in B.
function chainOfElements(x, values) {
  const order = ascending(x);
  const left = new Set(order);
  const members = (wanted) => x.map((_, k) => k).filter((k) => left.has(k) && x[k] < 0 === wanted);
  const steps = [];
  let code = order.reduce((sum, k) => sum + digit(x, k), 0);
  let below = 0;
  for (const k of order) {
    const weight = Math.abs(x[k]) - below;
    const value = values[code];
    if (weight > 0)
      steps.push({ code, weight, value, product: weight * value, up: members(false), down: members(true) });
    below = Math.abs(x[k]);
    code -= digit(x, k);
    left.delete(k);
  }
  return steps;
}

// Shapley values of the game C(x with the sources outside S at 0), by the potential of Hart and Mas-Colell on the
// 2^m parts of this pixel's largest element.
function contributionsOfElements(x, values) {
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

function integrateElements(sources, values) {
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
      missing ||= Number.isNaN(x);
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

// Terms as a table of sides (source k above zero is side k, below zero side m + k), and their numbers.
function termTable(values, m) {
  const size = 2 * m;
  const [table, numbers] = [new Float64Array(size * size), new Int32Array(size * size)];
  const set = (s, t, number) => {
    for (const at of [s * size + t, t * size + s]) [table[at], numbers[at]] = [values[number], number];
  };
  for (let s = 0; s < size; s++) set(s, s, s);
  for (let s = 0, number = size; s < size; s++) {
    for (let t = s + 1; t < size; t++) if (t - s !== m) set(s, t, number++);
  }
  return { table, numbers, size, pairs: values.slice(size).some(Boolean) };
}

// Calls visit(i, j, size, place) for each source (i = j) and each pair of sources: their smaller |x|, and their place in
// the table.
function visitTerms(x, { size, pairs }, visit) {
  const m = x.length;
  const sides = x.map((value, k) => (value < 0 ? k + m : k));
  for (let i = 0; i < m; i++) {
    for (let j = pairs ? 0 : i; j <= i; j++) {
      visit(j, i, Math.min(Math.abs(x[i]), Math.abs(x[j])), sides[j] * size + sides[i]);
    }
  }
}

// Terms whose product is not 0: of sources in their order, then of pairs, the largest first.
function chainOfTerms(x, terms) {
  const [single, pairs] = [[], []];
  visitTerms(x, terms, (i, j, weight, place) => {
    const value = terms.table[place];
    if (weight * value === 0) return;
    const members = [...new Set([i, j])];
    const [up, down] = [members.filter((k) => x[k] >= 0), members.filter((k) => x[k] < 0)];
    const step = { code: terms.numbers[place], weight, value, product: weight * value, up, down };
    (i === j ? single : pairs).push(step);
  });
  pairs.sort((a, b) => Math.abs(b.product) - Math.abs(a.product) || a.code - b.code);
  return [...single, ...pairs];
}

// The term of a source belongs to it, that of a pair to each of the two by half.
function contributionsOfTerms(x, terms) {
  const parts = x.map(() => 0);
  visitTerms(x, terms, (i, j, weight, place) => {
    parts[i] += (weight * terms.table[place]) / 2;
    parts[j] += (weight * terms.table[place]) / 2;
  });
  return parts;
}

function integrateTerms(sources, { table, size, pairs }) {
  const m = sources.length;
  const integral = new Float64Array(sources[0].indices.length);
  const [own, side] = [new Float64Array(m), new Int32Array(m)];
  for (let i = 0; i < integral.length; i++) {
    let sum = 0;
    for (let k = 0; k < m; k++) {
      const x = sources[k].entered[sources[k].indices[i]];
      own[k] = Math.abs(x);
      side[k] = x < 0 ? k + m : k;
      const row = side[k] * size;
      sum += own[k] * table[row + side[k]];
      for (let j = pairs ? 0 : k; j < k; j++) sum += (own[j] < own[k] ? own[j] : own[k]) * table[row + side[j]];
      if (Number.isNaN(x)) sum = NaN; // whatever the comparison gave
    }
    integral[i] = sum;
  }
  return integral;
}

export const MEASURES = {
  elements: ({ values }) => ({
    faint: 0, // every element of the chain is shown
    integrate: (sources) => integrateElements(sources, values),
    chain: (x) => chainOfElements(x, values),
    contributions: (x) => contributionsOfElements(x, values),
  }),
  terms: ({ values }, m) => {
    const terms = termTable(values, m);
    return {
      faint: 0.0005, // terms below it are shown together
      integrate: (sources) => integrateTerms(sources, terms),
      chain: (x) => chainOfTerms(x, terms),
      contributions: (x) => contributionsOfTerms(x, terms),
    };
  },
};
