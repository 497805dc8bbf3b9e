// "Ask any pixel": the report's readout in the studio's own frame, and false alarms.

import { button, debounced, make, plural } from "./dom.js";
import { scaledValue } from "./report/integral.js";
import { level } from "./report/maps.js";
import { node, Readout, shown, valueText } from "./report/readout.js";

function totals(name, span, offset) {
  const row = (text, cell) => make("tr", {}, make("th", { scope: "row", colspan: span - 1 }, text), cell);
  const total = row(name, make("td", { class: "number total" }));
  return offset === null ? [total] : [row("offset", make("td", { class: "number" }, shown(offset, 3))), total];
}

function tableOf(id, caption, head, rows, rule) {
  const titles = head.map((title) => make("th", { scope: "col" }, title));
  const foot = totals(rule.link ? "log-odds" : "C", head.length, rule.link ? rule.link.offset : null);
  return make(
    "table",
    { id },
    caption && make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...titles)),
    make("tbody", {}, ...rows),
    make("tfoot", {}, ...foot),
  );
}

function sourceTable(rule) {
  const changed =
    rule.centre.some(Boolean) || rule.factor.some((factor) => factor !== 1) || rule.polarity.some((sign) => sign < 0);
  const rows = rule.names.map((name, k) =>
    make(
      "tr",
      { data: { source: k } },
      make("th", { scope: "row", title: name }, name),
      make("td", { class: "given" }),
      ...(changed ? [make("td", { class: "enters" })] : []),
      make(
        "td",
        { class: "part" },
        make("span", { class: "signed", "aria-hidden": "true" }, make("i", {})),
        make("span", { class: "number" }),
      ),
    ),
  );
  const head = ["Source", "Value", ...(changed ? ["Enters as"] : []), "Contribution"];
  return tableOf("sources", `What the sources contribute${rule.link ? " to the log-odds" : ""}`, head, rows, rule);
}

function chainTable(rule) {
  const terms = rule.measure.parts === "terms";
  const last = rule.link ? "Log-odds" : "Product";
  const head = terms ? ["Term", "Size", "Weight", last] : ["Element", "Weight", "Value", last];
  return tableOf("chain", null, head, [], rule);
}

// Of an additive measure without pairs, the steps are the contributions once more.
function plainSum({ model, measure }) {
  const { measure: packed, names } = model.rule;
  return packed.parts === "terms" && !measure.values.slice(2 * names.length).some(Boolean);
}

export class Pixel {
  constructor(app, root) {
    this.app = app;
    this.place = make("span", { id: "place" });
    this.release = button("Release", "Follow the pointer again (Esc)", () => app.cursor.release(), {
      id: "release",
      hidden: true,
    });
    this.mark = make("i", { id: "mark", "aria-hidden": "true" });
    this.ramp = make("div", { class: "ramp" }, this.mark);
    this.ends = make("div", { class: "ends", "aria-hidden": "true" });
    this.value = make("p", {}, make("output", { id: "fused-value" }), make("span", { id: "fused-note" }));
    this.tables = make("div", { class: "tables" });
    this.verdict = make("div", { class: "verdict", hidden: true });
    this.hint = make("p", { class: "note" });
    this.scale = make("div", { class: "scale" }, this.ramp, this.ends);
    const chosen = make("div", { class: "chosen" }, make("p", {}, this.place, this.release), this.value, this.scale);
    this.card = make(
      "section",
      { class: "readout block", "aria-label": "The chosen pixel" },
      make("h2", {}, "Ask any pixel"),
      chosen,
      this.verdict,
      this.hint,
      this.tables,
    );
    root.append(this.card);
    this.fetchValues = debounced((x, y) => this.showTiled(x, y), 60);
    app.on("report", () => this.bind());
    app.on("pixel", (pixel) => this.show(pixel));
    app.on("held", () => this.showHeld());
    app.on("scene forgotten", () => this.clear());
    this.clear();
  }

