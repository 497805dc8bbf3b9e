// Tiles of scenes that are too large to be held whole: fetched when seen, at the size they are seen.

const SIDE = 256;
const MOST = 160; // tiles that are kept, 256 KB each

export class Tiles {
  // `arrived` is called for each new tile; `colours` gives the colours of maps, from the lowest value to the highest.
  constructor(arrived, colours) {
    Object.assign(this, { arrived, colours });
    this.kept = new Map();
  }

  draw(context, app, layer) {
    const { views, learned } = app;
    const { current, index } = app.scenes;
    const name = this.nameOf(current, learned.model, layer);
    if (name === null) return;
    const deepest = Math.max(0, Math.ceil(Math.log2(Math.max(current.width, current.height) / SIDE)));
    const z = Math.min(deepest, Math.max(0, Math.floor(Math.log2(views.scale / devicePixelRatio) + 0.5)));
    for (const level of z < deepest ? [deepest, z] : [z])
      this.drawLevel(context, { views, current, index, name, z: level });
  }

  drawLevel(context, { views, current, index, name, z }) {
    const size = SIDE * 2 ** z;
    const [left, top] = [Math.max(0, views.left), Math.max(0, views.top)];
    const [right, bottom] = [
      Math.min(current.width, views.left + views.wide),
      Math.min(current.height, views.top + views.high),
    ];
    for (let y = Math.floor(top / size); y * size < bottom; y++) {
      for (let x = Math.floor(left / size); x * size < right; x++) {
        const tile = this.tile(`scenes/${index}/tiles/${name}/${z}/${x}/${y}`);
        if (tile) context.drawImage(tile, x * size, y * size, tile.width * 2 ** z, tile.height * 2 ** z);
      }
    }
  }

  nameOf(current, model, layer) {
    const [kind, k] = layer.split(":");
    if (kind === "photo") return current.rgb ? "rgb" : "0";
    if (kind === "source") return k;
    return kind === "fused" && model ? "fused" : null;
  }

  tile(path) {
    const tile = this.kept.get(path);
    if (tile) {
      this.kept.delete(path);
      this.kept.set(path, tile);
      return tile.bitmap;
    }
    this.kept.set(path, { bitmap: null });
    this.fetch(path);
    for (const [old, { bitmap }] of [...this.kept].slice(0, -MOST)) {
      bitmap?.close();
      this.kept.delete(old);
    }
    return null;
  }

  async fetch(path) {
    const response = await fetch(path, { cache: "no-store" }).catch(() => null);
    if (!response?.ok) return;
    const sent = await createImageBitmap(await response.blob());
    const bitmap = path.includes("/tiles/fused/") ? this.coloured(sent) : sent;
    if (!this.kept.has(path)) return bitmap.close();
    this.kept.get(path).bitmap?.close();
    this.kept.set(path, { bitmap });
    this.arrived();
  }

  // Maps come in grey over the range of their values.
  coloured(grey) {
    const canvas = new OffscreenCanvas(grey.width, grey.height);
    const context = canvas.getContext("2d");
    context.drawImage(grey, 0, 0);
    grey.close();
    const image = context.getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = this.colours();
    for (let i = 0; i < pixels.length; i++) if (pixels[i] >>> 24) pixels[i] = colours[pixels[i] & 255];
    context.putImageData(image, 0, 0);
    return canvas.transferToImageBitmap();
  }

  // A new model has other maps; the old ones stay until these arrive.
  forget(layer) {
    for (const path of this.kept.keys()) if (path.includes(`/tiles/${layer}/`)) this.fetch(path);
  }
}
