// Detections: what of the fused map reaches the threshold, its outlines, and false alarms.

import { debounced, onceAFrame } from "./dom.js";
import { countDetections, detectionAt, detectionPath, firstReaching } from "./outlines.js";
import { contains, newShape, tidy } from "./shapes.js";

export class Detector {
  constructor(app, threshold) {
    Object.assign(this, { app, threshold, on: true, count: null });
    this.send = debounced((value) => app.connection.send({ type: "threshold", value }), 300);
    this.outline = onceAFrame(() => this.outlineNow());
    app.on("scene", () => this.clear());
  }

  get cut() {
    return this.threshold ?? (this.app.learned.outputLow < 0 ? 0 : 0.5);
  }

  get least() {
    return firstReaching(this.cut, this.app.learned.outputLow);
  }

  // The map, and how many pixels of the scene one of its pixels covers; it is smaller for large scenes.
  get map() {
    const { learned, scenes } = this.app;
    const { current, data } = scenes;
    if (!learned.model || !data?.fused) return null;
    return { ...data.fused, across: current.width / data.fused.width, down: current.height / data.fused.height };
  }

  set(value) {
    this.threshold = Math.min(1, Math.max(this.app.learned.outputLow, value));
    this.send(this.threshold);
    this.outline();
  }

  show(on) {
    this.on = on;
    this.outline();
  }

  clear() {
    this.count = null;
    this.app.views.detections = null;
  }

  outlineNow() {
    const { app, map } = this;
    this.clear();
    if (map && this.on) {
      const path = new Path2D();
      path.addPath(detectionPath(map, this.least), new DOMMatrix([map.across, 0, 0, map.down, 0, 0]));
      app.views.detections = path;
      this.count = countDetections(map, this.least);
    }
    app.views.draw();
    app.tell("detections");
  }

  // The detection at the chosen pixel, and whether that is labelled a target.
  at() {
    const { app, map } = this;
    if (!map) return null;
    const { x, y } = app.views.pixel;
    const region = detectionAt(map, Math.floor(x / map.across), Math.floor(y / map.down), this.least);
    if (!region) return null;
    const { spot } = app.cursor;
    const wanted = app.drawing.shapes.some((shape) => shape.label === "target" && contains(shape, spot));
    const points = region.points.map(([across, down]) => [across * map.across, down * map.down]);
    return { size: Math.round(region.size * map.across * map.down), points, wanted };
  }

  // Label the detection at the chosen pixel as not target.
  refuse() {
    const { app } = this;
    const detection = app.readOnly ? null : this.at();
    if (!detection || detection.wanted)
      return app.announce("No false alarm here: this pixel is not detected, or it is labelled a target.");
    app.cursor.release();
    app.drawing.add(tidy(newShape("polygon", "not", detection.points)), "false alarm");
  }
}
