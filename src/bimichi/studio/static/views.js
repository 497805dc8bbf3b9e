// The linked views: one zoom and one place for all. Each fills its frame, with the image whole in it at zoom 1.

import { Maps, twice } from "./report/maps.js";
import { bounds, handles, LABELS, outline } from "./shapes.js";

const HANDLE = 4; // half the side of a handle, in pixels of the screen
const WHEEL = 400;
const FAINT = 0.1;

export class Views extends Maps {
  constructor(app) {
    super(1, 1); // until there is a scene
    this.app = app;
    this.panning = false; // whether the space bar is held
    this.marked = null; // a region to look at: [x, y, width, height]
    this.detections = null;
    this.observed = new ResizeObserver(() => this.shift(0, 0));
    app.on("scene", () => this.setScene(app.scenes.current));
  }

  setScene({ width, height }) {
    if (this.width !== width || this.height !== height) {
      this.zoom = 1;
      this.pixel = { x: Math.floor(width / 2), y: Math.floor(height / 2) };
    }
    Object.assign(this, { width, height, marked: null });
    this.shift(0, 0);
  }

  setPanels(panels) {
    this.observed.disconnect();
    for (const { view } of this.panels) view.querySelector("canvas").width = 0; // gives its memory back at once
    this.panels = panels.map((panel) => ({
      ...panel,
      canvas: panel.view.querySelector("canvas"),
      cursor: panel.view.querySelector(".cursor"),
    }));
    for (const { view } of this.panels) this.observed.observe(view);
    this.shift(0, 0);
  }

  // Pixels of the image per pixel of the screen.
  get scale() {
    const view = this.panels[0]?.view;
    if (!view?.clientWidth) return 1;
    return Math.max(this.width / view.clientWidth, this.height / view.clientHeight) / this.zoom;
  }

  get wide() {
    return this.scale * (this.panels[0]?.view.clientWidth ?? 1);
  }

  get high() {
    return this.scale * (this.panels[0]?.view.clientHeight ?? 1);
  }

  // Until a view shows some ten pixels across, however large the scene is.
  get mostZoom() {
    return Math.max(super.mostZoom, this.width / 10, this.height / 10);
  }

  within(start, size, seen) {
    return seen >= size ? (size - seen) / 2 : super.within(start, size, seen);
  }

