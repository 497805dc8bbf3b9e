// The chosen pixel, which follows the pointer until it is held.

import { onceAFrame } from "./dom.js";

export class Cursor {
  constructor(app) {
    this.app = app;
    this.held = false;
    this.explainSoon = onceAFrame(() => this.explain());
    app.on("scene", () => (this.held = false));
  }

  // The middle of the pixel.
  get spot() {
    const { x, y } = this.app.views.pixel;
    return [x + 0.5, y + 0.5];
  }

  follow([x, y]) {
    if (!this.held) this.choose(Math.floor(x), Math.floor(y));
  }

  choose(x, y) {
    const { width, height } = this.app.scenes.current;
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    this.app.views.show(x, y);
    this.explainSoon();
  }

  // Move by whole pixels, within the scene; what was held is released.
  moveBy(dx, dy) {
    const { app } = this;
    const { width, height } = app.scenes.current;
    const { x, y } = app.views.pixel;
    const within = (value, size) => Math.min(size - 1, Math.max(0, value));
    this.held = false;
    this.choose(within(x + dx, width), within(y + dy, height));
    app.tools.follow();
    app.tell("held");
  }

  // Hold the pixel at a spot; if it, or its neighbour, is held already, release it.
  hold([x, y]) {
    const { app } = this;
    const [column, row] = [Math.floor(x), Math.floor(y)];
    const { pixel } = app.views;
    const again = this.held && Math.abs(pixel.x - column) <= 1 && Math.abs(pixel.y - row) <= 1;
    this.held = false;
    this.choose(column, row);
    this.held = !again;
    app.tell("held");
  }

  release() {
    this.held = false;
    this.app.tell("held");
  }

  explain() {
    this.app.tell("pixel", this.app.views.pixel);
  }
}
