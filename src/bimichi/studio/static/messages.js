// What the server says, and which part of the page it concerns.

import { button } from "./dom.js";

const PATIENCE = 8000; // milliseconds without the server, after which it has probably ended

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

function listenForLoss(app, header) {
  const { connection } = app;
  let missing = null;
  connection.on("connected", () => {
    clearTimeout(missing);
    header.banner("lost", null);
  });
  connection.on("lost", () => {
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
  connection.on("closed", () =>
    header.banner("closed", "The server was ended. Everything is saved; this page can be closed."),
  );
}

function listenForWork(app) {
  const { connection } = app;
  const set = (working) => {
    app.working = working;
    app.tell("working");
  };
  connection.on("working", set);
  connection.on("idle lost", () => set(null));
  connection.on("stopped", () => app.announce("Learning was stopped."));
}

export function listenToServer(app, header) {
  const { connection, learned } = app;
  listenForWork(app);
  listenForLoss(app, header);
  connection.on("hello", ({ primary, revisions }) => {
    app.primary = primary;
    showTabs(app, header);
    app.sync.resume(revisions);
    connection.send({ type: "view", scene: app.scenes.index });
  });
  connection.on("taken_over", () => {
    app.primary = false;
    app.tools.cancel();
    showTabs(app, header);
  });
  connection.on("model", (model) => learned.receive(model));
  connection.on("map", (bytes) => learned.receiveMap(bytes));
  connection.on("score", (score) => learned.receiveScore(score));
  connection.on("settings", ({ settings }) => {
    Object.assign(app.state.settings, settings);
    app.tell("settings");
  });
  connection.on("state", () => app.scenes.refresh());
  connection.on("labels", ({ scene, shapes, revision }) => app.labels.receive(scene, shapes, revision));
  connection.on("suggestions", () => app.suggestions.refresh());
  connection.on("saved", ({ at }) => {
    app.saved = at;
    app.tell("saved");
  });
  connection.on("problem", ({ text, where }) => app.problem(where ? `${where}: ${text}` : text));
  connection.connect();
}
