// Pictures of planes. A picture is painted anew only when what it shows has changed.

import { colourWords, level, paint } from "./report/maps.js";
import { MISSING } from "./report/planes.js";

const UNSURE = ["#fcfbf7", "#f5e6b8", "#e9c46a", "#c98a2b", "#8a5a12", "#4a2f06"]; // narrow to wide intervals
const SLICE = 8; // milliseconds of work between frames

const word = (red, green, blue) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

function ramp(colours, steps) {
  const parts = colours.map((colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)));
  return Array.from({ length: steps }, (_, n) => {
    const at = (n / (steps - 1)) * (parts.length - 1);
    const k = Math.min(parts.length - 2, Math.floor(at));
    return word(...parts[k].map((from, c) => Math.round(from + (parts[k + 1][c] - from) * (at - k))));
  });
}

export class Layers {
  constructor({ colours, missing }) {
    this.words = Uint32Array.from(colourWords(colours));
    this.missing = colourWords([missing])[0];
    this.unsure = ramp(UNSURE, 256);
    this.painted = new WeakMap(); // of a scene's data: layer to { stamp, bitmap }
    this.work = 0;
  }

  // The picture of a layer, or null while it is not there yet; `stamp` says which version of it is wanted.
  kept(data, layer, stamp, make) {
    if (!this.painted.has(data)) this.painted.set(data, new Map());
    const own = this.painted.get(data);
    if (own.get(layer)?.stamp !== stamp) own.set(layer, { stamp, bitmap: make() });
    return own.get(layer).bitmap;
  }

  // Colours of whole numbers that stand for values from low to high.
  table(low, high, colourOf) {
    const table = new Uint32Array(MISSING + 1);
    for (let n = 0; n < MISSING; n++) table[n] = colourOf(low + ((high - low) * n) / (MISSING - 1));
    table[MISSING] = this.missing;
    return table;
  }

  byTable({ width, height, indices }, table) {
    return paint(width, height, (i) => table[indices[i]]);
  }

  // The colours of 256 steps from the lowest value of a map to 1.
  greys(outputLow) {
    return Uint32Array.from({ length: 256 }, (_, n) => this.words[level(outputLow + ((1 - outputLow) * n) / 255)]);
  }

  fused(data, outputLow) {
    const map = data.fused;
    if (!map) return null;
    if (this.low !== outputLow) {
      this.low = outputLow;
      this.fusedTable = this.table(outputLow, 1, (value) => this.words[level(value)]);
    }
    return this.kept(data, "fused", `${map.number} ${outputLow}`, () => this.byTable(map, this.fusedTable));
  }

  // The map to lay over an image: the stronger a value, the less it lets through.
  over(data, outputLow) {
    const map = data.fused;
    if (!map) return null;
    return this.kept(data, "over", `${map.number} ${outputLow}`, () => {
      const table = this.table(outputLow, 1, (value) => {
        const opaque = Math.round(255 * Math.min(1, Math.abs(value)));
        return ((opaque << 24) | (this.words[level(value)] & 0xffffff)) >>> 0;
      });
      table[table.length - 1] = 0;
      return this.byTable(map, table);
    });
  }

  uncertainty(data) {
    const map = data.uncertainty;
    if (!map) return null;
    const make = () =>
      this.byTable(
        map,
        this.table(0, 1, (value) => this.unsure[Math.round(255 * value)]),
      );
    return this.kept(data, "uncertainty", map.number, make);
  }

  truth(data, outputLow) {
    const { truth, scene } = data;
    if (!truth) return null;
    const [yes, no] = [this.words[level(1)], this.words[level(outputLow)]];
    return this.kept(data, "truth", outputLow, () => paint(scene.width, scene.height, (i) => (truth[i] ? yes : no)));
  }

  // A source in grey; contrast 1 shows 98 % of its values from black to white.
  source(data, k, contrast) {
    const source = data.sources[k];
    if (!source) return null;
    return this.kept(data, `source:${k}`, contrast, () => {
      const [low, high] = source.range;
      const [middle, half] = [(low + high) / 2, (high - low) / 2 / contrast || 1];
      const table = Uint32Array.from(source.values, (value) => {
        if (Number.isNaN(value)) return this.missing;
        const grey = Math.round(255 * Math.min(1, Math.max(0, (value - middle) / half / 2 + 0.5)));
        return word(grey, grey, grey);
      });
      return this.byTable({ ...data.scene, indices: source.indices }, table);
    });
  }

  // What source k contributes everywhere, computed between frames; null until it is complete.
  contribution(data, k, number, report, done) {
    const part = data.parts.get(k);
    if (part?.number !== number && part?.wanted !== number) this.contribute(data, k, number, report, done);
    return data.parts.get(k)?.bitmap ?? null;
  }

  // In units of the link's slope, as the bars of the readout are.
  async contribute(data, k, number, { sources, measure, link, absolute }, done) {
    const before = data.parts.get(k);
    data.parts.set(k, { ...before, wanted: number });
    const { width, height } = data.scene;
    const flips = link && absolute;
    const pixels = new Uint32Array(width * height);
    const x = sources.map(() => 0);
    let start = performance.now();
    for (let i = 0; i < pixels.length; i++) {
      let whole = true;
      for (let j = 0; j < x.length; j++) {
        x[j] = sources[j].entered[sources[j].indices[i]];
        if (Number.isNaN(x[j])) whole = false;
      }
      const parts = whole ? measure.contributions(x) : null;
      const sign = flips && parts?.reduce((sum, part) => sum + part, 0) < 0 ? -1 : 1;
      pixels[i] = parts ? this.words[level(sign * parts[k])] : this.missing;
      if (i % 512 === 0 && performance.now() - start > SLICE) {
        await new Promise(requestAnimationFrame);
        if (data.parts.get(k).wanted !== number) return; // a newer model asked
        start = performance.now();
      }
    }
    data.parts.set(k, { number, wanted: number, bitmap: paint(width, height, (i) => pixels[i]) });
    done();
  }
}
