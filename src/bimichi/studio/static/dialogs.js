// Dialogs: help, setting, and saving.

import { post } from "./connection.js";
import { button, make } from "./dom.js";
import { HELP } from "./keys.js";

// A dialog that is thrown away when it is closed; Esc and a click beside it close it, too.
export function dialog(title, ...content) {
  const close = () => box.close();
  const head = make(
    "div",
    { class: "head" },
    make("h2", {}, title),
    button("Close", "Close (Esc)", close, { class: "small" }),
  );
  const box = make("dialog", { "aria-label": title, on: { close: () => box.remove() } }, head, ...content);
  box.addEventListener("click", (event) => event.target === box && close());
  document.body.append(box);
  box.showModal();
  return box;
}

export function showHelp() {
  const groups = HELP.map(([title, rows]) =>
    make(
      "section",
      {},
      make("h3", {}, title),
      make(
        "dl",
        { class: "keys" },
        ...rows.map(([keys, text]) => make("div", {}, make("dt", {}, make("kbd", {}, keys)), make("dd", {}, text))),
      ),
    ),
  );
  dialog(
    "Keys and help",
    make(
      "p",
      { class: "lead" },
      "Draw a box around each target. After every edit the fusion is learned anew; map, score and reasons follow.",
    ),
    make("div", { class: "help" }, ...groups),
  );
}

const FIELDS = {
  objective: ["What is learned", "logistic gives probabilities; bipolar and magnitude are the paper's"],
  additivity: ["How sources interact", "1: not at all; 2: in pairs; full: in every combination, slower"],
  sources: ["Sources", "as given, or by how rare their values are in the scene"],
  rest: ["Pixels without a label", "in scenes that have labels"],
  polarity: ["Direction of each source", "learn lets a source enter inverted"],
  seed: ["Seed", "the same seed gives the same model"],
};
const WORDS = {
  negative: "are not targets",
  unknown: "are unknown: only “not target” labels are negative",
  1: "1-additive",
  2: "2-additive",
  null: "full",
};

function choicesOf(name, { choices = {}, settings }) {
  const values = {
    objective: choices.objectives,
    additivity: choices.additivities,
    sources: ["given", "rarity"],
    rest: ["negative", "unknown"],
    polarity: choices.polarities ?? ["learn", "given"],
  }[name];
  const listed = values?.some((value) => String(value) === String(settings[name]));
  return values && !listed ? [settings[name], ...values] : values;
}

function field(app, name, [title, note]) {
  const value = app.state.settings[name];
  const choices = choicesOf(name, app.state);
  const send = (choice) => app.learned.changeSettings({ [name]: choice });
  const control = choices
    ? make(
        "select",
        { id: `set-${name}`, on: { change: () => send(choices[control.selectedIndex]) } },
        ...choices.map((choice) =>
          make("option", { selected: String(choice) === String(value) }, WORDS[choice] ?? String(choice)),
        ),
      )
    : make("input", {
        id: `set-${name}`,
        type: "number",
        step: 1,
        min: 0,
        value: value ?? 0,
        on: { change: () => send(Number(control.value)) },
      });
  control.disabled = app.readOnly;
  return make(
    "div",
    { class: "field" },
    make("label", { for: `set-${name}` }, title),
    control,
    make("small", {}, note),
  );
}

function coreField(app) {
  const [wide, high] = app.state.settings.core ?? [0.6, 0.9];
  const send = () => app.learned.changeSettings({ core: [Number(across.value), Number(down.value)] });
  const number = (id, value, label) =>
    make("input", {
      id,
      type: "number",
      min: 0.1,
      max: 1,
      step: 0.05,
      value,
      "aria-label": label,
      on: { change: send },
      disabled: app.readOnly,
    });
  const [across, down] = [
    number("core-wide", wide, "Share of the width"),
    number("core-high", high, "Share of the height"),
  ];
  return make(
    "div",
    { class: "field" },
    make("label", { for: "core-wide" }, "Core of a box"),
    make("span", { class: "row" }, across, "×", down),
    make("small", {}, "share of its width and height that counts as target; the rim of a box counts as neither"),
  );
}

