// Which scene is in view, and what the page holds of it.

import { getJson } from "./connection.js";
import { Shelf } from "./shelf.js";

export class Scenes {
  constructor(app) {
    this.app = app;
    this.index = 0;
    this.shelf = new Shelf(app.state.scenes);
  }

  get current() {
    return this.app.state.scenes[this.index];
  }

  get data() {
    return this.shelf.get(this.index);
  }

  async show(index) {
    const { app } = this;
    app.tools.cancel();
    this.index = index;
    this.shelf.open(index);
    app.connection.send({ type: "view", scene: index });
    app.tell("scene");
    await this.load(index);
  }

  async load(index) {
    const { app, current } = this;
    if (current.usable === false) return;
    await app.attempt(async () => {
      const data = this.shelf.get(index);
      const { model } = app.learned;
      if (!current.tiled) await data.loadAll(app.state.sources.length);
      if (model && !current.tiled && !app.connection.connected) await data.loadFused(model.number);
    });
    if (this.index === index) app.tell("loaded");
  }

  // Take the state after files were added: what was done before can still be undone.
  adopt(state) {
    const { app } = this;
    const same = app.state.scenes.every(
      (scene, k) => scene.name === state.scenes[k]?.name && scene.usable === state.scenes[k]?.usable,
    );
    const fits = app.state.sources.length === state.sources.length && app.state.scenes.length > 0;
    if (!same || !fits) return location.reload();
    app.labels.extend(state.scenes);
    app.state = state;
    this.shelf.scenes = state.scenes;
    app.tell("state");
  }

  // Fetch the state anew, since other recipes make other planes.
  async refresh() {
    const { app } = this;
    const state = await app.attempt(() => getJson("state"));
    if (!state) return;
    const old = this.shelf;
    const shelf = new Shelf(state.scenes);
    const data = shelf.open(this.index);
    await app.attempt(() => data.loadAll(state.sources.length)); // the old pictures stay until then
    const { fused } = old.get(this.index) ?? {};
    if (fused) data.take(fused);
    this.shelf = shelf;
    this.adopt(state);
    old.close();
    await this.load(this.index);
  }
}
