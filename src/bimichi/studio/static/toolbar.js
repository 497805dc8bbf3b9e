// Tools, classes, and the width of brush and eraser.

import { button, make, press } from "./dom.js";
import { LABELS } from "./shapes.js";
import { WIDTHS } from "./toolbox.js";
import { TOOLS } from "./tools.js";

function icon(d) {
  const space = "http://www.w3.org/2000/svg";
  const [drawn, path] = [document.createElementNS(space, "svg"), document.createElementNS(space, "path")];
  drawn.setAttribute("viewBox", "0 0 16 16");
  drawn.setAttribute("aria-hidden", "true");
  drawn.classList.add("icon");
  path.setAttribute("d", d);
  drawn.append(path);
  return drawn;
}

export class Toolbar {
  constructor(app, root) {
    this.app = app;
    this.tools = TOOLS.map(({ id, title, key, hint, icon: path }) =>
      make(
        "button",
        {
          type: "button",
          class: "tool",
          title: `${title} (${key.toUpperCase()}): ${hint}`,
          data: { tool: id },
          on: { click: () => app.tools.choose(id) },
        },
        icon(path),
        make("span", {}, title),
      ),
    );
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
      min: WIDTHS[0],
      max: WIDTHS[1],
      step: 1,
      value: app.tools.width,
      on: { input: () => app.tools.setWidth(Number(this.width.value)) },
    });
    this.shown = make("output", { for: "width" });
    this.sized = make(
      "label",
      { class: "slider", for: "width", title: "Width of brush and eraser ([ and ])" },
      "Width",
      this.width,
      this.shown,
    );
    this.remove = button("Delete", "Delete the chosen label (Delete)", () => app.drawing.removeChosen(), {
      class: "small",
    });
    this.hint = make("p", { class: "hint", id: "hint" });
    root.append(
      make("div", { class: "group joined", role: "group", "aria-label": "Tool" }, ...this.tools),
      make("div", { class: "group joined", role: "group", "aria-label": "Class" }, ...this.labels),
      make("div", { class: "beneath" }, this.hint, this.sized, this.remove),
    );
    app.on("tools selected labels primary", () => this.refresh());
    this.refresh();
  }

  refresh() {
    const { app } = this;
    const { tools } = app;
    const { selected } = app.drawing;
    this.tools.forEach((choice, k) => {
      press(choice, TOOLS[k] === tools.kind);
      choice.disabled = !tools.usable(TOOLS[k]);
    });
    for (const choice of this.labels) {
      press(choice, choice.dataset.label === tools.label);
      choice.disabled = app.readOnly;
    }
    this.sized.hidden = !tools.kind.sized;
    this.width.value = tools.width;
    this.shown.textContent = `${tools.width} px`;
    this.remove.hidden = !selected || app.readOnly;
    this.hint.textContent = selected
      ? "Label chosen: drag it or its handles with Ask (V); 1, 2, 3 change its class; Delete removes it."
      : tools.kind.hint;
  }
}
