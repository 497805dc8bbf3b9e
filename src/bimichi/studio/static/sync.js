// Labels on their way to the server and back.

import { getJson } from "./connection.js";

const UNSENT = "bimichi-unsent";

export class LabelSync {
  constructor(app) {
    this.app = app;
    this.place = `${UNSENT} ${location.pathname}`;
  }

  get unsent() {
    return JSON.parse(sessionStorage.getItem(this.place) ?? "{}");
  }

  // While the server cannot be reached, this tab remembers what was drawn, even if it is loaded again.
  send(scene) {
    const { connection, labels } = this.app;
    const message = { type: "labels", scene, revision: labels.revision(scene), shapes: labels.of(scene) };
    if (!connection.send(message))
      sessionStorage.setItem(this.place, JSON.stringify({ ...this.unsent, [scene]: message }));
  }

  // After the server was reached, whose revisions of the scenes these are.
  resume(revisions = {}) {
    const { app, unsent } = this;
    const { labels } = app;
    sessionStorage.removeItem(this.place);
    for (const { scene, revision, shapes } of Object.values(unsent)) {
      if (scene < labels.scenes.length && revision > labels.revision(scene))
        labels.edit(scene, shapes, "labels kept by this tab");
    }
    labels.scenes.forEach(({ revision }, scene) => {
      const theirs = revisions[scene] ?? app.state.scenes[scene].revision;
      if (app.primary && revision > theirs) this.send(scene);
      else if (theirs > revision) this.fetch();
    });
  }

  async fetch() {
    const { app } = this;
    const state = await app.attempt(() => getJson("state"));
    state?.scenes.forEach(({ shapes, revision }, scene) => app.labels.receive(scene, shapes, revision));
  }
}
