// Geometry of labels. A shape is { id, kind, label, points, width }; points are in pixels of the scene, pixel i covers
// [i, i + 1). Shapes are never changed in place, so that the history can keep them as they were.

export const LABELS = {
  target: { title: "Target", colour: "#009e73" },
  not: { title: "Not target", colour: "#2f6fd0" },
  ignore: { title: "Ignore", colour: "#e6a700" },
};

export const newId = () => crypto.randomUUID?.() ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

export function newShape(kind, label, points, width) {
  const shape = { id: newId(), kind, label, points };
  return kind === "stroke" ? { ...shape, width } : shape;
}

// [left, top, right, bottom]
export function bounds({ points, width = 0 }) {
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  const rim = width / 2;
  return [Math.min(...xs) - rim, Math.min(...ys) - rim, Math.max(...xs) + rim, Math.max(...ys) + rim];
}

export function outline({ kind, points }) {
  const path = new Path2D();
  if (kind === "box") {
    const [left, top, right, bottom] = bounds({ points });
    path.rect(left, top, right - left, bottom - top);
    return path;
  }
  points.forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
  if (kind === "polygon") path.closePath();
  else if (points.length === 1) path.lineTo(...points[0]);
  return path;
}

export const apart = ([ax, ay], [bx, by]) => Math.hypot(ax - bx, ay - by);

// From a point to the line between two others.
function distance([x, y], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const share = length ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}

function insidePolygon([x, y], points) {
  let inside = false;
  points.forEach(([ax, ay], k) => {
    const [bx, by] = points[(k + points.length - 1) % points.length];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  });
  return inside;
}

export function contains(shape, point, slack = 0) {
  const [left, top, right, bottom] = bounds(shape);
  const [x, y] = point;
  if (x < left - slack || x > right + slack || y < top - slack || y > bottom + slack) return false;
  if (shape.kind === "box") return true;
  if (shape.kind === "polygon") return insidePolygon(point, shape.points);
  return shape.points.some(
    (start, k) => distance(point, start, shape.points[k + 1] ?? start) <= shape.width / 2 + slack,
  );
}

// The smallest shape at a point, since it may lie within a larger one.
export function shapeAt(shapes, point, slack = 0) {
  const area = (shape) => {
    const [left, top, right, bottom] = bounds(shape);
    return (right - left) * (bottom - top);
  };
  const hits = shapes.filter((shape) => contains(shape, point, slack));
  return hits.sort((a, b) => area(a) - area(b))[0] ?? null;
}

export function moved(shape, dx, dy) {
  return { ...shape, points: shape.points.map(([x, y]) => [x + dx, y + dy]) };
}

// Handles of a shape: corners and sides of a box, the corners of a polygon; a stroke has none.
export function handles({ kind, points }) {
  if (kind === "polygon") return points.map((point, k) => ({ point, at: k }));
  if (kind !== "box") return [];
  const [left, top, right, bottom] = bounds({ points });
  const [middle, centre] = [(left + right) / 2, (top + bottom) / 2];
  return [
    { point: [left, top], at: [0, 0] },
    { point: [middle, top], at: [null, 0] },
    { point: [right, top], at: [1, 0] },
    { point: [right, centre], at: [1, null] },
    { point: [right, bottom], at: [1, 1] },
    { point: [middle, bottom], at: [null, 1] },
    { point: [left, bottom], at: [0, 1] },
    { point: [left, centre], at: [0, null] },
  ];
}

// The shape after a handle was dragged to (x, y).
export function reshaped(shape, at, [x, y]) {
  if (shape.kind === "polygon")
    return { ...shape, points: shape.points.map((point, k) => (k === at ? [x, y] : point)) };
  const [left, top, right, bottom] = bounds({ points: shape.points });
  const corners = [
    [left, top],
    [right, bottom],
  ];
  if (at[0] !== null) corners[at[0]][0] = x;
  if (at[1] !== null) corners[at[1]][1] = y;
  return { ...shape, points: corners };
}

export function clipped(shape, width, height) {
  const within = (value, most) => Math.min(most, Math.max(0, value));
  return { ...shape, points: shape.points.map(([x, y]) => [within(x, width), within(y, height)]) };
}

const ROUND = 100; // hundredths of a pixel are enough

const rounded = (value) => Math.round(value * ROUND) / ROUND;

// A shape as it is kept: box corners in order, without needless digits.
export function tidy(shape) {
  const [left, top, right, bottom] = bounds({ points: shape.points });
  const points =
    shape.kind === "box"
      ? [
          [left, top],
          [right, bottom],
        ]
      : shape.points;
  return { ...shape, points: points.map((point) => point.map(rounded)) };
}

// Whether anything is left to label with; less than half a pixel is a slip of the mouse.
export function worthKeeping(shape) {
  if (shape.kind === "stroke") return shape.points.length > 0;
  const [left, top, right, bottom] = bounds({ points: shape.points });
  return right - left >= 0.5 && bottom - top >= 0.5 && (shape.kind === "box" || shape.points.length > 2);
}

// Douglas and Peucker: the points of a line without those that are nearer to it than `slack`.
export function simplified(points, slack) {
  if (points.length < 3) return points;
  let [worst, most] = [0, 0];
  for (let k = 1; k < points.length - 1; k++) {
    const away = distance(points[k], points[0], points.at(-1));
    if (away > most) [worst, most] = [k, away];
  }
  if (most <= slack) return [points[0], points.at(-1)];
  return [...simplified(points.slice(0, worst + 1), slack).slice(0, -1), ...simplified(points.slice(worst), slack)];
}

// What an eraser of this radius leaves: strokes are cut, other shapes go whole.
export function erased(shapes, point, radius) {
  return shapes.flatMap((shape) => {
    if (!contains(shape, point, shape.kind === "stroke" ? radius : 0)) return [shape];
    return shape.kind === "stroke" ? cut(shape, point, radius + shape.width / 2) : [];
  });
}

function cut(shape, point, reach) {
  const dense = shape.points.flatMap((start, k) => between(start, shape.points[k + 1], reach / 4));
  const parts = [[]];
  for (const own of dense) {
    if (apart(own, point) > reach) parts.at(-1).push(own);
    else if (parts.at(-1).length) parts.push([]);
  }
  const left = parts.filter((part) => part.length);
  return left.map((part, k) => tidy({ ...shape, id: k ? newId() : shape.id, points: simplified(part, 0.3) }));
}

function between(start, end, step) {
  if (!end) return [start];
  const count = Math.max(1, Math.ceil(apart(start, end) / Math.max(step, 0.5)));
  return Array.from({ length: count }, (_, k) => start.map((from, axis) => from + ((end[axis] - from) * k) / count));
}
