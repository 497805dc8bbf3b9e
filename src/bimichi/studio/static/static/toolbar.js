// Tools, classes, and the width of brush and eraser.

import { button, make, press } from "./dom.js";
import { LABELS } from "./shapes.js";
import { TOOLS } from "./tools.js";

const ICONS = {
  ask: "M4 2l8 7-4 .5 2.5 4.5-2 1L6 10.500 3.500 13z",
  box: "M2.500 3.500h11v9h-11z",
  polygon: "M8 2l6 4.500-2.500 7h-7L2 6.500z",
  brush: "M13.500 2.500c-3 1-6 4-7 6l1.500 1.500c2-1 5-4 6-7zM5.500 9.500c-2 0-2 2.500-4 4 3 .5 5.500 0 5.500-2.500z",
  superpixel: "M2 6l3-4 4 1 5 1-1 4 1 5-5 1-4-1-3-3zM5 2l1.500 6L2 10M6.500 8L13 8M6.500 8L9 14",
  eraser: "M2.500 10.500l7-7 4 4-6 6h-2.500zM6 7l4 4",
};

function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const [drawn, path] = [document.createElementNS(space, "svg"), document.createElementNS(space, "path")];
  drawn.setAttribute("viewBox", "0 0 16 16");
  drawn.setAttribute("aria-hidden", "true");
  drawn.classList.add("icon");
  path.setAttribute("d", ICONS[name]);
  drawn.append(path);
  return drawn;
}

export class Toolbar {
  constructor(app, root) {
    this.app = app;
    this.tools = Object.entries(TOOLS).map(([name, { title, key, hint }]) => {
      const made = make(
        "button",
        { type: "button", class: "tool", title: `${title} (${key.toUpperCase()}): ${hint}`, data: { tool: name } },
        icon(name),
        make("span", {}, title),
      );
      made.addEventListener("click", () => app.tools.choose(name));
      return made;
    });
    this.labels = Object.entries(LABELS).map(([name, { title }], k) =>
      make(
        "button",
        {
          type: "button",
          class: "label",
          title: `Label as ${title.toLowerCase()} (${k + 1})`,
          data: { label: name },
          on: { click: () => app.tools.chooseLabel(name) },
        },
        make("i", { class: `key ${name}`, "aria-hidden": "true" }),
        title,
      ),
    );
    this.width = make("input", {
      type: "range",
      id: "width",
      min: 1,
      max: 80,
      step: 1,
      value: 12,
      on: { input: () => this.setWidth(Number(this.width.value)) },
    });
    this.shown = make("output", { for: "width" });
    this.sized = make(
      "label",
      { class: "slider", for: "width", title: "Width of brush and eraser ([ and ])" },
      "Width",
      this.width,
      this.shown,
    );
    this.remove = button("Delete", "Delete the chosen label (Delete)", () => app.removeSelected(), { class: "small" });
    this.hint = make("p", { class: "hint", id: "hint" });
    root.append(
      make("div", { class: "group joined", role: "group", "aria-label": "Tool" }, ...this.tools),
      make("div", { class: "group joined", role: "group", "aria-label": "Class" }, ...this.labels),
      make("div", { class: "beneath" }, this.hint, this.sized, this.remove),
    );
    app.on("tools selected labels primary", () => this.refresh());
    this.refresh();
  }

  setWidth(value) {
    this.app.tools.width = Math.min(80, Math.max(1, value));
    this.refresh();
  }

  refresh() {
    const { app } = this;
    const { tools } = app;
    for (const one of this.tools) {
      press(one, one.dataset.tool === tools.name);
      one.disabled = app.readOnly && one.dataset.tool !== "ask";
    }
    for (const one of this.labels) {
      press(one, one.dataset.label === tools.label);
      one.disabled = app.readOnly;
    }
    this.sized.hidden = !["brush", "eraser"].includes(tools.name);
    this.width.value = tools.width;
    this.shown.textContent = `${tools.width} px`;
    this.remove.hidden = !app.selected || app.readOnly;
    this.hint.textContent = app.selected
      ? "Label chosen: drag it or its handles with Ask (V); 1, 2, 3 change its class; Delete removes it."
      : TOOLS[tools.name].hint;
  }
}
