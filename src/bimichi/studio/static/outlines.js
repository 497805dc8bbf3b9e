// Detections: pixels of the fused map that reach the threshold, their borders, and one of them as a polygon.

import { borders } from "./report/maps.js";
import { MISSING } from "./report/planes.js";
import { simplified } from "./shapes.js";

const MOST_CORNERS = 300;

// Which whole number of a map is the first that reaches a value.
export const firstReaching = (value, low) => Math.ceil(((value - low) / (1 - low)) * (MISSING - 1) - 1e-6);

const reaches = (indices, least) => (i) => indices[i] >= least && indices[i] < MISSING;

export function detectionPath({ indices, width, height }, least) {
  const detected = Uint8Array.from(indices, (value) => (value >= least && value < MISSING ? 1 : 0));
  return borders(width, height, (i, j) => detected[i] !== detected[j]);
}

// How many 8-connected regions reach the threshold.
export function countDetections(map, least) {
  const detected = reaches(map.indices, least);
  const seen = new Uint8Array(map.indices.length);
  let count = 0;
  for (let i = 0; i < seen.length; i++) {
    if (seen[i] || !detected(i)) continue;
    fill(map, i, detected, seen);
    count += 1;
  }
  return count;
}

function fill({ width, height }, start, detected, seen) {
  const waiting = [start];
  const pixels = [];
  seen[start] = 1;
  while (waiting.length) {
    const i = waiting.pop();
    pixels.push(i);
    const [x, y] = [i % width, Math.floor(i / width)];
    for (let v = Math.max(0, y - 1); v <= Math.min(height - 1, y + 1); v++) {
      for (let u = Math.max(0, x - 1); u <= Math.min(width - 1, x + 1); u++) {
        const j = v * width + u;
        if (!seen[j] && detected(j)) {
          seen[j] = 1;
          waiting.push(j);
        }
      }
    }
  }
  return pixels;
}

// The detection at a pixel: its number of pixels and its outer border; null if there is none.
export function detectionAt(map, x, y, least) {
  const detected = reaches(map.indices, least);
  const start = y * map.width + x;
  if (!detected(start)) return null;
  const seen = new Uint8Array(map.indices.length);
  const pixels = fill(map, start, detected, seen);
  return { size: pixels.length, points: border(map, pixels, seen) };
}

// Walk around a region with the region on the right, on the edges between pixels.
function border({ width, height }, pixels, inside) {
  const has = (x, y) => x >= 0 && y >= 0 && x < width && y < height && inside[y * width + x] === 1;
  const first = pixels.reduce((least, i) => Math.min(least, i), Infinity);
  const [left, top] = [first % width, Math.floor(first / width)];
  const steps = [
    [1, 0],
    [0, 1],
    [-1, 0],
    [0, -1],
  ];
  const points = [];
  let [x, y, way] = [left, top, 0];
  do {
    // The pixels ahead, left and right of the way, seen from the corner (x, y).
    const [aheadLeft, aheadRight] = [
      [has(x, y - 1), has(x, y)],
      [has(x, y), has(x - 1, y)],
      [has(x - 1, y), has(x - 1, y - 1)],
      [has(x - 1, y - 1), has(x, y - 1)],
    ][way];
    if (aheadLeft) way = (way + 3) % 4;
    else if (!aheadRight) way = (way + 1) % 4;
    if (aheadLeft || !aheadRight || !points.length) points.push([x, y]);
    x += steps[way][0];
    y += steps[way][1];
  } while (x !== left || y !== top);
  for (let slack = 0.5; points.length > MOST_CORNERS && slack < 8; slack *= 1.6) {
    const fewer = simplified([...points, points[0]], slack).slice(0, -1);
    if (fewer.length <= MOST_CORNERS && fewer.length > 2) return fewer;
  }
  return points;
}
