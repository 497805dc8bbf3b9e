// Start the page: fetch the state, build the parts, connect.

import { App } from "./app.js";
import { getJson, Refused } from "./connection.js";
import { showExports, showHelp, showSettings } from "./dialogs.js";
import { get } from "./dom.js";
import { Files, showStart } from "./files.js";
import { Frames } from "./frames.js";
import { Header } from "./header.js";
import { listenToKeys } from "./keys.js";
import { Left } from "./left.js";
import { listenToServer } from "./messages.js";
import { Right } from "./right.js";
import { Toolbar } from "./toolbar.js";

const MODES = ["live", "once", "off"];

const isDark = () => {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const labelTheme = () => (get("theme-switch").textContent = isDark() ? "Light" : "Dark");

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("bimichi-theme", theme);
  labelTheme();
}

// What buttons and keys do that concerns more than one part.
function makeActions(app, parts) {
  const mode = (name) => {
    if (app.readOnly) return;
    app.state.mode = name;
    app.connection.send({ type: "mode", mode: name });
    app.tell("mode");
  };
  return {
    mode,
    theme: switchTheme,
    help: showHelp,
    exports: () => showExports(app),
    settings: () => showSettings(app),
    add: () => parts.files.showAdd(),
    show: (k) => (app.state.scenes[k].usable === false ? parts.files.showLocate(k) : app.scenes.show(k)),
    showSource: (k) => parts.frames.toggleSource(k),
    nextMode: () => mode(MODES[(MODES.indexOf(app.state.mode) + 1) % MODES.length]),
    nextScene: (by) => {
      const next = app.scenes.index + by;
      if (next >= 0 && next < app.state.scenes.length) app.scenes.show(next);
    },
    toggleLabels: () => {
      app.shown.labels = !app.shown.labels;
      app.views.draw();
    },
    escape: () => {
      if (app.tools.cancel()) return;
      if (app.cursor.held) app.cursor.release();
      else if (app.drawing.selected) app.drawing.select(null);
      else if (app.views.marked) {
        app.views.marked = null;
        app.views.draw();
      } else if (app.working) app.connection.send({ type: "cancel" });
    },
  };
}

async function openStudio(app, header, parts, actions) {
  get("columns").hidden = false;
  new Toolbar(app, get("tools"));
  parts.frames = new Frames(app, get("views"), get("sliders"));
  new Left(app, get("left"), actions);
  new Right(app, get("right"), actions);
  listenToKeys(app, parts.frames, actions);
  if (app.state.model) await app.learned.receive(app.state.model);
  const first = app.state.scenes.findIndex((scene) => scene.usable !== false);
  await app.scenes.show(Math.max(0, first));
  listenToServer(app, header); // not before: the server then prepares to learn, which slows down its answers
  const notes = (app.state.notes ?? []).join(" ");
  if (notes && !app.labels.total) header.addNote(notes);
  app.labels.addEventListener("change", () => header.banner(`note ${notes}`, null), { once: true });
  if (app.learned.model) app.suggestions.refresh();
}

async function start() {
  const state = await getJson("state");
  const app = new App(state);
  const parts = {};
  const actions = makeActions(app, parts);
  const names = ["history", "mode", "menu", "title", "status", "notices"];
  const header = new Header(app, Object.fromEntries(names.map((name) => [name, get(name)])), actions);
  parts.files = new Files(app, header);
  labelTheme();
  document.body.classList.toggle("starting", !state.scenes.length);
  if (state.scenes.length) await openStudio(app, header, parts, actions);
  else showStart(get("start"), state, parts.files);
  get("loading").remove();
  globalThis.studio = app; // for the console, and for tests
  document.documentElement.dataset.ready = "";
}

start().catch((error) => {
  get("loading").textContent =
    error instanceof Refused
      ? error.message
      : `The page could not be opened: ${error.message}. Is bimichi studio still running?`;
});
