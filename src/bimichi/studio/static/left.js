// On the left: scenes and sources.

import { button, make, plural, press } from "./dom.js";
import { shown } from "./report/readout.js";

// The score of a scene, or the mean of its parts, when it was left out.
function heldOut(score, name) {
  const own = (score?.by_scene ?? []).filter(
    (_, k) => score.scenes[k] === name || score.scenes[k].startsWith(`${name}, part `),
  );
  return own.length ? own.reduce((sum, value) => sum + value, 0) / own.length : null;
}

export class Left {
  constructor(app, root, actions) {
    Object.assign(this, { app, actions });
    this.scenes = make("ul", { id: "scene-list" });
    this.sources = make("ul", { id: "source-list" });
    const add = button("+ Add", "Add scenes of the same sources, or labels, to this project", actions.add, {
      id: "add",
    });
    root.append(
      make(
        "section",
        { class: "block scenes-block" },
        make("div", { class: "head" }, make("h2", {}, "Scenes"), add),
        this.scenes,
      ),
      make("section", { class: "block" }, make("h2", {}, "Sources"), this.sources),
    );
    app.on("state", () => this.build());
    app.on("scene labels model score", () => this.refresh());
    app.on("views", () => this.refresh());
    app.on("loaded state", () => this.loadPictures());
    this.build();
  }

  build() {
    const { state } = this.app;
    this.scenes.replaceChildren(...state.scenes.map((scene, k) => this.sceneRow(scene, k)));
    const photo = state.scenes.some((scene) => scene.rgb) ? [this.photoRow()] : [];
    this.sources.replaceChildren(...photo, ...state.sources.map((source, k) => this.sourceRow(source, k)));
    this.refresh();
  }

  // After the scene in view, which matters more.
  loadPictures() {
    for (const picture of this.scenes.querySelectorAll("img[data-src]")) {
      picture.src = picture.dataset.src;
      delete picture.dataset.src;
    }
  }

  sceneRow(scene, k) {
    const picture =
      scene.usable === false
        ? make("span", { class: "thumb missing" }, "?")
        : make("img", { class: "thumb", data: { src: `scenes/${k}/thumbnail` }, alt: "", width: 56, height: 42 });
    const words = make(
      "span",
      { class: "words" },
      make("b", { title: scene.name }, scene.name),
      make("small", { class: "facts-line" }),
    );
    const notes = scene.problems?.length
      ? make("small", { class: "problem", title: scene.problems.join("\n") }, scene.problems[0])
      : null;
    const row = make(
      "button",
      { type: "button", class: "scene", on: { click: () => this.actions.show(k) } },
      picture,
      words,
    );
    return make("li", { data: { scene: k } }, row, notes);
  }

  // A slider of powers of two; a double click puts it back.
  slider(label, most, set) {
    const change = (event) => {
      set(2 ** Number(event.target.value));
      this.app.views.draw();
    };
    const reset = (event) => {
      event.target.value = 0;
      change(event);
    };
    const title = `${label}; a double click resets it`;
    return make("input", {
      type: "range",
      min: -1,
      max: most,
      step: 0.1,
      value: 0,
      "aria-label": label,
      title,
      on: { input: change, dblclick: reset },
    });
  }

  photoRow() {
    const bright = this.slider("Brightness of the photograph", 3, (value) => (this.app.shown.brightness = value));
    return make(
      "li",
      {},
      make("div", { class: "row" }, make("b", {}, "Photograph")),
      make("div", { class: "row" }, make("small", { class: "recipe" }, "brightness"), bright),
    );
  }

  sourceRow(source, k) {
    const { app } = this;
    const show = button("Show", `Show ${source.name} in a view`, () => this.actions.showSource(k), {
      class: "small show",
      "aria-pressed": "false",
    });
    const contrast = this.slider(`Contrast of ${source.name}`, 2.5, (value) => (app.contrast[k] = value));
    const name = make("b", { title: source.name }, source.name);
    const recipe = make("small", { class: "recipe", title: source.recipe ?? "" }, source.recipe || "as given");
    const badge = make(
      "span",
      {
        class: "badge",
        hidden: true,
        title: "Low values speak for a target: it was learned that this source enters with its sign changed",
      },
      "inverted",
    );
    return make(
      "li",
      { data: { index: k } },
      make("div", { class: "row" }, name, badge, show),
      make("div", { class: "row" }, recipe, contrast),
    );
  }

  refresh() {
    const { app } = this;
    for (const row of this.scenes.children) {
      const k = Number(row.dataset.scene);
      const scene = app.state.scenes[k];
      const chosen = k === app.scenes.index;
      row.querySelector("button").setAttribute("aria-current", String(chosen));
      const count = app.labels.of(k).length;
      const score = heldOut(app.learned.score, scene.name);
      const parts = [count ? plural(count, "label") : "no labels"];
      if (typeof score === "number") parts.push(`AP ${shown(score, 2)}`);
      row.querySelector(".facts-line").textContent = scene.usable === false ? "cannot be used" : parts.join(" · ");
      if (chosen && this.seen !== k) row.scrollIntoView?.({ block: "nearest" });
    }
    this.seen = app.scenes.index;
    const polarity = app.learned.model?.rule.polarity;
    const visible = app.shown.layers.slice(0, app.shown.count);
    for (const row of this.sources.querySelectorAll("[data-index]")) {
      const k = Number(row.dataset.index);
      row.querySelector(".badge").hidden = !(polarity?.[k] < 0);
      press(row.querySelector(".show"), visible.includes(`source:${k}`));
    }
  }
}
