import assert from "node:assert/strict";
import { test } from "node:test";
import { fusedOf, MEASURES, outputOf, partFactor, scaledValue } from "../../src/bimichi/report/integral.js";

// Numbers in [-1, 1] that are the same in every run.
function* numbers(seed) {
  for (let state = seed; ; ) {
    state = (1103515245 * state + 12345) % 2 ** 31;
    yield (2 * state) / 2 ** 31 - 1;
  }
}

const take = (source, count) => Array.from({ length: count }, () => source.next().value);
const close = (a, b) => assert.ok(Math.abs(a - b) < 1e-12, `${a} is not ${b}`);
const sum = (values) => values.reduce((total, value) => total + value, 0);

// The integral by its definition: levels of |x|, each times the value of the sources that reach it.
function naive(x, values) {
  const levels = [...new Set(x.map(Math.abs))].sort((a, b) => a - b);
  return sum(
    levels.map((level, k) => {
      const code = sum(x.map((value, i) => (Math.abs(value) >= level ? (value < 0 ? 2 : 1) * 3 ** i : 0)));
      return (level - (levels[k - 1] ?? 0)) * values[code];
    }),
  );
}

// Shapley values by all orders in which sources can come.
function shapley(x, integral) {
  const orders = (left) =>
    left.length ? left.flatMap((k) => orders(left.filter((j) => j !== k)).map((rest) => [k, ...rest])) : [[]];
  const all = orders(x.map((_, k) => k));
  const parts = x.map(() => 0);
  for (const order of all) {
    const seen = x.map(() => 0);
    for (const k of order) {
      const before = integral(seen);
      seen[k] = x[k];
      parts[k] += (integral(seen) - before) / all.length;
    }
  }
  return parts;
}

const asSources = (rows) => rows[0].map((_, k) => ({ entered: rows.map((x) => x[k]), indices: rows.map((_, i) => i) }));

for (const m of [1, 2, 3, 4]) {
  const random = numbers(m);
  const rows = [...Array.from({ length: 20 }, () => take(random, m)), Array(m).fill(0.5), Array(m).fill(0)];

  test(`a bi-capacity of ${m} sources: map, chain and contributions follow the definition`, () => {
    const values = take(random, 3 ** m);
    values[0] = 0;
    const measure = MEASURES.elements({ values });
    const map = measure.integrate(asSources(rows));
    rows.forEach((x, i) => {
      close(map[i], naive(x, values));
      close(sum(measure.chain(x).map((step) => step.product)), map[i]);
      shapley(x, (y) => naive(y, values)).forEach((part, k) => close(measure.contributions(x)[k], part));
    });
  });

  test(`an additive measure of ${m} sources with pairs: map, chain and contributions agree`, () => {
    const measure = MEASURES.terms({ values: take(random, 2 * m + 2 * m * (m - 1)) }, m);
    const map = measure.integrate(asSources(rows));
    rows.forEach((x, i) => {
      close(sum(measure.chain(x).map((step) => step.product)), map[i]);
      close(sum(measure.contributions(x)), map[i]);
    });
    for (const step of measure.chain(rows[0])) assert.equal(new Set([...step.up, ...step.down]).size > 0, true);
  });
}

test("no data in one source is no data in the map", () => {
  const sources = asSources([
    [0.5, NaN],
    [0.5, 0.2],
  ]);
  for (const measure of [
    MEASURES.elements({ values: Array(9).fill(0.3) }),
    MEASURES.terms({ values: Array(8).fill(0.3) }, 2),
  ])
    assert.deepEqual(Array.from(measure.integrate(sources), Number.isNaN), [true, false]);
});

test("scale, magnitude and link", () => {
  assert.equal(scaledValue(7, 0, 1, -1), 7); // as it is
  assert.equal(scaledValue(700, 500, 0.01, -1), 1);
  assert.equal(scaledValue(450, 500, 0.01, -1), -0.5);
  assert.equal(scaledValue(450, 500, 0.01, 0), 0);
  assert.equal(fusedOf(-0.4, { absolute: true, link: null }), 0.4);
  const link = { slope: 4, offset: -1 };
  assert.equal(outputOf(-0.5, { absolute: false, link }), -3);
  close(fusedOf(-0.5, { absolute: false, link }), 1 / (1 + Math.exp(3)));
  close(fusedOf(0.5, { absolute: false, link }), 1 / (1 + Math.exp(-1)));
  assert.equal(partFactor(-0.5, { absolute: true, link }), -4);
  assert.equal(partFactor(-0.5, { absolute: true, link: null }), 1);
});
