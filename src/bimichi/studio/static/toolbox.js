// The tools side by side: the one in hand, and what all of them share: the class, and the width of brush and eraser.

import { moved, tidy, worthKeeping } from "./shapes.js";
import { TOOLS } from "./tools.js";

export const WIDTHS = [1, 80]; // of brush and eraser, in pixels of the scene

export class Toolbox {
  constructor(app) {
    this.app = app;
    this.label = "target";
    this.width = 12;
    this.tools = new Map(TOOLS.map((Kind) => [Kind.id, new Kind(this)]));
    this.tool = this.tools.get("box");
  }

  // The kind of the tool in hand.
  get kind() {
    return this.tool.constructor;
  }

  usable(kind) {
    return !kind.draws || !this.app.readOnly;
  }

  choose(id) {
    this.cancel();
    this.tool = this.tools.get(id);
    if (this.kind.draws) this.app.drawing.select(null);
    this.app.tell("tools");
  }

  // The class of what will be drawn, and of the chosen label.
  chooseLabel(label) {
    const { drawing } = this.app;
    this.label = label;
    const shape = drawing.chosen;
    if (shape && shape.label !== label) drawing.replace({ ...shape, label }, "another class");
    this.app.tell("tools");
  }

  setWidth(width) {
    const [least, most] = WIDTHS;
    this.width = Math.min(most, Math.max(least, width));
    this.app.tell("tools");
  }

  press(spot, event) {
    if (!this.usable(this.kind)) return;
    this.tool.start = spot;
    this.tool.press(spot, event);
  }

  move(spot, held, event) {
    if (!this.usable(this.kind)) return;
    if (held) this.tool.drag(spot, event);
    else this.tool.hover(spot);
  }

  release(spot, event) {
    if (!this.usable(this.kind)) return;
    this.tool.release(spot, event);
    this.tool.start = null;
  }

  // Enter at the cursor.
  step() {
    if (this.usable(this.kind)) this.tool.step(this.app.cursor.spot);
  }

  // The cursor was moved by key.
  follow() {
    if (this.usable(this.kind)) this.tool.follow(this.app.cursor.spot);
  }

  // Double click.
  finish(spot) {
    if (this.usable(this.kind)) this.tool.finish(spot);
  }

  // Give up what is being drawn; whether there was any.
  cancel() {
    const { busy } = this.tool;
    this.tool.cancel();
    return busy;
  }

  // Move or resize the chosen label by key.
  nudge(dx, dy, resize) {
    const { drawing, readOnly } = this.app;
    const shape = drawing.chosen;
    if (!shape || readOnly) return;
    let other = moved(shape, dx, dy);
    if (resize && shape.kind === "box") other = { ...shape, points: [shape.points[0], other.points[1]] };
    const now = tidy(drawing.clip(other));
    if (worthKeeping(now)) drawing.replace(now, resize ? "resizing" : "moving");
  }
}
