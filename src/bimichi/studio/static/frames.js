// The frames of the views, each with a menu of what it shows, and the sliders below.

import { button, make, press } from "./dom.js";
import { shown } from "./report/readout.js";

const COUNTS = [1, 2, 4];

export class Frames {
  constructor(app, root, sliders) {
    Object.assign(this, { app, root });
    this.frames = app.shown.layers.map((_, k) => this.frame(k));
    this.buildSliders(sliders);
    this.watch = new ResizeObserver(() => this.arrange());
    this.watch.observe(root);
    app.on("state", () => this.refreshMenus());
    app.on("scene model loaded", () => {
      this.refreshMenus();
      app.pictures.need();
    });
    app.on("labels model map scene working detections", () => this.refresh());
    app.on("working", () => app.pictures.needUncertainty());
    this.show();
  }

  frame(k) {
    const menu = make("select", {
      "aria-label": `What view ${k + 1} shows`,
      on: { change: () => this.set(k, menu.value) },
    });
    const stale = make(
      "span",
      { class: "badge stale", hidden: true, title: "Labels were changed since this was learned" },
      "out of date",
    );
    const canvas = make("canvas", { "aria-hidden": "true" });
    const empty = make("p", { class: "empty", hidden: true });
    const view = make(
      "div",
      {
        class: "view",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "map",
        "aria-label": "View",
        data: { view: k },
      },
      canvas,
      make("div", { class: "cursor", "aria-hidden": "true" }),
      empty,
    );
    this.app.views.listen(view);
    const figure = make("figure", { class: "frame" }, make("figcaption", {}, menu, stale), view);
    return { figure, menu, stale, view, empty };
  }

  choices() {
    const { state, learned, scenes } = this.app;
    const { current } = scenes;
    const sources = state.sources.map(({ name }, k) => [`source:${k}`, name]);
    const maps = [
      ["photo", current?.rgb ? "Photograph" : `Photograph (${state.sources[0]?.name ?? ""})`],
      ["fused", "Fused"],
    ];
    const parts = state.sources.map(({ name }, k) => [`part:${k}`, `Contribution of ${name}`]);
    const more = [["uncertainty", "Uncertainty"]];
    if (current?.truth) more.push(["truth", "Truth"]);
    return [
      ["Maps", [...maps, ...more]],
      ["Sources", sources],
      ["Contributions", learned.model || current ? parts : []],
    ];
  }

  refreshMenus() {
    const choices = this.choices();
    const layers = choices.flatMap(([, items]) => items.map(([value]) => value));
    this.frames.forEach(({ menu, view }, k) => {
      const wanted = this.app.shown.layers[k];
      const groups = choices
        .filter(([, items]) => items.length)
        .map(([label, items]) =>
          make("optgroup", { label }, ...items.map(([value, text]) => make("option", { value }, text))),
        );
      menu.replaceChildren(...groups);
      const layer = layers.includes(wanted) ? wanted : "photo";
      this.app.shown.layers[k] = layer;
      menu.value = layer;
      view.dataset.map = layer;
      view.setAttribute("aria-label", `View of ${menu.selectedOptions[0]?.textContent ?? layer}`);
    });
    this.refresh();
  }

  set(k, layer) {
    this.app.shown.layers[k] = layer;
    this.show();
    this.app.pictures.need();
  }

  // A source in the last view, or the view as it was before.
  toggleSource(k) {
    const { shown: now } = this.app;
    const at = now.layers.slice(0, now.count).indexOf(`source:${k}`);
    if (at >= 0) return this.set(at, at === 0 ? "photo" : "fused");
    const place = now.count === 4 ? 2 : now.count - 1;
    if (now.count === 2) return this.setCount(4, 2, `source:${k}`);
    this.set(place, `source:${k}`);
  }

  setCount(count, place, layer) {
    this.app.shown.count = count;
    if (layer) this.app.shown.layers[place] = layer;
    this.show();
    this.app.pictures.need();
  }

  cycle() {
    const { count } = this.app.shown;
    this.setCount(COUNTS[(COUNTS.indexOf(count) + 1) % COUNTS.length]);
  }

  show() {
    const { app } = this;
    const used = this.frames.slice(0, app.shown.count);
    this.root.replaceChildren(...used.map(({ figure }) => figure));
    this.refreshMenus();
    this.arrange();
    app.views.setPanels(used.map(({ view }, k) => ({ view, layer: app.shown.layers[k] })));
    this.counts.forEach((choice, k) => press(choice, COUNTS[k] === app.shown.count));
    app.tell("views");
  }

