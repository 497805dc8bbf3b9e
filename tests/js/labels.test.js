import assert from "node:assert/strict";
import { test } from "node:test";
import { Labels } from "../../src/bimichi/studio/static/labels.js";

const scenes = () => [
  { name: "a", shapes: ["old"], revision: 3 },
  { name: "b", shapes: [], revision: 0 },
];

test("undo and redo go through all scenes, each with a newer revision", () => {
  const labels = new Labels(scenes());
  const changes = [];
  labels.on("change", ({ scene, step, ours }) => changes.push(`${step} in ${scene}, ${ours ? "ours" : "theirs"}`));
  labels.edit(0, ["old", "new"], "box");
  labels.edit(1, ["other"], "stroke");
  assert.equal(labels.total, 3);
  assert.equal(labels.undo().step, "stroke");
  assert.equal(labels.undo().step, "box");
  assert.equal(labels.undo(), null);
  assert.deepEqual([labels.of(0), labels.of(1), labels.revision(0), labels.revision(1)], [["old"], [], 5, 2]);
  assert.equal(labels.redo().step, "box");
  assert.deepEqual(labels.of(0), ["old", "new"]);
  assert.equal(changes.length, 5);
  assert.ok(changes.every((change) => change.endsWith("ours")));
});

test("what is drawn after undo cannot be redone", () => {
  const labels = new Labels(scenes());
  labels.edit(0, [], "clearing");
  labels.undo();
  labels.edit(0, ["new"], "box");
  assert.equal(labels.redo(), null);
});

test("only newer labels of the server are taken, and can be undone", () => {
  const labels = new Labels(scenes());
  labels.receive(0, ["stale"], 3);
  assert.deepEqual(labels.of(0), ["old"]);
  labels.receive(0, ["imported"], 7);
  assert.deepEqual([labels.of(0), labels.revision(0)], [["imported"], 7]);
  labels.undo();
  assert.deepEqual([labels.of(0), labels.revision(0)], [["old"], 8]);
});

test("scenes that are added come after those that are here", () => {
  const labels = new Labels(scenes());
  labels.edit(1, ["drawn"], "box");
  labels.extend([...scenes(), { name: "c", shapes: ["theirs"], revision: 1 }]);
  assert.deepEqual([labels.of(1), labels.of(2), labels.scenes.length], [["drawn"], ["theirs"], 3]);
});
