// The labels of all scenes, and the history of what was done to them, without limit.

import { Events } from "./events.js";

const kept = ({ shapes, revision }) => ({ shapes, revision });

export class Labels extends Events {
  constructor(scenes) {
    super();
    this.scenes = scenes.map(kept);
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

  // Take the labels of scenes that were added after those that are here.
  extend(scenes) {
    this.scenes.push(...scenes.slice(this.scenes.length).map(kept));
  }

  // Put other shapes into a scene; `step` names in words what was done.
  edit(scene, shapes, step) {
    this.remember(scene, shapes, step);
    this.put(scene, shapes, step);
  }

  undo() {
    return this.travel(this.past, this.future, ({ before }) => before);
  }

  redo() {
    return this.travel(this.future, this.past, ({ after }) => after);
  }

  travel(from, to, shapesOf) {
    const edit = from.pop();
    if (!edit) return null;
    to.push(edit);
    this.put(edit.scene, shapesOf(edit), edit.step);
    return edit;
  }

  remember(scene, shapes, step) {
    this.past.push({ scene, before: this.of(scene), after: shapes, step });
    this.future = [];
  }

  put(scene, shapes, step) {
    this.scenes[scene] = { shapes, revision: this.revision(scene) + 1 };
    this.tell("change", { scene, step, ours: true });
  }

  // Take shapes that the server sent, such as imported ones; they can be undone like all others.
  receive(scene, shapes, revision) {
    if (revision <= this.revision(scene)) return;
    const step = "labels from a file";
    this.remember(scene, shapes, step);
    this.scenes[scene] = { shapes, revision };
    this.tell("change", { scene, step, ours: false });
  }
}
