// On the right: the score, the chosen pixel, what was learned, and what to label next.

import { button, make, plural } from "./dom.js";
import { measureView } from "./measure.js";
import { Pixel } from "./pixel.js";
import { shown } from "./report/readout.js";

const plusMinus = (value, error) => `${shown(value, 2)}${typeof error === "number" ? ` ± ${shown(error, 2)}` : ""}`;

export class Right {
  constructor(app, root, actions) {
    Object.assign(this, { app, actions });
    this.score = make("section", { id: "score", class: "block", "aria-label": "Score" });
    const middle = make("div", { class: "scrolling", tabindex: 0, role: "region", "aria-label": "Pixel and rule" });
    this.next = make("section", { id: "next", class: "block", "aria-label": "What next" });
    this.learned = make("section", { id: "learned", class: "block" });
    root.append(this.score, middle, this.next);
    this.pixel = new Pixel(app, middle);
    middle.append(this.learned);
    app.on("model score labels working state settings", () => this.refreshScore());
    app.on("model", () => this.refreshLearned());
    app.on("suggestions labels scene model", () => this.refreshNext());
    this.refreshScore();
    this.refreshLearned();
    this.refreshNext();
  }

  row(name, value, error, kind) {
    const scored = typeof value === "number";
    const bar = make(
      "span",
      { class: "bar", "aria-hidden": "true" },
      make("i", { class: kind, style: { width: `${scored ? 100 * value : 0}%` } }),
    );
    return make(
      "div",
      { class: "scored" },
      make("span", { class: "name", title: name }, name),
      bar,
      make("b", {}, scored ? plusMinus(value, error) : "–"),
    );
  }

  refreshScore() {
    const { score, model, stale: old } = this.app.learned;
    const stale = model && (old || (score && score.number !== model.number));
    const badge = stale
      ? make(
          "span",
          { class: "badge stale", title: "A newer one is being computed, or learning is off" },
          "out of date",
        )
      : null;
    const head = make(
      "div",
      { class: "head" },
      make(
        "h2",
        { title: "Average precision on scenes or parts that were held out from learning" },
        "Cross-validated score",
      ),
      badge,
    );
    const best = score?.best_source;
    const parts = [
      head,
      this.row("Fused", score?.ap, score?.ap_error, "best"),
      this.row(best ? `Best source: ${best.name}` : "Best single source", best?.ap, best?.ap_error, "plain"),
    ];
    parts.push(make("p", { class: "note" }, this.scoreText()));
    parts.push(
      make(
        "div",
        { class: "setting" },
        make("span", {}, this.settingText()),
        button("Setting", "Choose what is learned, and how", this.actions.settings, { class: "small" }),
      ),
    );
    this.score.replaceChildren(...parts.filter(Boolean));
  }

  scoreText() {
    const { labels, learned } = this.app;
    const { model, score } = learned;
    if (!model)
      return labels.total ? "It appears when the first map has been learned." : "Label something to see a score.";
    if (!score) return "The score of this map is being computed …";
    if (typeof score.ap !== "number") return score.sentence ?? "";
    const { scenes } = score;
    const parts = scenes.some((name) => /, part \d/.test(name));
    const where = parts ? `${plural(scenes.length, "part")} of what is labelled` : plural(scenes.length, "scene");
    return `Average precision on ${where}, each left out of learning in turn.`;
  }

  settingText() {
    const { learned, state } = this.app;
    const { model } = learned;
    const { objective, additivity } = model?.setting ?? state.settings;
    const order =
      additivity === null || additivity === undefined || additivity === "full" ? "full" : `${additivity}-additive`;
    const value =
      typeof model?.J === "number"
        ? ` · J ${Number(model.J.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 })}`
        : "";
    return `${objective}, ${order}${value}`;
  }

  refreshLearned() {
    const { learned, state } = this.app;
    const { model, measure } = learned;
    if (!model) return this.learned.replaceChildren();
    const { title, parts } = measureView(model.rule, measure, state.colours);
    const sentences = make(
      "ul",
      { class: "sentences" },
      ...(model.sentences ?? []).map((text) => make("li", {}, text)),
    );
    const notes = [model.auto?.sentence, ...(model.notes ?? [])]
      .filter(Boolean)
      .map((text) => make("p", { class: "note" }, text));
    this.learned.replaceChildren(
      make("h2", {}, "In words"),
      sentences,
      make("h2", {}, title),
      ...parts.filter(Boolean),
      ...notes,
    );
  }

  refreshNext() {
    const { scenes, state, suggestions, learned } = this.app;
    const { model } = learned;
    const items = suggestions.items.map((item, k) => {
      const scene = item.scene === scenes.index ? "" : `${state.scenes[item.scene]?.name ?? ""}: `;
      const go = make(
        "button",
        { type: "button", class: "suggestion", on: { click: () => suggestions.goTo(k) } },
        make("span", { class: `badge ${item.kind}` }, item.kind),
        make("span", {}, `${scene}${item.reason}`),
      );
      return make("li", { class: item.visited ? "visited" : null }, go);
    });
    const waiting = model && suggestions.number !== model.number;
    const empty = waiting
      ? "Being worked out …"
      : model
        ? "Nothing stands out: where labels are scarce or contradict each other, it is listed here."
        : "After the first map: which regions are most worth labelling.";
    const more = items.length
      ? button("Next", "Go to the next region (N)", () => suggestions.goNext(), { class: "small" })
      : null;
    const head = make("div", { class: "head" }, make("h2", {}, "What to label next"), ...(more ? [more] : []));
    this.next.replaceChildren(head, items.length ? make("ul", {}, ...items) : make("p", { class: "note" }, empty));
  }
}
