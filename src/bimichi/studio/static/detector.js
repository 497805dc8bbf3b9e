// Detections: what of the fused map reaches the threshold, its outlines, and false alarms.

import { debounced, onceAFrame } from "./dom.js";
import { countDetections, detectionAt, detectionPath, firstReaching } from "./outlines.js";
import { contains, newShape, tidy } from "./shapes.js";

export class Detector {
  constructor(app, threshold) {
    Object.assign(this, { app, threshold, on: true, found: null });
    this.send = debounced((value) => app.connection.send({ type: "threshold", value }), 300);
    this.outline = onceAFrame(() => this.outlineNow());
  }

  get cut() {
    return this.threshold ?? (this.app.outputLow < 0 ? 0 : 0.5);
  }

  get least() {
    return firstReaching(this.cut, this.app.outputLow);
  }

  // The map, and how many pixels of the scene one of its pixels covers; it is smaller for large scenes.
  get map() {
    const { data, model, current } = this.app;
    if (!model || !data?.fused) return null;
    return { ...data.fused, across: current.width / data.fused.width, down: current.height / data.fused.height };
  }

  set(value) {
    this.threshold = Math.min(1, Math.max(this.app.outputLow, value));
    this.send(this.threshold);
    this.outline();
  }

  show(on) {
    this.on = on;
    this.outline();
  }

  clear() {
    this.found = null;
    this.app.views.detections = null;
  }

  outlineNow() {
    const { app, map } = this;
    this.clear();
    if (map && this.on) {
      const path = new Path2D();
      path.addPath(detectionPath(map, this.least), new DOMMatrix([map.across, 0, 0, map.down, 0, 0]));
      app.views.detections = path;
      this.found = countDetections(map, this.least);
    }
    app.views.draw();
    app.tell("detections");
  }

  // The detection at the chosen pixel, and whether that is labelled a target.
  at() {
    const { app, map } = this;
    if (!map) return null;
    const { x, y } = app.views.pixel;
    const found = detectionAt(map, Math.floor(x / map.across), Math.floor(y / map.down), this.least);
    if (!found) return null;
    const wanted = app.shapes.some((shape) => shape.label === "target" && contains(shape, [x + 0.5, y + 0.5]));
    const points = found.points.map(([across, down]) => [across * map.across, down * map.down]);
    return { size: Math.round(found.size * map.across * map.down), points, wanted };
  }

  // Label the detection at the chosen pixel as not target.
  refuse() {
    const { app } = this;
    const found = app.readOnly ? null : this.at();
    if (!found || found.wanted) {
      return app.announce("No false alarm here: this pixel is not detected, or it is labelled a target.");
    }
    app.release();
    app.labels.add(app.scene, tidy(newShape("polygon", "not", found.points)), "false alarm");
  }
}
