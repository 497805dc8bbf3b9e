import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bounds,
  clipped,
  contains,
  erased,
  handles,
  moved,
  newShape,
  reshaped,
  shapeAt,
  simplified,
  tidy,
  worthKeeping,
} from "../../src/bimichi/studio/static/shapes.js";

const box = (left, top, right, bottom) =>
  newShape("box", "target", [
    [left, top],
    [right, bottom],
  ]);
const stroke = (width, ...points) => newShape("stroke", "not", points, width);
const triangle = newShape("polygon", "target", [
  [0, 0],
  [10, 0],
  [0, 10],
]);

test("a width is that of strokes alone, and widens their bounds", () => {
  assert.equal("width" in newShape("box", "target", [], 12), false);
  assert.deepEqual(bounds(stroke(4, [5, 5], [9, 5])), [3, 3, 11, 7]);
});

test("contains: boxes with their border, polygons by crossings, strokes by distance", () => {
  assert.ok(contains(box(2, 3, 8, 9), [2, 9]));
  assert.ok(!contains(box(2, 3, 8, 9), [1.9, 5]));
  assert.ok(contains(box(2, 3, 8, 9), [1.9, 5], 0.2));
  assert.ok(contains(triangle, [2, 2]));
  assert.ok(!contains(triangle, [6, 6])); // within its bounds
  assert.ok(contains(stroke(4, [0, 0], [10, 0]), [5, 1.9]));
  assert.ok(!contains(stroke(4, [0, 0], [10, 0]), [5, 2.1]));
  assert.ok(contains(stroke(4, [3, 3]), [4, 4])); // of a single point
});

test("contains of a polygon is what summing angles says", () => {
  const corners = [3, 9, 5, 8, 2, 7, 6].map((radius, k) => [
    10 + radius * Math.cos((2 * Math.PI * k) / 7),
    10 + radius * Math.sin((2 * Math.PI * k) / 7),
  ]);
  const turns = ([x, y]) =>
    corners.reduce((sum, [ax, ay], k) => {
      const [bx, by] = corners[(k + 1) % corners.length];
      const angle = Math.atan2(by - y, bx - x) - Math.atan2(ay - y, ax - x);
      return sum + Math.atan2(Math.sin(angle), Math.cos(angle));
    }, 0);
  const shape = newShape("polygon", "target", corners);
  for (let y = 0.5; y < 20; y++)
    for (let x = 0.5; x < 20; x++) assert.equal(contains(shape, [x, y]), Math.abs(turns([x, y])) > 3, `${x} ${y}`);
});

test("the smallest shape at a point is found", () => {
  const [large, small] = [box(0, 0, 20, 20), box(5, 5, 9, 9)];
  assert.equal(shapeAt([small, large], [6, 6]), small);
  assert.equal(shapeAt([small, large], [1, 1]), large);
  assert.equal(shapeAt([small, large], [30, 1]), null);
});

test("every handle reshapes its own corner or side", () => {
  const shape = box(2, 3, 8, 9);
  for (const { point, at } of handles(shape)) {
    const [left, top, right, bottom] = bounds(reshaped(shape, at, [point[0] + 1, point[1] + 1]));
    assert.equal(left + right, 10 + (at[0] === null ? 0 : 1));
    assert.equal(top + bottom, 12 + (at[1] === null ? 0 : 1));
  }
  assert.equal(handles(shape).length, 8);
  assert.deepEqual(reshaped(triangle, 1, [7, 1]).points[1], [7, 1]);
  assert.deepEqual(handles(stroke(3, [0, 0])), []);
});

test("shapes are never changed in place", () => {
  const shape = Object.freeze({
    ...box(8, 9, 2, 3),
    points: Object.freeze(
      [
        [8, 9],
        [2, 3],
      ].map(Object.freeze),
    ),
  });
  assert.deepEqual(moved(shape, 1, 1).points[0], [9, 10]);
  assert.deepEqual(clipped(shape, 5, 5).points[0], [5, 5]);
  assert.deepEqual(tidy(shape).points, [
    [2, 3],
    [8, 9],
  ]);
  assert.deepEqual(erased([shape], [5, 5], 1), []);
});

test("slips are not worth keeping", () => {
  assert.ok(!worthKeeping(box(2, 2, 2.4, 9)));
  assert.ok(worthKeeping(box(2, 2, 3, 9)));
  assert.ok(!worthKeeping(newShape("polygon", "target", triangle.points.slice(0, 2))));
  assert.ok(worthKeeping(stroke(3, [1, 1])));
});

test("simplified keeps the ends and what is farther away than the slack", () => {
  const line = Array.from({ length: 50 }, (_, k) => [k, k === 20 ? 5 : 0.1 * (k % 2)]);
  const corners = simplified(line, 0.3);
  assert.deepEqual(corners[0], line[0]);
  assert.deepEqual(corners.at(-1), line.at(-1));
  assert.ok(corners.some(([, y]) => y === 5));
  assert.ok(corners.length < 8);
});

test("the eraser cuts strokes, and takes other shapes whole", () => {
  const long = stroke(2, [0, 0], [40, 0]);
  const [left, right] = erased([long], [20, 0], 3);
  assert.equal(left.id, long.id);
  assert.notEqual(right.id, long.id);
  assert.ok(bounds(left)[2] <= 20 - 3 && bounds(right)[0] >= 20 + 3);
  assert.deepEqual(erased([long, triangle], [2, 20], 1), [long, triangle]);
  assert.deepEqual(erased([triangle], [2, 2], 1), []);
});
