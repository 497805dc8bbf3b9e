// The labels of the scene in view: which is chosen, what is being drawn, and every edit of them.

import { mark } from "./events.js";
import { clipped, newShape, tidy } from "./shapes.js";

export class Drawing {
  constructor(app) {
    this.app = app;
    this.selected = null; // the id of the chosen label
    this.draft = null; // the shape that is being drawn
    this.preview = null; // all labels as they would be after what is being done
    app.labels.on("change", (change) => this.changed(change));
    app.on("scene", () => (this.selected = null));
  }

  get shapes() {
    return this.app.labels.of(this.app.scenes.index);
  }

  get visible() {
    return this.app.shown.labels ? (this.preview ?? this.shapes) : [];
  }

  get chosen() {
    return this.shapes.find((shape) => shape.id === this.selected) ?? null;
  }

  changed({ scene, step, ours }) {
    const { app } = this;
    if (scene !== app.scenes.index) app.scenes.show(scene);
    if (!this.chosen) this.selected = null;
    if (ours) app.sync.send(scene);
    mark("edited");
    app.views.draw();
    app.tell("labels", { scene, step });
  }

  select(id) {
    if (this.selected === id) return;
    this.selected = id;
    this.app.views.draw();
    this.app.tell("selected");
  }

  // The shape, as far as it lies in the scene.
  clip(shape) {
    const { width, height } = this.app.scenes.current;
    return clipped(shape, width, height);
  }

  setDraft(shape) {
    this.draft = shape && this.clip(shape);
    this.app.views.draw();
  }

  setPreview(shapes) {
    this.preview = shapes;
    this.app.views.draw();
  }

  // Put shapes in place of all labels; `step` names what was done, for undo.
  edit(shapes, step) {
    this.app.labels.edit(this.app.scenes.index, shapes, step);
  }

  add(shape, step) {
    this.edit([...this.shapes, shape], step);
  }

  replace(shape, step) {
    this.edit(
      this.shapes.map((own) => (own.id === shape.id ? shape : own)),
      step,
    );
  }

  removeChosen() {
    if (!this.selected || this.app.readOnly) return;
    this.edit(
      this.shapes.filter((own) => own.id !== this.selected),
      "removing a label",
    );
  }

  async addSuperpixel([x, y], label) {
    const { app } = this;
    const { index, current, data } = app.scenes;
    const [column, row] = [Math.floor(x), Math.floor(y)];
    if (column < 0 || row < 0 || column >= current.width || row >= current.height) return;
    const region = await app.attempt(() => data.superpixel(column, row));
    if (!region) return;
    const shape = tidy(newShape("polygon", label, region.points));
    app.labels.edit(index, [...app.labels.of(index), shape], "superpixel"); // another scene may be in view now
  }

  undo() {
    this.travel(() => this.app.labels.undo(), "Undone", "Nothing to undo.");
  }

  redo() {
    this.travel(() => this.app.labels.redo(), "Done again", "Nothing to redo.");
  }

  travel(go, done, nothing) {
    const { app } = this;
    if (app.readOnly) return;
    app.tools.cancel();
    const edit = go();
    app.announce(edit ? `${done}: ${edit.step}.` : nothing);
  }
}
