// The tools. All have the interface of `Tool`; a tool keeps what it needs while it draws, and nothing else. A shape is
// part of the history only when it is complete.

import {
  apart,
  contains,
  erased,
  handles,
  moved,
  newShape,
  reshaped,
  shapeAt,
  simplified,
  tidy,
  worthKeeping,
} from "./shapes.js";

const SLIP = 4; // pixels of the screen that a click may slip
const REACH = 9; // pixels of the screen around a handle

// Spots are [x, y] in pixels of the scene. A tool overrides what it answers to.
class Tool {
  static draws = true; // labels, which a tab that only looks may not
  static sized = false; // whether the width of the toolbox matters

  constructor(toolbox) {
    this.toolbox = toolbox;
    this.app = toolbox.app;
    this.start = null; // where the pointer was pressed
  }

  press(_spot, _event) {}

  // The pointer moves while it is pressed.
  drag(_spot, _event) {}

  // The pointer moves while it is not.
  hover(_spot) {}

  release(_spot, _event) {}

  // Enter at the cursor.
  step(_spot) {}

  // The cursor was moved by key.
  follow(spot) {
    this.hover(spot);
  }

  // Double click.
  finish(_spot) {}

  // Whether something is begun that can be given up.
  get busy() {
    return Boolean(this.drawing.draft);
  }

  cancel() {
    this.start = null;
    this.drawing.preview = null;
    this.drawing.setDraft(null);
  }

  get drawing() {
    return this.app.drawing;
  }

  // Pixels of the scene per pixel of the screen.
  get scale() {
    return this.app.views.scale;
  }

  slipped(spot) {
    return this.start && apart(spot, this.start) > SLIP * this.scale;
  }

  draft(kind, points) {
    const { label, width } = this.toolbox;
    this.drawing.setDraft(newShape(kind, label, points, width));
  }

  // Make the draft a label, if anything is left of it.
  keep(step) {
    const shape = this.drawing.draft && tidy(this.drawing.draft);
    this.cancel();
    if (shape && worthKeeping(shape)) this.drawing.add(shape, step);
  }
}

// Holds pixels, and chooses, moves and resizes labels; beside them, it moves the view.
class Ask extends Tool {
  static id = "ask";
  static title = "Ask";
  static key = "v";
  static hint = "Click a pixel to hold it, a label to move or resize it; drag to move the view.";
  static icon = "M4 2l8 7-4 .5 2.5 4.5-2 1L6 10.500 3.500 13z";
  static draws = false;

  #held = null; // { hit, shape, handle, going, now }: what is under the pointer, and what of it is dragged

  get busy() {
    return super.busy || Boolean(this.#held?.shape);
  }

  cancel() {
    this.#held = null;
    super.cancel();
  }

  press(spot, event) {
    const { drawing, scale } = this;
    const chosen = this.app.readOnly ? null : drawing.chosen;
    const reach = (event?.pointerType === "touch" ? 2 * REACH : REACH) * scale;
    const handle = chosen && handles(chosen).find(({ point }) => apart(point, spot) < reach);
    const hit = handle ? chosen : shapeAt(drawing.shapes, spot, 2 * scale);
    this.#held = { hit, handle, shape: hit && hit === chosen ? hit : null, going: false, now: null };
  }

  drag(spot) {
    const { start, drawing } = this;
    const held = this.#held;
    if (!held || !start || !(held.going || this.slipped(spot))) return;
    held.going = true;
    const by = [spot[0] - start[0], spot[1] - start[1]];
    if (!held.shape) return this.app.views.shift(-by[0], -by[1]);
    const other = held.handle ? reshaped(held.shape, held.handle.at, spot) : moved(held.shape, ...by);
    held.now = drawing.clip(other);
    drawing.setPreview(drawing.shapes.map((own) => (own.id === other.id ? held.now : own)));
  }

  release(spot) {
    const held = this.#held;
    this.cancel();
    if (held?.now) {
      const now = tidy(held.now);
      if (worthKeeping(now)) this.drawing.replace(now, held.handle ? "resizing" : "moving");
    } else if (held && !held.going) this.#choose(held.hit, spot);
  }

  step(spot) {
    this.#choose(shapeAt(this.drawing.shapes, spot), spot);
  }

  finish([x, y]) {
    this.app.views.zoomBy(2, { x, y });
  }

  #choose(shape, spot) {
    this.drawing.select(shape?.id ?? null);
    this.app.cursor.hold(spot);
  }
}

class Box extends Tool {
  static id = "box";
  static title = "Box";
  static key = "b";
  static hint = "Drag a box around each target.";
  static icon = "M2.500 3.500h11v9h-11z";

  #first = null; // the corner that was put by key

  cancel() {
    this.#first = null;
    super.cancel();
  }

  drag(spot) {
    if (this.start && (this.drawing.draft || this.slipped(spot))) this.draft("box", [this.start, spot]);
  }

  // A click chooses what is there, as that of Ask does.
  release(spot) {
    if (this.drawing.draft && this.start) return this.keep("box");
    const hit = this.drawing.shapes.find((shape) => contains(shape, spot));
    this.drawing.select(hit?.id ?? null);
    this.app.cursor.hold(spot);
  }

