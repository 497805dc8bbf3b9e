// The labels of all scenes, and the history of what was done to them, without limit.

export class Labels extends EventTarget {
  constructor(scenes) {
    super();
    this.scenes = scenes.map(({ shapes, revision }) => ({ shapes, revision }));
    this.past = [];
    this.future = [];
  }

  of(scene) {
    return this.scenes[scene].shapes;
  }

  revision(scene) {
    return this.scenes[scene].revision;
  }

  get total() {
    return this.scenes.reduce((sum, { shapes }) => sum + shapes.length, 0);
  }

  // Put other shapes into a scene; `what` names the step in words.
  edit(scene, shapes, what) {
    this.past.push({ scene, before: this.of(scene), after: shapes, what });
    this.future = [];
    this.put(scene, shapes, what);
  }

  add(scene, shape, what) {
    this.edit(scene, [...this.of(scene), shape], what);
  }

  replace(scene, shape, what) {
    const shapes = this.of(scene).map((own) => (own.id === shape.id ? shape : own));
    this.edit(scene, shapes, what);
  }

  remove(scene, id, what) {
    this.edit(
      scene,
      this.of(scene).filter((own) => own.id !== id),
      what,
    );
  }

  undo() {
    const step = this.past.pop();
    if (!step) return null;
    this.future.push(step);
    this.put(step.scene, step.before, step.what);
    return step;
  }

  redo() {
    const step = this.future.pop();
    if (!step) return null;
    this.past.push(step);
    this.put(step.scene, step.after, step.what);
    return step;
  }

  put(scene, shapes, what) {
    this.scenes[scene] = { shapes, revision: this.revision(scene) + 1 };
    this.dispatchEvent(new CustomEvent("change", { detail: { scene, what, ours: true } }));
  }

  // Shapes that the server sent, such as imported ones; they can be undone like all others.
  receive(scene, shapes, revision) {
    if (revision <= this.revision(scene)) return;
    this.past.push({ scene, before: this.of(scene), after: shapes, what: "labels from a file" });
    this.future = [];
    this.scenes[scene] = { shapes, revision };
    this.dispatchEvent(new CustomEvent("change", { detail: { scene, what: "labels from a file", ours: false } }));
  }
}
