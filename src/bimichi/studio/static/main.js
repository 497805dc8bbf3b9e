// Start the page: fetch the state, build the parts, connect.

import { App } from "./app.js";
import { getJson, Refused } from "./connection.js";
import { refreshSuggestions, showExports, showHelp, showSettings } from "./dialogs.js";
import { button, get } from "./dom.js";
import { Files, showStart } from "./files.js";
import { Frames } from "./frames.js";
import { Header } from "./header.js";
import { listenToKeys } from "./keys.js";
import { Left } from "./left.js";
import { Right } from "./right.js";
import { Toolbar } from "./toolbar.js";

const MODES = ["live", "once", "off"];
const PATIENCE = 8000; // milliseconds without the server, after which it has probably ended

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("bimichi-theme", root.dataset.theme);
  labelTheme();
}

function labelTheme() {
  const { theme } = document.documentElement.dataset;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  get("theme-switch").textContent = dark ? "Light" : "Dark";
}

function makeActions(app, parts) {
  const goTo = async (k) => {
    const item = app.suggestions[k];
    if (!item) return;
    item.visited = true;
    if (item.scene !== app.scene) await app.show(item.scene);
    app.views.marked = item.box;
    app.views.goTo(item.box);
    app.release();
    app.choose(Math.floor(item.box[0] + item.box[2] / 2), Math.floor(item.box[1] + item.box[3] / 2));
    app.announce(item.reason);
    app.tell("suggestions");
  };
  const mode = (name) => {
    if (app.readOnly) return;
    app.state.mode = name;
    app.connection.send({ type: "mode", mode: name });
    app.tell("mode");
  };
  return {
    mode,
    goTo,
    theme: switchTheme,
    help: showHelp,
    exports: () => showExports(app),
    settings: () => showSettings(app),
    add: () => parts.files.showAdd(),
    show: (k) => (app.state.scenes[k].usable === false ? parts.files.showLocate(k) : app.show(k)),
    showSource: (k) => parts.frames.toggleSource(k),
    goNext: () => {
      if (!app.suggestions.length) return app.announce("Nothing is listed to label next.");
      const next = app.suggestions.findIndex((item) => !item.visited);
      goTo(next < 0 ? 0 : next);
    },
    nextMode: () => mode(MODES[(MODES.indexOf(app.state.mode) + 1) % MODES.length]),
    nextScene: (by) => {
      const wanted = app.scene + by;
      if (wanted >= 0 && wanted < app.state.scenes.length) app.show(wanted);
    },
    toggleLabels: () => {
      app.shown.labels = !app.shown.labels;
      app.views.draw();
    },
    escape: () => {
      if (app.tools.cancel()) return;
      if (app.held) app.release();
      else if (app.selected) app.select(null);
      else if (app.views.marked) {
        app.views.marked = null;
        app.views.draw();
      } else if (app.working) app.connection.send({ type: "cancel" });
    },
  };
}

function showTabs(app, header) {
  const take = button(
    "Work here instead",
    "This tab becomes the one that draws",
    () => app.connection.send({ type: "take_over" }),
    { class: "primary" },
  );
  const text = app.primary
    ? null
    : "This project is open in another tab, which draws. Here you can look; nothing is lost.";
  header.banner("tabs", text, take);
  app.tell("primary");
}

function listenToServer(app, header) {
  const { connection } = app;
  let missing = null;
  connection.on("hello", ({ primary, revisions }) => {
    app.primary = primary;
    showTabs(app, header);
    app.sendUnsent(revisions);
    connection.send({ type: "view", scene: app.scene });
  });
  connection.on("connected", () => {
    clearTimeout(missing);
    header.banner("lost", null);
  });
  connection.on("lost", () => {
    app.working = null;
    app.tell("working");
    header.banner("lost", "The connection to the server is lost. Trying again; what you draw is kept in this tab.");
    missing = setTimeout(
      () =>
        header.banner(
          "lost",
          "The server has probably ended. What you drew before is in the project: start bimichi studio again, and " +
            "open it. What you draw now is kept in this tab only.",
        ),
      PATIENCE,
    );
  });
  connection.on("taken_over", () => {
    app.primary = false;
    app.tools.cancel();
    showTabs(app, header);
  });
  connection.on("working", (message) => {
    app.working = message;
    app.tell("working");
  });
  connection.on("idle", () => {
    app.working = null;
    app.tell("working");
  });
  connection.on("model", (model) => app.receiveModel(model));
  connection.on("map", (bytes) => app.receiveMap(bytes));
  connection.on("score", (score) => {
    app.score = { number: app.model?.number, ...score };
    app.tell("score");
  });
  connection.on("settings", ({ settings }) => {
    Object.assign(app.state.settings, settings);
    app.tell("settings");
  });
  connection.on("state", () => app.refreshState());
  connection.on("stopped", () => app.announce("Learning was stopped."));
  connection.on("closed", () =>
    header.banner("closed", "The server was ended. Everything is saved; this page can be closed."),
  );
  connection.on("labels", ({ scene, shapes, revision }) => app.labels.receive(scene, shapes, revision));
  connection.on("suggestions", () => refreshSuggestions(app));
  connection.on("saved", ({ at }) => {
    app.saved = at;
    app.tell("saved");
  });
  connection.on("problem", ({ text, where }) => app.problem(where ? `${where}: ${text}` : text));
  connection.connect();
}

async function openStudio(app, header, parts, actions) {
  get("columns").hidden = false;
  parts.toolbar = new Toolbar(app, get("tools"));
  parts.frames = new Frames(app, get("views"), get("sliders"));
  parts.left = new Left(app, get("left"), actions);
  parts.right = new Right(app, get("right"), actions);
  listenToKeys(app, { ...parts, actions });
  if (app.state.model) await app.receiveModel(app.state.model);
  const first = app.state.scenes.findIndex((scene) => scene.usable !== false);
  await app.show(Math.max(0, first));
  listenToServer(app, header); // not before: the server then prepares to learn, which slows down its answers
  const notes = (app.state.notes ?? []).join(" ");
  if (notes && !app.labels.total) header.addNote(notes);
  app.labels.addEventListener("change", () => header.banner(`note ${notes}`, null), { once: true });
  if (app.model) refreshSuggestions(app);
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
