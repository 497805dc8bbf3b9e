import assert from "node:assert/strict";
import { beforeEach, suite, test } from "node:test";
import { Drawing } from "../../src/bimichi/studio/static/drawing.js";
import { Events } from "../../src/bimichi/studio/static/events.js";
import { Labels } from "../../src/bimichi/studio/static/labels.js";
import { Toolbox } from "../../src/bimichi/studio/static/toolbox.js";
import { TOOLS } from "../../src/bimichi/studio/static/tools.js";

let app;
let tools;

// A studio of one scene, without a page and a server.
beforeEach(() => {
  app = new Events();
  Object.assign(app, { readOnly: false, shown: { labels: true }, said: [], sent: 0, shifted: null, at: [0, 0] });
  app.announce = (text) => app.said.push(text);
  app.sync = { send: () => (app.sent += 1) };
  app.scenes = { index: 0, current: { width: 100, height: 80 }, show: () => {}, data: null };
  app.views = { scale: 1, draw: () => {}, shift: (...by) => (app.shifted = by), zoomBy: (by) => (app.zoomed = by) };
  app.cursor = { hold: (spot) => (app.held = spot), spot: null };
  app.labels = new Labels([{ shapes: [], revision: 0 }]);
  app.drawing = new Drawing(app);
  tools = new Toolbox(app);
  app.tools = tools;
});

function drag(first, ...places) {
  tools.press(first);
  for (const place of places) tools.move(place, true);
  tools.release(places.at(-1) ?? first);
}

const click = (spot) => drag(spot);

function enterAt(x, y) {
  app.cursor.spot = [x + 0.5, y + 0.5];
  tools.follow();
  tools.step();
}

const drawn = () => app.drawing.shapes.map(({ kind, label, points }) => ({ kind, label, points }));
const box = (left, top, right, bottom) => {
  tools.choose("box");
  drag([left, top], [right, bottom]);
  return app.drawing.shapes.at(-1);
};

test("every tool has a name, a key and an icon of its own, and answers to the whole interface", () => {
  for (const field of ["id", "title", "key", "hint", "icon"])
    assert.equal(new Set(TOOLS.map((kind) => kind[field])).size, TOOLS.length, field);
  for (const tool of tools.tools.values())
    for (const method of ["press", "drag", "hover", "release", "step", "follow", "finish", "cancel"])
      assert.equal(typeof tool[method], "function", `${tool.constructor.id}.${method}`);
});

suite("box", () => {
  test("a drag draws, within the scene, one edit of the history", () => {
    drag([90, 10], [120, 30], [110, 50]);
    const points = [
      [90, 10],
      [100, 50],
    ];
    assert.deepEqual(drawn(), [{ kind: "box", label: "target", points }]);
    assert.deepEqual([app.labels.past.length, app.sent, app.drawing.draft], [1, 1, null]);
  });

  test("a click holds the pixel, and chooses the label there", () => {
    const { id } = box(10, 10, 30, 30);
    drag([20, 20], [22, 22]); // which slips
    assert.equal(app.drawing.selected, id);
    assert.deepEqual(app.held, [22, 22]);
    assert.equal(app.labels.past.length, 1);
  });

  test("by keys, the pixels of both corners are in it", () => {
    enterAt(30, 20);
    assert.ok(app.drawing.draft);
    enterAt(10, 25);
    assert.deepEqual(drawn()[0].points, [
      [10, 20],
      [31, 26],
    ]);
  });
});

suite("polygon", () => {
  beforeEach(() => tools.choose("polygon"));
  const corners = [
    [10, 10],
    [50, 10],
    [50, 50],
  ];

  test("the first corner, a double click, and Enter twice close it", () => {
    for (const close of [() => click([12, 12]), () => tools.finish([50, 50]), () => enterAt(50, 50)]) {
      corners.forEach(click);
      close();
    }
    assert.deepEqual(
      drawn().map(({ points }) => points),
      [corners, corners, corners],
    );
  });

  test("two corners are none, and can be given up", () => {
    corners.slice(0, 2).forEach(click);
    tools.finish([50, 10]);
    assert.deepEqual(drawn(), []);
    assert.equal(tools.cancel(), true);
    assert.equal(tools.cancel(), false);
  });
});

