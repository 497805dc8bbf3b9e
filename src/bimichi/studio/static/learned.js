// What was learned: the model, its score and its maps, and what explains a pixel by it.

import { mark } from "./events.js";
import { unpackMeasure } from "./report/planes.js";
import { readMap } from "./shelf.js";

export class Learned {
  constructor(app) {
    this.app = app;
    Object.assign(this, { model: null, measure: null, score: null, report: null });
    this.resettled = false; // whether the settings are other than those the model was learned by
    this.arriving = null;
    app.on("scene", () => (this.report = null));
    app.on("loaded", () => {
      this.prepareReport();
      this.mapChanged();
    });
  }

  // Whether labels or settings were changed since.
  get stale() {
    if (!this.model) return false;
    if (this.resettled) return true;
    return this.app.labels.scenes.some(
      ({ revision, shapes }, k) => (this.model.revision?.[k] ?? (shapes.length ? -1 : revision)) !== revision,
    );
  }

  get outputLow() {
    return this.model?.rule.outputLow ?? 0;
  }

  train() {
    this.app.connection.send({ type: "train" });
  }

  changeSettings(changes) {
    this.resettled = true;
    this.app.connection.send({ type: "settings", ...changes });
    this.app.tell("working");
  }

  // Take a model, or forget it if there is none any more. A second message of the same model completes it.
  receive(model) {
    const earlier = this.arriving;
    this.arriving = this.app.attempt(async () => {
      if (model.rule) return this.unpack(model, earlier);
      await earlier;
      this.forget();
    });
    return this.arriving;
  }

  async unpack(model, earlier) {
    const { app } = this;
    const again = this.model?.number === model.number;
    const measure = again ? this.measure : await unpackMeasure(model.rule.measure, model.rule.names.length);
    await earlier;
    if (model.number < this.model?.number) return;
    Object.assign(this, { model, measure });
    if (model.score) this.score = { number: model.number, ...model.score }; // or the old one stays, and is marked
    if (!again) this.resettled = false;
    app.tell("model");
    if (again) return;
    this.prepareReport();
    app.pictures.tiles.forget("fused");
    app.views.draw();
  }

  forget() {
    const { app } = this;
    Object.assign(this, { model: null, measure: null, score: null, report: null });
    for (const data of app.scenes.shelf.kept.values()) data.forgetMaps();
    app.detector.clear();
    delete document.documentElement.dataset.map;
    app.tell("model");
    app.tell("forgotten");
    app.views.draw();
  }

  receiveScore(score) {
    this.score = { number: this.model?.number, ...score };
    this.app.tell("score");
  }

  // A map comes after its model, and is shown together with it.
  async receiveMap(bytes) {
    const { scenes } = this.app;
    const map = readMap(bytes);
    await this.arriving;
    scenes.shelf.get(map.scene)?.take(map);
    if (map.scene === scenes.index) this.mapChanged();
  }

  mapChanged() {
    const { app } = this;
    app.detector.outlineNow();
    app.cursor.explain();
    requestAnimationFrame(() => {
      const number = app.scenes.data?.fused?.number;
      if (number === undefined) return;
      document.documentElement.dataset.map = number; // drawn in this frame
      mark("mapped");
      app.tell("map");
    });
  }

  // What explains pixels: the rule, and how this scene's sources enter it.
  prepareReport() {
    const { app, model, measure } = this;
    const { data, current } = app.scenes;
    this.report = null;
    if (!model || !data || current.usable === false) return;
    const { width, height, tiled } = current;
    if (!tiled && !data.complete) return;
    this.report = {
      ...model.rule,
      ...{ measure, width, height, fullWidth: width, fullHeight: height },
      ...{ truth: data.truth, segments: null, labels: null, colours: app.state.colours },
      sources: tiled ? [] : data.enter(model.rule),
    };
    app.tell("report");
  }
}
