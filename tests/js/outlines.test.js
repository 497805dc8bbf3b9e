import assert from "node:assert/strict";
import { test } from "node:test";
import { MISSING } from "../../src/bimichi/report/planes.js";
import {
  countDetections,
  detectionAt,
  detectionPath,
  firstReaching,
} from "../../src/bimichi/studio/static/outlines.js";
import { contains, newShape } from "../../src/bimichi/studio/static/shapes.js";

// A map of text: a digit is a value in tenths, a dot is no data.
function mapOf(...rows) {
  const indices = Uint16Array.from(rows.join(""), (sign) =>
    sign === "." ? MISSING : Math.round((Number(sign) / 10) * (MISSING - 1)),
  );
  return { indices, width: rows[0].length, height: rows.length };
}

const area = (points) =>
  Math.abs(
    points.reduce((sum, [x, y], k) => {
      const [u, v] = points[(k + 1) % points.length];
      return sum + (x * v - u * y) / 2;
    }, 0),
  );

const HALF = firstReaching(0.5, 0);

test("a value reaches itself, in both ranges of maps", () => {
  for (const low of [0, -1]) {
    for (let index = 1; index < MISSING; index += 4369) {
      const value = low + ((1 - low) * index) / (MISSING - 1);
      assert.equal(firstReaching(value, low), index);
    }
  }
});

test("regions touch at corners, and no data is not detected", () => {
  const map = mapOf("900.", "0900", "0000", "00.5");
  assert.equal(countDetections(map, HALF), 2);
  assert.equal(detectionAt(map, 2, 3, HALF), null);
  assert.equal(detectionAt(map, 0, 1, HALF), null);
  assert.equal(detectionAt(map, 3, 3, HALF).size, 1);
  assert.equal(detectionAt(map, 0, 0, HALF).size, 2);
});

test("the outline of a detection runs along its pixels", () => {
  const map = mapOf("00000", "09900", "09000", "00000");
  const { size, points } = detectionAt(map, 1, 1, HALF);
  assert.equal(size, 3);
  assert.equal(area(points), 3);
  const shape = newShape("polygon", "not", points);
  map.indices.forEach((value, i) => {
    const spot = [(i % map.width) + 0.5, Math.floor(i / map.width) + 0.5];
    assert.equal(contains(shape, spot), value >= HALF);
  });
});

test("an outline of very many corners is simplified, and stays about as large", () => {
  const width = 400;
  const comb = Array.from({ length: width }, (_, x) => (x % 2 ? "9" : "0")).join("");
  const { size, points } = detectionAt(mapOf(comb, "9".repeat(width), "9".repeat(width)), 0, 1, HALF);
  assert.equal(size, 2.5 * width);
  assert.ok(points.length <= 300);
  assert.ok(Math.abs(area(points) - size) < 0.3 * size);
});

test("the drawn path parts pixels that are detected from those that are not", (t) => {
  const lines = [];
  class Path {
    moveTo(x, y) {
      this.start = [x, y];
    }
    lineTo(x, y) {
      lines.push([...this.start, x, y].join(" "));
    }
  }
  globalThis.Path2D = Path;
  t.after(() => delete globalThis.Path2D);
  detectionPath(mapOf("000", "090", "000"), HALF);
  assert.deepEqual(lines.sort(), ["1 1 1 2", "1 1 2 1", "1 2 2 2", "2 1 2 2"]);
});
