// The bar at the top, and the notices under it.

import { button, make, press } from "./dom.js";

const MODES = [
  ["live", "Live", "Learn after every edit"],
  ["once", "Once", "Learn only when asked to"],
  ["off", "Off", "Draw without learning"],
];
const MOST_PROBLEMS = 3;

export class Header {
  constructor(app, parts, actions) {
    Object.assign(this, { app, parts });
    const { history, mode, menu } = parts;
    this.undo = button("Undo", "Undo (Ctrl+Z)", () => app.drawing.undo());
    this.redo = button("Redo", "Redo (Ctrl+Shift+Z)", () => app.drawing.redo());
    history.append(this.undo, this.redo);
    this.modes = MODES.map(([name, text, title]) => button(text, title, () => actions.mode(name), { data: null }));
    this.learn = button("Learn", "Learn from the labels now (T)", () => app.learned.train(), { id: "learn" });
    mode.append(...this.modes, this.learn);
    menu.append(
      button("Save and export", "Save labels, model, maps and report (Ctrl+S)", actions.exports, { id: "export" }),
      button("?", "Keys and help (?)", actions.help, { "aria-label": "Keys and help" }),
      button("Dark", "Switch between light and dark", actions.theme, { id: "theme-switch" }),
    );
    this.banners = new Map();
    this.problems = [];
    app.on("labels working state mode saved primary model scene", () => this.refresh());
    app.on("notice", ({ text }) => this.addNote(text));
    app.on("problem", ({ text }) => this.addProblem(text));
    this.refresh();
  }

  refresh() {
    const { app } = this;
    const title = app.state.scenes.length ? app.state.title || app.state.project || "Untitled" : "Welcome";
    this.parts.title.textContent = title;
    document.title = `${title} · bimichi studio`;
    this.undo.disabled = !app.labels.past.length || app.readOnly;
    this.redo.disabled = !app.labels.future.length || app.readOnly;
    MODES.forEach(([name], k) => press(this.modes[k], app.state.mode === name));
    this.learn.hidden = app.state.mode === "live";
    this.learn.disabled = app.readOnly;
    this.showStatus();
  }

  showStatus() {
    const { app, parts } = this;
    const { working } = app;
    const { model, stale } = app.learned;
    if (working) {
      const bar = make("progress", typeof working.share === "number" ? { max: 1, value: working.share } : {});
      const stop = button("Cancel", "Stop this (Esc)", () => app.connection.send({ type: "cancel" }), {
        class: "small",
        id: "cancel",
      });
      const task = make("span", { class: "what", title: working.what }, working.what);
      parts.status.replaceChildren(bar, task, ...(working.stops === false ? [] : [stop]));
      return;
    }
    const learned = model ? `Map ${model.number}${stale ? ", out of date" : ""}` : "";
    const taken = Object.values(model?.seconds ?? {}).filter((value) => typeof value === "number");
    const seconds = taken.length ? (model.seconds.total ?? taken.reduce((sum, value) => sum + value, 0)) : null;
    const time =
      typeof seconds === "number"
        ? ` in ${seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toFixed(1)} s`}`
        : "";
    const saved = app.saved ? `saved ${new Date(app.saved).toLocaleTimeString()}` : "";
    parts.status.replaceChildren(
      make("span", { class: "what" }, [learned && learned + time, saved].filter(Boolean).join(" · ")),
    );
  }

  // A notice that stays until its reason is gone: key, text, and what can be done.
  banner(key, text, ...actions) {
    if (text)
      this.banners.set(key, make("div", { class: `notice ${key.split(" ")[0]}` }, make("span", {}, text), ...actions));
    else this.banners.delete(key);
    this.showNotices();
  }

  // Something to know, that can be closed.
  addNote(text) {
    this.banner(
      `note ${text}`,
      text,
      button("Close", "Close this message", () => this.banner(`note ${text}`, null), { class: "small" }),
    );
  }

  addProblem(text) {
    if (!this.problems.includes(text)) this.problems = [...this.problems, text].slice(-MOST_PROBLEMS);
    this.showNotices();
  }

  showNotices() {
    const problems = this.problems.map((text) =>
      make(
        "div",
        { class: "notice problem", role: "alert" },
        make("span", {}, text),
        button(
          "Close",
          "Close this message",
          () => {
            this.problems = this.problems.filter((other) => other !== text);
            this.showNotices();
          },
          { class: "small" },
        ),
      ),
    );
    this.parts.notices.replaceChildren(...this.banners.values(), ...problems);
  }
}