  hover(spot) {
    if (this.#first) this.draft("box", boxOfPixels(this.#first, spot));
  }

  step(spot) {
    const last = this.#first !== null;
    this.#first ??= spot;
    this.draft("box", boxOfPixels(this.#first, spot));
    if (last) this.keep("box");
  }
}

// By keys, a box is of whole pixels, those of both corners included.
function boxOfPixels(start, end) {
  const [across, down] = [0, 1].map((k) => [Math.min(start[k], end[k]) - 0.5, Math.max(start[k], end[k]) + 0.5]);
  return [
    [across[0], down[0]],
    [across[1], down[1]],
  ];
}

class Polygon extends Tool {
  static id = "polygon";
  static title = "Polygon";
  static key = "p";
  static hint = "Click corners; double-click, Enter twice or the first corner closes it.";
  static icon = "M8 2l6 4.500-2.500 7h-7L2 6.500z";

  #corners = [];

  get busy() {
    return super.busy || this.#corners.length > 0;
  }

  cancel() {
    this.#corners = [];
    super.cancel();
  }

  release(spot) {
    const { scale } = this;
    const [first] = this.#corners;
    const last = this.#corners.at(-1);
    if (this.#corners.length > 2 && apart(first, spot) < REACH * scale) return this.finish();
    if (last && apart(last, spot) < scale) return;
    this.#corners.push(spot);
    this.draft("polygon", [...this.#corners, spot]);
  }

  hover(spot) {
    if (this.#corners.length) this.draft("polygon", [...this.#corners, spot]);
  }

  drag(spot) {
    this.hover(spot);
  }

  step(spot) {
    const last = this.#corners.at(-1); // which a mouse puts anywhere in a pixel
    if (last?.every((value, k) => Math.floor(value) === Math.floor(spot[k]))) return this.finish();
    this.release(spot);
  }

  finish() {
    if (this.#corners.length < 3) return;
    this.draft("polygon", this.#corners);
    this.keep("polygon");
  }
}

class Brush extends Tool {
  static id = "brush";
  static title = "Brush";
  static key = "s";
  static hint = "Drag to paint; [ and ] change the width.";
  static icon =
    "M13.500 2.500c-3 1-6 4-7 6l1.500 1.500c2-1 5-4 6-7zM5.500 9.500c-2 0-2 2.500-4 4 3 .5 5.500 0 5.500-2.500z";
  static sized = true;

  #trail = null;

  cancel() {
    this.#trail = null;
    super.cancel();
  }

  press(spot) {
    this.#trail = [spot];
    this.draft("stroke", this.#trail);
  }

  // With the places between two frames, where the browser tells them.
  drag(spot, event) {
    if (!this.#trail) return;
    const { views } = this.app;
    const passed = event?.getCoalescedEvents?.() ?? [];
    this.#trail.push(...(passed.length > 1 ? passed.map((place) => views.spot(place, event.currentTarget)) : [spot]));
    this.draft("stroke", this.#trail);
  }

  release() {
    if (!this.#trail) return;
    this.draft("stroke", simplified(this.#trail, Math.max(0.3, 0.5 * this.scale)));
    this.keep("stroke");
  }

  step(spot) {
    if (this.#trail) this.release();
    else this.press(spot);
  }

  follow(spot) {
    this.drag(spot);
  }
}

class Superpixel extends Tool {
  static id = "superpixel";
  static title = "Superpixel";
  static key = "c";
  static hint = "Click a region of similar pixels to label it.";
  static icon = "M2 6l3-4 4 1 5 1-1 4 1 5-5 1-4-1-3-3zM5 2l1.500 6L2 10M6.500 8L13 8M6.500 8L9 14";

  release(spot) {
    if (!this.slipped(spot)) this.step(spot);
  }

  step(spot) {
    this.drawing.addSuperpixel(spot, this.toolbox.label);
  }
}

class Eraser extends Tool {
  static id = "eraser";
  static title = "Eraser";
  static key = "e";
  static hint = "Drag over labels: strokes are cut, other labels go.";
  static icon = "M2.500 10.500l7-7 4 4-6 6h-2.500zM6 7l4 4";
  static sized = true;

  #before = null; // the labels that there were

  cancel() {
    this.#before = null;
    super.cancel();
  }

  press(spot) {
    this.#before = this.drawing.shapes;
    this.drag(spot);
  }

  drag(spot) {
    if (!this.#before) return;
    this.drawing.setPreview(erased(this.drawing.preview ?? this.#before, spot, this.toolbox.width / 2));
  }

  release() {
    const [before, after] = [this.#before, this.drawing.preview];
    this.cancel();
    const changed = after && (after.length !== before.length || after.some((shape, k) => shape !== before[k]));
    if (changed) this.drawing.edit(after, "erasing");
  }

  step(spot) {
    this.press(spot);
    this.release();
  }
}

export const TOOLS = [Ask, Box, Polygon, Brush, Superpixel, Eraser];
