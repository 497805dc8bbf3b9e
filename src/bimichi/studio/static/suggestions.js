// What to label next.

import { getJson } from "./connection.js";

export class Suggestions {
  constructor(app) {
    this.app = app;
    this.items = [];
    this.number = null; // of the model that they are for
    app.on("forgotten", () => this.set([]));
  }

  set(items) {
    this.items = items;
    this.app.tell("suggestions");
  }

  async refresh() {
    const number = this.app.learned.model?.number;
    const answer = await getJson("suggestions").catch(() => null);
    if (!answer) return;
    this.number = number;
    this.set(answer.items ?? []);
  }

  async goTo(k) {
    const { app } = this;
    const item = this.items[k];
    if (!item) return;
    const [x, y, width, height] = item.box;
    item.visited = true;
    if (item.scene !== app.scenes.index) await app.scenes.show(item.scene);
    app.views.marked = item.box;
    app.views.goTo(item.box);
    app.cursor.release();
    app.cursor.choose(Math.floor(x + width / 2), Math.floor(y + height / 2));
    app.announce(item.reason);
    app.tell("suggestions");
  }

  goNext() {
    if (!this.items.length) return this.app.announce("Nothing is listed to label next.");
    const next = this.items.findIndex((item) => !item.visited);
    this.goTo(next < 0 ? 0 : next);
  }
}
