// What was learned: the weights of an additive measure, or the values of a bi-capacity; as the report shows them.

import { make } from "./dom.js";
import { TOLERANCE } from "./report/integral.js";
import { level } from "./report/maps.js";
import { shown } from "./report/readout.js";

const MOST = 12;
const FAINT = 0.0005;
const MATRIX = 3; // sources up to which the whole table fits beside the views

function swatch(value, colours) {
  const colour = colours[level(value)];
  const [red, green, blue] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16) / 255);
  return { "--value": colour, "--ink": 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 ? "#1a1a1a" : "#ffffff" };
}

function signedBar(...shares) {
  const parts = shares.filter(Boolean).map((share) => {
    const width = `${50 * Math.abs(share)}%`;
    return make("i", {
      class: share > 0 ? "up" : "down",
      style: { left: share > 0 ? "50%" : `${50 + 50 * share}%`, width },
    });
  });
  return make("span", { class: "signed", "aria-hidden": "true" }, ...parts);
}

function table(head, rows, kind) {
  const titles = head.map((text) => make("th", { scope: "col" }, text));
  return make(
    "div",
    { class: "scroll" },
    make("table", { class: kind }, make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...rows)),
  );
}

// The two sides (above and below zero) of each pair of sources, and the number of its term, as numbered by bimichi's additive measures.
function pairsOf(m) {
  const pairs = [];
  for (let s = 0, number = 2 * m; s < 2 * m; s++) {
    for (let t = s + 1; t < 2 * m; t++) if (t - s !== m) pairs.push({ sides: [s, t], number: number++ });
  }
  return pairs;
}

function weights({ names, low }, { values }) {
  const m = names.length;
  const oneSided = low === 0;
  const most = Math.max(...Array.from(values.slice(0, oneSided ? m : 2 * m), Math.abs)) || 1;
  const rows = names.map((name, k) => {
    const above = make("td", { data: { code: k } }, shown(values[k], 3));
    const below = make("td", { data: { code: m + k } }, shown(values[m + k], 3));
    const bar = make(
      "td",
      { class: "wide" },
      signedBar(...(oneSided ? [values[k] / most] : [values[m + k] / most, values[k] / most])),
    );
    return make(
      "tr",
      {},
      make("th", { scope: "row", title: name }, name),
      ...(oneSided ? [bar, above] : [below, bar, above]),
    );
  });
  return table(oneSided ? ["Source", "", "Weight"] : ["Source", "below 0", "", "above 0"], rows, "bars weights");
}

function pairs({ names, low }, { values }) {
  const m = names.length;
  const side = (wanted, sides) =>
    sides
      .filter((s) => s < m === wanted)
      .map((s) => names[s % m])
      .join(" + ") || "–";
  const strongest = pairsOf(m)
    .filter(({ sides, number }) => Math.abs(values[number] ?? 0) >= FAINT && (low < 0 || sides.every((s) => s < m)))
    .sort((a, b) => Math.abs(values[b.number]) - Math.abs(values[a.number]));
  if (!strongest.length) return null;
  const most = Math.abs(values[strongest[0].number]);
  const rows = strongest
    .slice(0, MOST)
    .map(({ sides, number }) =>
      make(
        "tr",
        { data: { code: number } },
        make("th", { scope: "row" }, side(true, sides)),
        make("td", { class: "text" }, side(false, sides)),
        make("td", { class: "wide" }, signedBar(values[number] / most)),
        make("td", {}, shown(values[number], 3)),
      ),
    );
  return table(["For", "Against", "", "Term"], rows, "bars elements");
}

const member = (code, k) => Math.floor(code / 3 ** k) % 3;

function setsOf(code, names) {
  const side = (digit) => names.filter((_, k) => member(code, k) === digit).join(" + ");
  return [side(1) || "–", side(2) || "–"];
}

function cellText({ values, lower, upper }, code) {
  const open = upper && upper[code] - lower[code] > TOLERANCE;
  return { open, text: open ? `${shown(lower[code], 2)} to ${shown(upper[code], 2)}` : shown(values[code], 2) };
}

function matrix({ names }, measure, colours) {
  const m = names.length;
  const masks = Array.from({ length: 1 << m }, (_, mask) => mask);
  const label = (mask) =>
    names
      .map((name, k) => ((mask >> k) & 1 ? (name.length > 9 ? String(k + 1) : name) : null))
      .filter(Boolean)
      .join(" + ") || "∅";
  const code = (up, down) => names.reduce((sum, _, k) => sum + (((up >> k) & 1) + 2 * ((down >> k) & 1)) * 3 ** k, 0);
  const rows = masks.map((up) => {
    const cells = masks.map((down) => {
      if (up & down) return make("td", { class: "blank" });
      const own = code(up, down);
      const { open, text } = cellText(measure, own);
      return make(
        "td",
        { class: open ? "open" : null, style: swatch(measure.values[own], colours), data: { code: own }, title: text },
        make("span", {}, shown(measure.values[own], 2)),
      );
    });
    return make("tr", {}, make("th", { scope: "row" }, label(up)), ...cells);
  });
  const long = names.some((name) => name.length > 9);
  const key = long ? make("p", { class: "note" }, names.map((name, k) => `${k + 1} = ${name}`).join(", ")) : null;
  return make("div", {}, table(["A \\ B", ...masks.map(label)], rows, "matrix"), key);
}

// Elements of more sources: those of the largest size first.
function list({ names, low }, measure, colours) {
  const { values } = measure;
  const codes = [...values.keys()].slice(1).filter((code) => low < 0 || names.every((_, k) => member(code, k) !== 2));
  const size = (code) => names.filter((_, k) => member(code, k)).length;
  codes.sort((a, b) => size(a) - size(b) || Math.abs(values[b]) - Math.abs(values[a]));
  const rows = codes.slice(0, 2 * names.length + MOST).map((code) => {
    const [up, down] = setsOf(code, names);
    return make(
      "tr",
      { data: { code } },
      make("th", { scope: "row" }, up),
      ...(low < 0 ? [make("td", { class: "text" }, down)] : []),
      make("td", { class: "swatch", style: swatch(values[code], colours) }, cellText(measure, code).text),
    );
  });
  return table(low < 0 ? ["For (A)", "Against (B)", "g(A, B)"] : ["A", "g(A)"], rows, "bars elements");
}

export function measureView(rule, measure, colours) {
  if (rule.measure.parts === "terms") {
    const both = pairs(rule, measure);
    return { title: "The weights", parts: [weights(rule, measure), both && make("h3", {}, "Pairs by strength"), both] };
  }
  const shape =
    rule.names.length <= MATRIX && rule.low < 0 ? matrix(rule, measure, colours) : list(rule, measure, colours);
  return { title: rule.low < 0 ? "The bi-capacity" : "The measure", parts: [shape] };
}
