// What the views show: which pictures they need, and how these are drawn.

import { debounced } from "./dom.js";
import { Layers } from "./layers.js";
import { Tiles } from "./tiles.js";

const PAUSE = 500; // milliseconds without an edit, after which the uncertainty is asked for

export class Pictures {
  constructor(app) {
    this.app = app;
    this.layers = new Layers(app.state);
    this.tiles = new Tiles(
      () => app.views.draw(),
      () => this.layers.greys(app.learned.outputLow),
    );
    this.needUncertainty = debounced(() => this.loadUncertainty(), PAUSE);
  }

  get usable() {
    const { data, current } = this.app.scenes;
    return Boolean(data) && current.usable !== false;
  }

  draw(context, layer) {
    if (!this.usable) return;
    const { shown } = this.app;
    const photo = layer === "photo" || layer.startsWith("source");
    context.filter = this.filter(layer);
    this.drawOne(context, layer);
    context.filter = "none";
    if (!photo || !shown.opacity) return;
    context.globalAlpha = shown.opacity;
    this.drawOne(context, "over");
    context.globalAlpha = 1;
  }

  // Of tiles, contrast is that of their greys; other sources are painted by it.
  filter(layer) {
    const { scenes, shown, contrast } = this.app;
    const { current } = scenes;
    if (layer === "photo" && current.rgb) return shown.brightness === 1 ? "none" : `brightness(${shown.brightness})`;
    const k = layer === "photo" ? 0 : Number(layer.split(":")[1]);
    return current.tiled && contrast[k] && contrast[k] !== 1 ? `contrast(${contrast[k]})` : "none";
  }

  // A picture at the size of the scene; of a large scene, that of its overview under its tiles.
  drawOne(context, layer) {
    const { current } = this.app.scenes;
    const overview = layer === "fused" || layer === "over"; // of large scenes, these alone are held whole
    const bitmap = current.tiled && !overview ? null : this.bitmap(layer);
    if (bitmap) context.drawImage(bitmap, 0, 0, current.width, current.height);
    if (current.tiled && layer !== "over") this.tiles.draw(context, this.app, layer);
  }

  bitmap(layer) {
    const { app, layers } = this;
    const { data, current } = app.scenes;
    const { model, report, outputLow } = app.learned;
    const { contrast } = app;
    const [kind, number] = layer.split(":");
    const k = Number(number);
    if (kind === "photo") return current.rgb ? data.photo : layers.source(data, 0, contrast[0]);
    if (kind === "source") return layers.source(data, k, contrast[k]);
    if (kind === "fused") return model ? layers.fused(data, outputLow) : null;
    if (kind === "over") return model ? layers.over(data, outputLow) : null;
    if (kind === "truth") return layers.truth(data, outputLow);
    if (kind === "uncertainty") return layers.uncertainty(data);
    if (kind === "part" && report) return layers.contribution(data, k, model.number, report, () => app.views.draw());
    return null;
  }

  get wanted() {
    const { layers, count } = this.app.shown;
    return layers.slice(0, count);
  }

  // Fetch what the views need beside planes and the fused map.
  async need() {
    const { app } = this;
    const { data, current } = app.scenes;
    if (!this.usable || current.tiled) return;
    if (this.wanted.includes("truth") && current.truth) await app.attempt(() => data.loadTruth());
    if (this.wanted.includes("uncertainty") && app.learned.model) this.needUncertainty();
    app.views.draw();
  }

  // It takes many fits, so it waits until nobody draws.
  async loadUncertainty() {
    const { app } = this;
    const { data, current } = app.scenes;
    const { model, stale } = app.learned;
    if (!this.wanted.includes("uncertainty") || !data || !model || app.working || stale || current.tiled) return;
    await app.attempt(() => data.loadUncertainty(model.number));
    app.tell("map");
    app.views.draw();
  }
}
