// Unpack what page.py packed: base64, deflate, and for planes also differences and split bytes.

import { MEASURES, scaledValue } from "./integral.js";

export const MISSING = 0xffff;

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function unpackNumbers(text) {
  const view = new DataView(await inflate(text));
  return Float64Array.from({ length: view.byteLength / 8 }, (_, k) => view.getFloat64(8 * k, true));
}

// Whole numbers of an image; each was stored as its folded difference from the one to its left.
async function unpackIndices(text, width, height) {
  const bytes = new Uint8Array(await inflate(text));
  const size = width * height;
  const indices = new Uint16Array(size);
  for (let i = 0, left = 0; i < size; i++) {
    if (i % width === 0) left = 0;
    const folded = bytes[i] | (bytes[i + size] << 8);
    left = (left + ((folded >>> 1) ^ -(folded & 1))) & 0xffff;
    indices[i] = left;
  }
  return indices;
}

// What each whole number of a source stands for; NaN for no data.
export function meaningOf(plane) {
  const levels = new Float64Array(MISSING + 1).fill(NaN);
  if (plane.levels) levels.set(plane.levels);
  else for (let k = 0; k < MISSING; k++) levels[k] = plane.low + plane.step * k;
  return levels;
}

// What values of source k become: scaled, and as they enter the integral.
export function enteringOf(values, k, { centre, factor, low, polarity }) {
  const scaled = values.map((x) => scaledValue(x, centre[k], factor[k], low));
  return { scaled, entered: scaled.map((x) => x * polarity[k]) };
}

// The measure's numbers, and its functions.
export async function unpackMeasure({ parts, ...packed }, m) {
  const measure = {};
  for (const [name, text] of Object.entries(packed)) measure[name] = await unpackNumbers(text);
  return Object.assign(measure, MEASURES[parts](measure, m));
}

export async function unpack(data) {
  const { width, height } = data;
  const indices = (text) => unpackIndices(text, width, height);
  const sources = await Promise.all(
    data.sources.map(async (plane, k) => {
      const values = meaningOf(plane);
      return { indices: await indices(plane.data), values, ...enteringOf(values, k, data) };
    }),
  );
  const measure = await unpackMeasure(data.measure, sources.length);
  return {
    ...data,
    sources,
    measure,
    truth: data.truth ? await indices(data.truth) : null,
    segments: data.segments ? await indices(data.segments) : null,
  };
}
