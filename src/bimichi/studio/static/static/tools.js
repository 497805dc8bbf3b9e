// The tools. Each has press, move, release for pointers, and step for the Enter key at the cursor; what is not needed
// is left out. A shape is part of the history only when it is complete.

import {
  clipped,
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

export const TOOLS = {
  ask: {
    title: "Ask",
    key: "v",
    hint: "Click a pixel to hold it, a label to move or resize it; drag to move the view.",
  },
  box: { title: "Box", key: "b", hint: "Drag a box around each target." },
  polygon: { title: "Polygon", key: "p", hint: "Click corners; double-click, Enter twice or the first corner closes it." },
  brush: { title: "Brush", key: "s", hint: "Drag to paint; [ and ] change the width." },
  superpixel: { title: "Superpixel", key: "c", hint: "Click a region of similar pixels to label it." },
  eraser: { title: "Eraser", key: "e", hint: "Drag over labels: strokes are cut, other labels go." },
};

export class Tools {
  constructor(app) {
    this.app = app;
    this.name = "box";
    this.label = "target";
    this.width = 12;
    this.start = null;
    this.corners = [];
    this.held = null; // what `ask` drags
  }

  choose(name) {
    this.cancel();
    this.name = name;
    if (name !== "ask") this.app.select(null);
    this.app.refreshTools();
  }

  chooseLabel(label) {
    this.label = label;
    const { app } = this;
    const shape = app.shapes.find((own) => own.id === app.selected);
    if (shape && shape.label !== label) app.labels.replace(app.scene, { ...shape, label }, "another class");
    app.refreshTools();
  }

  call(what, ...given) {
    if (this.name !== "ask" && this.app.readOnly) return;
    this[`${what}${this.name[0].toUpperCase()}${this.name.slice(1)}`]?.(...given);
  }

  press(spot, event) {
    this.start = spot;
    this.call("press", spot, event);
  }

  move(spot, held, event) {
    this.call(held ? "drag" : "hover", spot, event);
  }

  release(spot, event) {
    this.call("release", spot, event);
    this.start = null;
  }

  // Enter at the cursor.
  step() {
    const { x, y } = this.app.views.pixel;
    this.call("step", [x + 0.5, y + 0.5]);
  }

  // The cursor moved by key.
  follow() {
    const { x, y } = this.app.views.pixel;
    this.call("hover", [x + 0.5, y + 0.5]);
    this.call("follow", [x + 0.5, y + 0.5]);
  }

  // Double click.
  finish(spot) {
    if (this.name === "polygon") this.closePolygon();
    else if (this.name === "ask") this.app.views.zoomBy(2, { x: spot[0], y: spot[1] });
  }

  // Whether there was something to give up.
  cancel() {
    const busy = Boolean(this.app.views.draft || this.corners.length || this.held?.shape);
    Object.assign(this, { start: null, corners: [], held: null, before: null, first: null, trail: null });
    this.app.preview = null;
    this.app.views.draft = null;
    this.app.views.draw();
    return busy;
  }

  draft(kind, points) {
    const { views, current } = this.app;
    views.draft = clipped(newShape(kind, this.label, points, this.width), current.width, current.height);
    views.draw();
  }

  keep(what) {
    const shape = this.app.views.draft && tidy(this.app.views.draft);
    this.cancel();
    if (!shape || !worthKeeping(shape)) return;
    this.app.labels.add(this.app.scene, shape, what);
  }

  slipped(spot) {
    const { scale } = this.app.views;
    return this.start && Math.hypot(spot[0] - this.start[0], spot[1] - this.start[1]) > SLIP * scale;
  }

  // Boxes
  dragBox(spot) {
    if (this.start && (this.app.views.draft || this.slipped(spot))) this.draft("box", [this.start, spot]);
  }

  releaseBox(spot) {
    if (this.app.views.draft && this.start) return this.keep("box");
    this.app.explainBoxClick(spot);
  }

  hoverBox(spot) {
    if (this.first) this.draft("box", boxOfPixels(this.first, spot));
  }

  stepBox(spot) {
    if (!this.first) {
      this.first = spot;
      this.draft("box", boxOfPixels(spot, spot));
    } else {
      this.draft("box", boxOfPixels(this.first, spot));
      this.keep("box");
    }
  }

  // Polygons
  releasePolygon(spot) {
    const { scale } = this.app.views;
    const [first] = this.corners;
    const near = first && Math.hypot(first[0] - spot[0], first[1] - spot[1]) < REACH * scale;
    if (near && this.corners.length > 2) return this.closePolygon();
    const last = this.corners.at(-1);
    if (last && Math.hypot(last[0] - spot[0], last[1] - spot[1]) < scale) return;
    this.corners.push(spot);
    this.draft("polygon", [...this.corners, spot]);
  }

  hoverPolygon(spot) {
    if (this.corners.length) this.draft("polygon", [...this.corners, spot]);
  }

  dragPolygon(spot) {
    this.hoverPolygon(spot);
  }

  stepPolygon(spot) {
    const last = this.corners.at(-1); // which a mouse puts anywhere in a pixel
    if (last && last.every((value, k) => Math.floor(value) === Math.floor(spot[k]))) return this.closePolygon();
    this.releasePolygon(spot);
  }

  closePolygon() {
    if (this.corners.length < 3) return;
    this.draft("polygon", this.corners);
    this.keep("polygon");
  }

  // Strokes
  pressBrush(spot) {
    this.trail = [spot];
    this.draft("stroke", this.trail);
  }

  dragBrush(spot, event) {
    if (!this.trail) return;
    const more = event?.getCoalescedEvents?.() ?? [];
    const places = more.length > 1 ? more.map((one) => this.app.views.spot(one, event.currentTarget)) : [spot];
    this.trail.push(...places);
    this.draft("stroke", this.trail);
  }

  releaseBrush() {
    if (!this.trail) return;
    this.draft("stroke", simplified(this.trail, Math.max(0.3, 0.5 * this.app.views.scale)));
    this.keep("stroke");
  }

  stepBrush(spot) {
    if (this.trail) return this.releaseBrush();
    this.pressBrush(spot);
  }

  followBrush(spot) {
    if (this.trail) this.dragBrush(spot);
  }

  // Superpixels
  releaseSuperpixel(spot) {
    if (!this.slipped(spot)) this.app.addSuperpixel(spot, this.label);
  }

  stepSuperpixel(spot) {
    this.app.addSuperpixel(spot, this.label);
  }

  // The eraser
  pressEraser(spot) {
    this.before = this.app.shapes;
    this.dragEraser(spot);
  }

  dragEraser(spot) {
    if (!this.before) return;
    this.app.preview = erased(this.app.preview ?? this.before, spot, this.width / 2);
    this.app.views.draw();
  }

  releaseEraser() {
    const after = this.app.preview;
    const changed =
      after && (after.length !== this.before.length || after.some((shape, k) => shape !== this.before[k]));
    this.cancel();
    if (changed) this.app.labels.edit(this.app.scene, after, "erasing");
  }

  stepEraser(spot) {
    this.pressEraser(spot);
    this.releaseEraser();
  }

  // Asking, choosing, moving and resizing
  pressAsk(spot, event) {
    const { app } = this;
    const { scale } = app.views;
    const chosen = app.shapes.find((shape) => shape.id === app.selected);
    const reach = (event?.pointerType === "touch" ? 2 * REACH : REACH) * scale;
    const near = ({ point }) => Math.hypot(point[0] - spot[0], point[1] - spot[1]) < reach;
    const handle = chosen && !app.readOnly && handles(chosen).find(near);
    const shape = handle ? chosen : shapeAt(app.shapes, spot, 2 * scale);
    this.held = {
      shape: shape && shape.id === app.selected && !app.readOnly ? shape : null,
      handle,
      left: app.views.left,
      top: app.views.top,
    };
    this.hit = shape;
  }

  dragAsk(spot) {
    const { app, held, start } = this;
    if (!held || !start || !(held.going || this.slipped(spot))) return;
    held.going = true;
    if (!held.shape) {
      app.views.shift(start[0] - spot[0], start[1] - spot[1]);
      return;
    }
    const by = [spot[0] - start[0], spot[1] - start[1]];
    const other = held.handle ? reshaped(held.shape, held.handle.at, spot) : moved(held.shape, ...by);
    held.now = clipped(other, app.current.width, app.current.height);
    app.preview = app.shapes.map((own) => (own.id === other.id ? held.now : own));
    app.views.draw();
  }

  releaseAsk(spot) {
    const { app, held, hit } = this;
    this.cancel();
    if (held?.now) {
      const now = tidy(held.now);
      if (worthKeeping(now)) app.labels.replace(app.scene, now, held.handle ? "resizing" : "moving");
    } else if (held && !held.going) {
      app.select(hit?.id ?? null);
      app.hold(spot);
    }
  }

  stepAsk(spot) {
    this.app.select(shapeAt(this.app.shapes, spot)?.id ?? null);
    this.app.hold(spot);
  }

  // Keys that move or resize the chosen label.
  nudge(dx, dy, resize) {
    const { app } = this;
    const shape = app.shapes.find((own) => own.id === app.selected);
    if (!shape || app.readOnly) return;
    let other = moved(shape, dx, dy);
    if (resize && shape.kind === "box") other = { ...shape, points: [shape.points[0], other.points[1]] };
    const now = tidy(clipped(other, app.current.width, app.current.height));
    if (worthKeeping(now)) app.labels.replace(app.scene, now, resize ? "resizing" : "moving");
  }
}

// By keys, a box is of whole pixels, those of both corners included.
function boxOfPixels(one, other) {
  const ends = [0, 1].map((k) => [Math.min(one[k], other[k]) - 0.5, Math.max(one[k], other[k]) + 0.5]);
  return [
    [ends[0][0], ends[1][0]],
    [ends[0][1], ends[1][1]],
  ];
}