  listen(view) {
    view.addEventListener("pointerdown", (event) => this.press(event, view));
    view.addEventListener("pointermove", (event) => this.move(event, view));
    view.addEventListener("pointerup", (event) => this.release(event, view));
    view.addEventListener("pointercancel", (event) => this.cancel(event));
    view.addEventListener("dblclick", (event) => this.app.tools.finish(this.spot(event, view)));
    view.addEventListener("contextmenu", (event) => event.preventDefault());
    const wheel = (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey) this.shift((event.deltaX || event.deltaY) * this.scale, 0);
      else this.zoomBy(Math.exp((-event.deltaY * lines) / WHEEL), this.place(event, view));
    };
    view.addEventListener("wheel", wheel, { passive: false });
  }

  spot(event, view) {
    const { x, y } = this.place(event, view);
    return [x, y];
  }

  // The left button draws; the others, or the space bar, move the view; so do two fingers.
  press(event, view) {
    view.focus({ preventScroll: true });
    view.setPointerCapture(event.pointerId);
    const first = this.pointers.size === 0;
    const pans = event.button !== 0 || this.panning;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, pans, slipped: false });
    if (!first) {
      this.app.tools.cancel();
      for (const held of this.pointers.values()) held.pans = true;
    } else if (!pans) this.app.tools.press(this.spot(event, view), event);
  }

  move(event, view) {
    const spot = this.spot(event, view);
    const held = this.pointers.get(event.pointerId);
    if (!held?.pans) {
      this.app.cursor.follow(spot);
      this.app.tools.move(spot, Boolean(held), event);
      return;
    }
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (this.pointers.size === 2) {
      this.pinch(event, view);
      this.shift((-dx / 2) * this.scale, (-dy / 2) * this.scale);
    } else this.shift(-dx * this.scale, -dy * this.scale);
    Object.assign(held, { x: event.clientX, y: event.clientY });
  }

  release(event, view) {
    const held = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (held && !held.pans) this.app.tools.release(this.spot(event, view), event);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.app.tools.cancel();
  }

  // Bring a region into the middle, with some of what is around it.
  goTo([x, y, width, height]) {
    const view = this.panels[0].view;
    const whole = Math.max(this.width / view.clientWidth, this.height / view.clientHeight);
    const wanted = Math.max((4 * width) / view.clientWidth, (4 * height) / view.clientHeight);
    this.zoom = Math.min(this.mostZoom, Math.max(1, whole / wanted));
    this.left = x + width / 2 - this.wide / 2;
    this.top = y + height / 2 - this.high / 2;
    this.shift(0, 0);
  }

  drawPanel(panel) {
    const { view, canvas } = panel;
    const ratio = devicePixelRatio;
    const [across, down] = [view.clientWidth, view.clientHeight].map((n) => Math.round(n * ratio));
    if (!across || !down) return;
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    const context = canvas.getContext("2d");
    const unit = ratio / this.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, across, down);
    context.setTransform(unit, 0, 0, unit, -this.left * unit, -this.top * unit);
    context.imageSmoothingEnabled = unit < 1; // shrinking blends pixels, enlarging shows them
    context.imageSmoothingQuality = "high";
    this.app.pictures.draw(context, panel.layer);
    this.drawMarks(context, this.scale, panel.layer === "photo" || panel.layer.startsWith("source"));
  }

  // Everything over the pictures; `hair` is one pixel of the screen.
  drawMarks(context, hair, filled) {
    context.lineJoin = "round";
    context.lineCap = "round";
    const thin = [{ path: this.detections, colour: "#c2185b", width: 1 }]; // so that the map itself can be seen
    if (this.detections) this.stroke(context, filled ? twice(this.detections, "#c2185b") : thin, hair * 0.8);
    const { visible, selected, draft } = this.app.drawing;
    for (const shape of visible) this.drawShape(context, shape, hair, filled, shape.id === selected);
    if (draft) this.drawShape(context, draft, hair, filled, false, true);
    if (this.marked) this.drawMarked(context, hair);
  }

  stroke(context, strokes, hair) {
    for (const { path, colour, width } of strokes) {
      context.strokeStyle = colour;
      context.lineWidth = width * hair;
      context.stroke(path);
    }
  }

  // Maps of what was learned are not covered by the labels they were learned from.
  drawShape(context, shape, hair, filled, selected, draft = false) {
    const path = outline(shape);
    const { colour } = LABELS[shape.label];
    context.setLineDash(draft ? [6 * hair, 4 * hair] : shape.label === "ignore" ? [2 * hair, 4 * hair] : []);
    if (shape.kind === "stroke") {
      context.globalAlpha = selected ? 0.7 : filled ? 0.45 : 0.2;
      context.setLineDash([]);
      this.stroke(context, [{ path, colour, width: shape.width }], 1);
      context.globalAlpha = 1;
    } else {
      context.globalAlpha = selected ? 2 * FAINT : FAINT;
      context.fillStyle = colour;
      if (filled && (!draft || shape.kind === "polygon")) context.fill(path);
      context.globalAlpha = 1;
      this.stroke(context, twice(path, colour), hair);
    }
    context.setLineDash([]);
    if (selected) this.drawHandles(context, shape, hair);
  }

  drawHandles(context, shape, hair) {
    const size = HANDLE * hair;
    context.lineWidth = hair;
    context.strokeStyle = "#111111";
    context.fillStyle = "#ffffff";
    for (const { point } of handles(shape)) {
      context.fillRect(point[0] - size, point[1] - size, 2 * size, 2 * size);
      context.strokeRect(point[0] - size, point[1] - size, 2 * size, 2 * size);
    }
    if (shape.kind !== "stroke") return;
    const [left, top, right, bottom] = bounds(shape);
    context.setLineDash([3 * hair, 3 * hair]);
    context.strokeRect(left, top, right - left, bottom - top);
    context.setLineDash([]);
  }

  drawMarked(context, hair) {
    const path = new Path2D();
    path.rect(...this.marked);
    context.setLineDash([8 * hair, 5 * hair]);
    this.stroke(
      context,
      [
        { path, colour: "#ffffff", width: 4 },
        { path, colour: "#111111", width: 2 },
      ],
      hair,
    );
    context.setLineDash([]);
  }
}
