// The panel beside the maps: one pixel's sources, chain and contributions. All text is set as text, never as HTML.

import { fusedOf, outputOf, partFactor, TOLERANCE } from "./integral.js";
import { level } from "./maps.js";

const DIGITS = 3;
const MOST_STEPS = 20; // an additive measure of many sources has thousands of terms

// A number with a true minus, and without a negative zero.
export function shown(value, digits = DIGITS) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
}

// A value of a source, which may be of any size.
export const valueText = (value) => (Math.abs(value) < 1000 ? shown(value) : String(Number(value.toPrecision(7))));

export function node(tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

export const get = (id) => document.getElementById(id);

export class Readout {
  constructor(report) {
    this.panel = document.querySelector(".readout");
    addEventListener("resize", () => this.panel.style.removeProperty("min-height"));
    this.bind(report);
  }

  // Explain by another rule, whose measure the page shows now.
  bind(report) {
    this.report = report;
    this.cells = new Map();
    for (const cell of document.querySelectorAll("[data-code]")) this.cells.set(Number(cell.dataset.code), cell);
    this.active = [];
  }

  // Explain the pixel at (x, y) of the page's image.
  explainAt(x, y) {
    const { sources, width } = this.report;
    const at = y * width + x;
    const values = sources.map((source) => source.values[source.indices[at]]);
    const entered = sources.map((source) => source.entered[source.indices[at]]);
    this.showPlace(x, y, at);
    this.explain(values, entered);
  }

  show(x, y) {
    this.explainAt(x, y);
    this.panel.style.minHeight = `${this.panel.offsetHeight}px`; // what is below must not jump
  }

  // Explain a pixel of these values.
  explain(values, entered) {
    const { measure, names } = this.report;
    const missing = names.filter((_, k) => Number.isNaN(values[k]));
    const steps = missing.length ? [] : measure.chain(entered);
    const parts = missing.length ? entered.map(() => NaN) : measure.contributions(entered);
    const total = missing.length ? NaN : steps.reduce((sum, step) => sum + step.product, 0);
    const factor = partFactor(total, this.report);
    for (const step of steps) step.product *= factor;
    for (const k of parts.keys()) parts[k] *= factor;
    this.showTotal(total, missing);
    const sum = this.report.link ? outputOf(total, this.report) : total;
    this.showSources(values, entered, parts, sum);
    this.showChain(steps, sum);
    this.highlight(steps);
    this.sentence = this.announcement(total, parts, missing);
  }

  showPlace(x, y, at) {
    const { width, height, fullWidth, fullHeight, truth, segments, labels } = this.report;
    const across = Math.floor(((2 * x + 1) * fullWidth) / (2 * width));
    const down = Math.floor(((2 * y + 1) * fullHeight) / (2 * height));
    let text = `x ${across}, y ${down}`;
    if (truth) text += truth[at] ? " · a target" : " · no target";
    if (segments) {
      const label = labels[segments[at]];
      text += label === null ? " · in no labelled bag" : ` · in a ${label ? "positive" : "negative"} bag`;
    }
    this.place = text;
    get("place").textContent = text;
  }

  showTotal(total, missing) {
    const { absolute, link, outputLow, colours } = this.report;
    const fused = fusedOf(total, this.report);
    const output = get("fused-value");
    const mark = get("mark");
    mark.hidden = missing.length > 0;
    if (missing.length) {
      output.textContent = "no data";
      output.style.removeProperty("--value");
      get("fused-note").textContent = `${missing.join(", ")}: no value here`;
      return;
    }
    output.textContent = shown(fused);
    output.style.setProperty("--value", colours[level(fused)]);
    mark.style.left = `${(100 * (fused - outputLow)) / (1 - outputLow)}%`;
    const plain = absolute ? `fused: the magnitude of C = ${shown(total)}` : "fused: C";
    get("fused-note").textContent = link ? `probability; log-odds ${shown(outputOf(total, this.report))}` : plain;
  }

  showSources(values, entered, parts, total) {
    for (const row of document.querySelectorAll("[data-source]")) {
      const k = Number(row.dataset.source);
      row.querySelector(".given").textContent = Number.isNaN(values[k]) ? "no data" : valueText(values[k]);
      const enters = row.querySelector(".enters");
      if (enters) enters.textContent = Number.isNaN(entered[k]) ? "" : shown(entered[k]);
      row.querySelector(".number").textContent = Number.isNaN(parts[k]) ? "" : shown(parts[k]);
      const bar = row.querySelector(".signed i");
      const half = Number.isNaN(parts[k]) ? 0 : 50 * Math.min(1, Math.abs(parts[k]) / (this.report.link?.slope || 1));
      bar.className = parts[k] < 0 ? "down" : "up";
      bar.style.left = `${parts[k] < 0 ? 50 - half : 50}%`;
      bar.style.width = `${half}%`;
    }
    document.querySelector("#sources .total").textContent = Number.isNaN(total) ? "" : shown(total);
  }

  showChain(steps, total) {
    const shownSteps = this.shownSteps(steps);
    const rows = shownSteps.map((step) => {
      const row = document.createElement("tr");
      row.dataset.step = step.code;
      row.append(this.stepCell(step));
      for (const part of [step.weight, step.value, step.product]) row.append(node("td", shown(part), "number"));
      return row;
    });
    const rest = steps.filter((step) => !shownSteps.includes(step));
    if (rest.length) {
      const row = document.createElement("tr");
      const sum = rest.reduce((before, step) => before + step.product, 0);
      row.append(
        node("th", `${rest.length} further term${rest.length > 1 ? "s" : ""}`),
        node("td", ""),
        node("td", ""),
        node("td", shown(sum), "number"),
      );
      rows.push(row);
    }
    document.querySelector("#chain tbody").replaceChildren(...rows);
    document.querySelector("#chain .total").textContent = Number.isNaN(total) ? "" : shown(total);
  }

  // Without those that would be shown as 0.000, and no more than can be read.
  shownSteps(steps) {
    const seen = steps.filter((step) => Math.abs(step.product) >= this.report.measure.faint);
    return seen.length > MOST_STEPS ? seen.slice(0, MOST_STEPS) : seen;
  }

  // "thermal + rgb against grey", and between which values the element is open, if it is.
  stepCell(step) {
    const { names, measure } = this.report;
    const [up, down] = [step.up, step.down].map((members) => members.map((k) => names[k]));
    const cell = node("th", "");
    cell.scope = "row";
    if (up.length) cell.append(node("span", up.join(" + "), "for"));
    if (down.length) cell.append(node("span", "against ", "word"), node("span", down.join(" + "), "against"));
    const [low, high] = [measure.lower?.[step.code], measure.upper?.[step.code]]; // terms have no intervals
    if (high - low > TOLERANCE) cell.append(node("span", `open: ${shown(low, 2)} to ${shown(high, 2)}`, "open"));
    return cell;
  }

  highlight(steps) {
    for (const cell of this.active) cell.classList.remove("active");
    this.active = this.shownSteps(steps)
      .map((step) => this.cells.get(step.code))
      .filter(Boolean);
    for (const cell of this.active) cell.classList.add("active");
  }

  // What a screen reader says of the chosen pixel.
  announcement(total, parts, missing) {
    if (missing.length) return `${this.place}. No data: ${missing.join(", ")}.`;
    const { names, link } = this.report;
    const said = names.map((name, k) => `${name} contributes ${shown(parts[k], 2)}`);
    const fused = `${link ? "Probability" : "Fused"} ${shown(fusedOf(total, this.report), 2)}`;
    return `${this.place}. ${fused}. ${said.join("; ")}.`;
  }
}
