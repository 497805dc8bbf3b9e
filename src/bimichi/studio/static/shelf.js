// What the page holds of scenes: planes of those in view or seen last; the rest is dropped and fetched again.

import { getBytes, getJson } from "./connection.js";
import { enteringOf, meaningOf } from "./report/planes.js";

const KEPT = 2; // scenes beside the one in view
const HEADER = 4; // numbers of 32 bits before a map

// A map as the server sends it: the number of its model, its size, and whole numbers for its values.
export function readMap(bytes) {
  const [number, width, height, scene] = new Uint32Array(bytes, 0, HEADER);
  return { number, width, height, scene, indices: new Uint16Array(bytes, 4 * HEADER) };
}

export class SceneData {
  constructor(index, scene) {
    Object.assign(this, { index, scene, sources: [], parts: new Map() });
    this.photo = null;
    this.fused = null;
    this.uncertainty = null;
    this.truth = null;
    this.asked = new Map();
    this.ending = new AbortController();
  }

  get path() {
    return `scenes/${this.index}`;
  }

  // Fetch a thing once, unless that failed.
  once(name, work) {
    if (!this.asked.has(name)) {
      const asked = work().catch((error) => {
        this.asked.delete(name);
        if (error.name !== "AbortError") throw error;
      });
      this.asked.set(name, asked);
    }
    return this.asked.get(name);
  }

  bytes(name) {
    return getBytes(`${this.path}/${name}`, this.ending.signal);
  }

  loadPhoto() {
    return this.once("rgb", async () => {
      const bytes = await this.bytes("rgb");
      this.photo = await createImageBitmap(new Blob([bytes]));
    });
  }

  // What the whole numbers of each source mean.
  meanings() {
    return this.once("planes", async () => this.scene.planes ?? (await getJson(`${this.path}/planes`)));
  }

  loadSource(k) {
    return this.once(`source ${k}`, async () => {
      const [meanings, bytes] = await Promise.all([this.meanings(), this.bytes(`sources/${k}`)]);
      const indices = new Uint16Array(bytes);
      const values = meaningOf(meanings[k]);
      this.sources[k] = { indices, values, range: spread(indices, values) };
    });
  }

  loadTruth() {
    return this.once("truth", async () => {
      this.truth = new Uint8Array(await this.bytes("truth"));
    });
  }

  // The map of the newest model, unless it was sent already.
  loadFused(number) {
    if (this.fused && this.fused.number >= number) return Promise.resolve();
    const work = async () => this.take(readMap(await this.bytes("fused")));
    return this.once(`fused ${number}`, work);
  }

  take(map) {
    if (!this.fused || map.number >= this.fused.number) this.fused = map;
  }

  forgetMaps() {
    Object.assign(this, { fused: null, uncertainty: null });
    this.parts.clear();
    for (const name of [...this.asked.keys()]) if (/^(fused|uncertainty)/.test(name)) this.asked.delete(name);
  }

  loadUncertainty(number) {
    if (this.uncertainty?.number >= number) return Promise.resolve();
    const name = `uncertainty ${number}`;
    return this.once(name, async () => {
      const bytes = await this.bytes("uncertainty");
      if (bytes.byteLength) this.uncertainty = readMap(bytes);
      else this.asked.delete(name); // the server has no model, or one that is newer
    });
  }

  loadAll(count) {
    this.count = count;
    const wanted = Array.from({ length: count }, (_, k) => this.loadSource(k));
    if (this.scene.rgb) wanted.push(this.loadPhoto());
    return Promise.all(wanted);
  }

  superpixel(x, y) {
    return getJson(`${this.path}/superpixel?x=${x}&y=${y}`);
  }

  values(x, y) {
    return getJson(`${this.path}/values?x=${x}&y=${y}`);
  }

  // How the values of the sources enter the integral of a rule; the same for most rules.
  enter({ centre, factor, low, polarity }) {
    const how = JSON.stringify([centre, factor, low, polarity]);
    if (this.entered?.how !== how) {
      const rule = { centre, factor, low, polarity };
      const sources = this.sources.map((source, k) => ({ ...source, ...enteringOf(source.values, k, rule) }));
      this.entered = { how, sources };
    }
    return this.entered.sources;
  }

  get complete() {
    return this.count > 0 && Array.from({ length: this.count }, (_, k) => this.sources[k]).every(Boolean);
  }

  close() {
    this.ending.abort();
    this.photo?.close();
  }
}

// Between which values 98 % of the pixels lie: what a picture shows from black to white.
function spread(indices, values) {
  const counts = new Uint32Array(values.length);
  for (const index of indices) counts[index] += 1;
  const order = [...counts.keys()].filter((index) => counts[index] && !Number.isNaN(values[index]));
  const total = order.reduce((sum, index) => sum + counts[index], 0);
  const at = (share) => {
    let before = 0;
    for (const index of order) {
      before += counts[index];
      if (before >= share * total) return values[index];
    }
    return 1;
  };
  const [low, high] = [at(0.01), at(0.99)];
  return high > low ? [low, high] : [values[order[0]] ?? 0, values[order.at(-1)] ?? 1];
}

export class Shelf {
  constructor(scenes) {
    this.scenes = scenes;
    this.kept = new Map();
  }

  // The data of a scene, which now counts as seen last.
  open(index) {
    const data = this.kept.get(index) ?? new SceneData(index, this.scenes[index]);
    this.kept.delete(index);
    this.kept.set(index, data);
    for (const [other, old] of [...this.kept].slice(0, -KEPT - 1)) {
      old.close();
      this.kept.delete(other);
    }
    return data;
  }

  get(index) {
    return this.kept.get(index);
  }

  close() {
    for (const data of this.kept.values()) data.close();
    this.kept.clear();
  }
}
