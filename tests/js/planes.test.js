import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { enteringOf, MISSING, meaningOf, unpack } from "../../src/bimichi/report/planes.js";

const packed = (buffer) => deflateSync(new Uint8Array(buffer)).toString("base64");

// Differences to the left, their signs folded into the lowest bit, low bytes before high bytes.
function packIndices(indices, width) {
  const bytes = new Uint8Array(2 * indices.length);
  indices.forEach((value, i) => {
    const difference = ((value - (i % width ? indices[i - 1] : 0)) << 16) >> 16;
    const folded = ((difference << 1) ^ (difference >> 15)) & 0xffff;
    bytes[i] = folded & 255;
    bytes[i + indices.length] = folded >> 8;
  });
  return packed(bytes.buffer);
}

const RULE = { centre: [0, 100], factor: [1, 0.01], low: -1, polarity: [1, -1] };

test("what was packed comes back", async () => {
  const indices = [0, 65535, 65534, 3, 40000, 1, 2, 2, 30000, 7, 65535, 0];
  const values = [0, 0.25, 1, -0.5, 0.5, 1e-300, 0, 0, 1];
  const plane = { data: packIndices(indices, 4), low: 0, step: 0.5 };
  const report = await unpack({
    ...RULE,
    width: 4,
    height: 3,
    sources: [plane, plane],
    measure: { parts: "elements", values: packed(Float64Array.from(values).buffer) },
    truth: plane.data,
  });
  assert.deepEqual([...report.sources[0].indices], indices);
  assert.deepEqual([...report.measure.values], values);
  assert.deepEqual([...report.truth], indices);
  assert.equal(report.segments, null);
  const [first, second] = report.sources;
  assert.ok(Number.isNaN(first.values[MISSING]));
  assert.equal(first.values[7], 3.5);
  assert.equal(second.scaled[300], 0.5);
  assert.equal(second.entered[300], -0.5);
  assert.equal(report.measure.integrate(report.sources).length, 12);
});

test("few values are listed, many are steps", () => {
  assert.deepEqual([...meaningOf({ levels: [3, 5] }).slice(0, 3)], [3, 5, NaN]);
  const steps = meaningOf({ low: -1, step: 0.001 });
  assert.equal(steps[2000], 1);
  assert.ok(Number.isNaN(steps[MISSING]));
});

test("values enter scaled, and inverted where the rule says so", () => {
  assert.deepEqual(enteringOf([0, 50, 300], 1, RULE), { scaled: [-1, -0.5, 1], entered: [1, 0.5, -1] });
});