  // Two views side by side or one above the other, whichever shows the image larger.
  arrange() {
    const { current } = this.app.scenes;
    if (!current) return;
    const { count } = this.app.shown;
    const [across, down] = [this.root.clientWidth, this.root.clientHeight];
    const fit = (wide, high) => Math.min(wide / current.width, high / current.height);
    const beside = fit(across / 2, down - 32) >= fit(across, down / 2 - 32);
    this.root.dataset.layout = count === 2 ? (beside ? "beside" : "above") : String(count);
  }

  buildSliders(root) {
    const { app } = this;
    this.opacity = make("input", {
      type: "range",
      id: "opacity",
      min: 0,
      max: 100,
      step: 5,
      value: 0,
      on: { input: () => this.setOpacity(Number(this.opacity.value) / 100) },
    });
    this.threshold = make("input", {
      type: "range",
      id: "threshold",
      min: 0,
      max: 1,
      step: 0.01,
      value: 0.5,
      on: { input: () => app.detector.set(Number(this.threshold.value)) },
    });
    this.count = make("output", { class: "found", for: "threshold" });
    this.outlined = make("input", {
      type: "checkbox",
      id: "outlined",
      checked: true,
      on: { change: () => this.setOutlined(this.outlined.checked) },
    });
    this.counts = COUNTS.map((count) =>
      button(String(count), `${count} view${count > 1 ? "s" : ""} (W)`, () => this.setCount(count), { class: "small" }),
    );
    const zoom = (text, title, work) => button(text, title, work, { class: "small" });
    root.append(
      make(
        "label",
        { class: "slider", for: "opacity", title: "How strongly the fused map covers the photograph and sources (O)" },
        "Fused over image",
        this.opacity,
      ),
      make(
        "label",
        { class: "slider", for: "threshold", title: "Pixels whose fused value reaches this are outlined" },
        make("span", { class: "check" }, this.outlined, "Detect at"),
        this.threshold,
        this.count,
      ),
      make(
        "div",
        { class: "group", role: "group", "aria-label": "Number of views" },
        make("span", { class: "small-label" }, "Views"),
        ...this.counts,
      ),
      make(
        "div",
        { class: "group", role: "group", "aria-label": "Zoom" },
        zoom("−", "Zoom out (−)", () => app.views.zoomBy(1 / 1.5)),
        zoom("+", "Zoom in (+)", () => app.views.zoomBy(1.5)),
        zoom("Whole", "Show the whole image (0)", () => app.views.zoomBy(0)),
      ),
    );
  }

  setOpacity(value) {
    this.app.shown.opacity = Math.min(1, Math.max(0, value));
    this.opacity.value = 100 * this.app.shown.opacity;
    this.app.views.draw();
  }

  setOutlined(on) {
    this.outlined.checked = on;
    this.app.detector.show(on);
  }

  refresh() {
    const { app } = this;
    const { learned, detector, scenes } = app;
    this.threshold.min = learned.outputLow;
    this.threshold.value = detector.cut;
    const { count, cut } = detector;
    this.count.textContent = `${shown(cut, 2)}${count === null ? "" : ` · ${count.toLocaleString("en")} found`}`;
    for (const { menu, stale, empty } of this.frames) {
      const shows = menu.value === "fused" || menu.value === "uncertainty" || menu.value.startsWith("part");
      const uncertainty = menu.value === "uncertainty" ? scenes.data?.uncertainty : null;
      const older = uncertainty && uncertainty.number !== learned.model?.number;
      stale.hidden = !(shows && learned.model && (learned.stale || older));
      const text = this.emptyText(menu.value, shows);
      empty.hidden = !text;
      empty.textContent = text ?? "";
    }
  }

  // What to do where there is nothing to see yet.
  emptyText(layer, learned) {
    const { app } = this;
    const { current, data } = app.scenes;
    const { model } = app.learned;
    if (current?.usable === false) return `This scene cannot be used. ${(current.problems ?? []).join(" ")}`;
    if (layer === "uncertainty" && model && !data?.uncertainty && !current?.tiled) return "Computed when you pause.";
    if (!learned || model) return null;
    if (!app.labels.total) return "Draw a box around each target, in any view. What is learned from it appears here.";
    if (app.state.mode === "live")
      return app.working ? "Learning from your first labels …" : "The map appears here as soon as it is learned.";
    return "Nothing is learned until you press “Learn” above, or choose Live.";
  }
}