export function showSettings(app) {
  const fields = Object.entries(FIELDS).filter(([name]) => name in app.state.settings);
  const auto = button(
    "Choose by cross-validation",
    "Try all settings and keep the best",
    () => {
      app.connection.send({ type: "auto" });
      box.close();
    },
    { class: "primary", disabled: app.readOnly },
  );
  const why = make(
    "p",
    { class: "note" },
    "Tries objectives and interactions on held-out scenes or parts, and continues with the winner.",
  );
  const box = dialog(
    "Setting",
    make(
      "div",
      { class: "fields" },
      ...fields.map(([name, words]) => field(app, name, words)),
      ...("core" in app.state.settings ? [coreField(app)] : []),
    ),
    auto,
    why,
  );
}

const EXPORTS = [
  [
    "Labels",
    [
      ["coco", "COCO", "boxes and polygons as JSON"],
      ["geojson", "GeoJSON", "in map coordinates where there are any"],
      ["csv", "CSV", "one row per label"],
      ["masks", "Masks", "one PNG or GeoTIFF per scene"],
    ],
  ],
  [
    "What was learned",
    [
      ["model", "Model", "for bimichi fuse and Python"],
      ["fused", "Fused maps", "of all scenes"],
      ["report", "Report", "one page that explains every pixel"],
      ["all", "Everything", "all of the above"],
    ],
  ],
  [
    "Do it again without the studio",
    [
      ["command", "Copy as command line", "bimichi train … gives the same model, byte for byte"],
      ["python", "Copy as Python", "the same model from a script"],
    ],
  ],
];

export function showExports(app) {
  const result = make("div", { class: "result", "aria-live": "polite" });
  const run = async (kind, title) => {
    result.replaceChildren(make("p", { class: "note" }, `${title}: being written …`));
    const answer = await app.attempt(() => post("export", { kind }));
    if (!answer)
      return result.replaceChildren(
        make("p", { class: "problem" }, "This could not be exported; the message is at the top of the page."),
      );
    result.replaceChildren(...shownAnswer(answer, title));
  };
  const groups = EXPORTS.map(([heading, rows]) =>
    make(
      "section",
      {},
      make("h3", {}, heading),
      make(
        "div",
        { class: "exports" },
        ...rows.map(([kind, title, note]) =>
          make(
            "div",
            { class: "export" },
            button(title, note, () => run(kind, title), { data: { kind } }),
            make("small", {}, note),
          ),
        ),
      ),
    ),
  );
  const saved = app.state.project
    ? `Labels are saved by themselves, in ${app.state.project}.`
    : "Labels are saved by themselves.";
  dialog("Save and export", make("p", { class: "lead" }, saved), ...groups, result, ending(app));
}

function ending(app) {
  const note = make("small", {}, "Everything is saved; the program that serves this page ends.");
  const end = (body, words) => async () => {
    if (await app.attempt(() => post("close", body))) note.textContent = words;
  };
  return make(
    "div",
    { class: "row ending" },
    button(
      "End the studio now",
      "Save, and end the program",
      end({}, "The program has ended; this page can be closed."),
    ),
    button(
      "End it with the last tab",
      "Save, and end the program when this page is closed",
      end({ after: "tabs" }, "The program ends when the last tab is closed."),
    ),
    note,
  );
}

function shownAnswer({ files = [], text }, title) {
  const parts = [];
  if (files.length) {
    const links = files.map((file) => {
      const name = file.name ?? file;
      return make(
        "li",
        {},
        make("a", { href: file.url ?? `exports/${encodeURIComponent(name)}`, download: name.split("/").at(-1) }, name),
      );
    });
    parts.push(make("p", {}, `${title}: written. Download:`), make("ul", {}, ...links));
  }
  if (text) parts.push(copyBox(text));
  return parts;
}

function copyBox(text) {
  const area = make("textarea", {
    readonly: true,
    rows: Math.min(9, text.split("\n").length + 1),
    "aria-label": "Text to copy",
  });
  area.value = text;
  const copy = button(
    "Copy",
    "Copy to the clipboard",
    async () => {
      area.select();
      await navigator.clipboard?.writeText(text).catch(() => document.execCommand("copy"));
      copy.textContent = "Copied";
    },
    { class: "primary" },
  );
  return make("div", { class: "copy" }, area, copy);
}