  clear() {
    const { model } = this.app.learned;
    for (const part of [this.value, this.scale, this.tables]) part.hidden = !model;
    this.hint.textContent = model
      ? ""
      : "Move over a view to read the sources. After the first box, this explains how any pixel is decided.";
    this.verdict.hidden = true;
    this.showHeld();
  }

  // The tables are made anew only if the sources or the kind of rule changed, so that nothing flickers.
  bind() {
    const { learned } = this.app;
    const { report, model } = learned;
    const plain = plainSum(learned);
    const kind = JSON.stringify([
      report.names,
      Boolean(report.link),
      report.link?.offset,
      report.polarity,
      report.centre,
      report.factor,
      model.rule.measure.parts,
      report.outputLow,
      plain,
    ]);
    if (kind !== this.kind) {
      this.kind = kind;
      const rule = { ...report, measure: model.rule.measure };
      this.chain = make(
        "details",
        { class: "steps" },
        make("summary", {}, `The ${rule.link ? "log-odds" : "integral"}, step by step`),
        chainTable(rule),
      );
      this.tables.replaceChildren(sourceTable(rule), this.chain);
      this.chain.open = !plain;
      this.drawRamp(report);
    }
    this.clear();
    if (this.readout) this.readout.bind(report);
    else this.readout = new Readout(report);
    this.show(this.app.views.pixel);
  }

  drawRamp({ outputLow, colours }) {
    const places = Array.from({ length: 33 }, (_, k) => colours[level(outputLow + ((1 - outputLow) * k) / 32)]);
    this.ramp.style.background = `linear-gradient(to right, ${places.join(", ")})`;
    const words = outputLow < 0 ? ["−1 against a target", "for a target 1"] : ["0 no target", "target 1"];
    this.ends.replaceChildren(...words.map((text) => make("span", {}, text)));
  }

  show({ x, y }) {
    const { current, data } = this.app.scenes;
    const { report } = this.app.learned;
    if (!report) return this.showValues(x, y);
    if (current.tiled) return this.fetchValues(x, y);
    report.truth = data.truth; // which may have come later
    this.readout.explainAt(x, y);
  }

  // Without a rule: what the sources have here.
  showValues(x, y) {
    const { scenes, state } = this.app;
    const { current, data } = scenes;
    this.place.textContent = `x ${x}, y ${y}`;
    if (!data?.complete) return;
    const at = y * current.width + x;
    const texts = state.sources.map(({ name }, k) => {
      const value = data.sources[k].values[data.sources[k].indices[at]];
      return `${name} ${Number.isNaN(value) ? "no data" : valueText(value)}`;
    });
    this.place.textContent = `x ${x}, y ${y} · ${texts.join(" · ")}`;
  }

  async showTiled(x, y) {
    const { app } = this;
    const answer = await app.attempt(() => app.scenes.data.values(x, y));
    const { report } = app.learned;
    if (!answer || !report) return;
    const { centre, factor, low, polarity } = report;
    const values = answer.values.map((value) => value ?? NaN);
    this.place.textContent = `x ${x}, y ${y}`;
    this.readout.place = this.place.textContent;
    this.readout.explain(
      values,
      values.map((value, k) => scaledValue(value, centre[k], factor[k], low) * polarity[k]),
    );
  }

  showHeld() {
    const { app } = this;
    const { held } = app.cursor;
    this.release.hidden = !held;
    const detection = held ? app.detector.at() : null;
    this.verdict.hidden = !detection;
    if (!detection) return;
    const within = detection.wanted ? ", within a target label" : "";
    const text = `Detected: a region of ${plural(detection.size, "pixel")}${within}.`;
    const refuse = button(
      "False alarm: make this a negative region",
      "Label this region as not target (X)",
      () => app.detector.refuse(),
      { class: "primary" },
    );
    this.verdict.replaceChildren(node("span", text), ...(detection.wanted || app.readOnly ? [] : [refuse]));
    if (this.readout?.sentence) app.announce(this.readout.sentence);
  }
}