suite("brush", () => {
  beforeEach(() => tools.choose("brush"));

  test("a drag paints in the width of the toolbox", () => {
    tools.setWidth(200);
    drag([10, 10], [20, 10.1], [30, 10]);
    const [{ kind, points, width }] = app.drawing.shapes;
    assert.equal(kind, "stroke");
    assert.equal(width, 80);
    assert.deepEqual(points, [
      [10, 10],
      [30, 10],
    ]);
  });

  test("Enter begins and ends a stroke, which follows the cursor", () => {
    enterAt(10, 10);
    app.cursor.spot = [20.5, 30.5];
    tools.follow();
    enterAt(40, 10);
    assert.deepEqual(drawn()[0].points, [
      [10.5, 10.5],
      [20.5, 30.5],
      [40.5, 10.5],
    ]);
  });
});

test("superpixel: a click asks for the region there; a drag does not", async () => {
  const points = [
    [1, 1],
    [5, 1],
    [5, 5],
  ];
  const asked = [];
  app.attempt = (work) => work();
  app.scenes.data = { superpixel: async (...place) => asked.push(place) && { points } };
  tools.choose("superpixel");
  click([3.7, 2.2]);
  drag([3, 2], [40, 40]);
  click([300, 2]); // outside
  await new Promise(setImmediate);
  assert.deepEqual(asked, [[3, 2]]);
  assert.deepEqual(drawn(), [{ kind: "polygon", label: "target", points }]);
});

test("eraser: one edit for a drag, none where nothing was", () => {
  box(10, 10, 20, 20);
  box(40, 40, 50, 50);
  tools.choose("eraser");
  drag([0, 70], [1, 75]);
  assert.equal(app.labels.past.length, 2);
  drag([15, 15], [30, 30], [45, 45]);
  assert.deepEqual(drawn(), []);
  assert.equal(app.labels.past.length, 3);
  app.drawing.undo();
  assert.equal(drawn().length, 2);
  enterAt(15, 15);
  assert.equal(drawn().length, 1);
});

suite("ask", () => {
  let shape;
  beforeEach(() => {
    shape = box(10, 10, 30, 30);
    tools.choose("ask");
  });
  const points = () => app.drawing.shapes[0].points;

  test("a click chooses a label; a drag then moves it, and one of a handle resizes it", () => {
    click([20, 20]);
    assert.equal(app.drawing.selected, shape.id);
    drag([20, 20], [25, 20]);
    assert.deepEqual(points(), [
      [15, 10],
      [35, 30],
    ]);
    drag([35, 30], [40, 45]);
    assert.deepEqual(points(), [
      [15, 10],
      [40, 45],
    ]);
    assert.deepEqual(
      app.labels.past.map(({ step }) => step),
      ["box", "moving", "resizing"],
    );
  });

  test("a drag of what is not chosen moves the view; a double click enlarges it", () => {
    drag([20, 20], [30, 25]);
    assert.deepEqual(app.shifted, [-10, -5]);
    assert.deepEqual(points(), shape.points);
    tools.finish([20, 20]);
    assert.equal(app.zoomed, 2);
  });

  test("Alt and arrows nudge the chosen label, with Shift its corner", () => {
    app.drawing.select(shape.id);
    tools.nudge(1, 0, false);
    tools.nudge(0, 1, true);
    assert.deepEqual(points(), [
      [11, 10],
      [31, 31],
    ]);
  });

  test("another class is given to the chosen label", () => {
    app.drawing.select(shape.id);
    tools.chooseLabel("not");
    assert.equal(drawn()[0].label, "not");
    assert.equal(tools.label, "not");
  });

  test("choosing a tool that draws gives up the choice, and Escape a move", () => {
    click([20, 20]);
    tools.press([20, 20]);
    tools.move([30, 30], true);
    assert.equal(tools.cancel(), true);
    assert.equal(app.drawing.preview, null);
    tools.choose("brush");
    assert.equal(app.drawing.selected, null);
  });
});

test("a tab that only looks draws nothing, and can ask", () => {
  box(10, 10, 30, 30);
  app.readOnly = true;
  for (const { id } of TOOLS) {
    tools.choose(id);
    drag([12, 12], [28, 28]);
    enterAt(15, 15);
    tools.nudge(1, 1, false);
  }
  app.drawing.select(app.drawing.shapes[0].id);
  app.drawing.removeChosen();
  app.drawing.undo();
  assert.equal(app.labels.past.length, 1);
  assert.deepEqual(app.held, [15.5, 15.5]);
});
