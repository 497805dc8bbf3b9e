// The studio: its parts, and what all of them share. A part has one concern, and hears of the others by events.

import { Connection, Refused } from "./connection.js";
import { Cursor } from "./cursor.js";
import { Detector } from "./detector.js";
import { get } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Events } from "./events.js";
import { Labels } from "./labels.js";
import { Learned } from "./learned.js";
import { Pictures } from "./pictures.js";
import { Scenes } from "./scenes.js";
import { Suggestions } from "./suggestions.js";
import { LabelSync } from "./sync.js";
import { Toolbox } from "./toolbox.js";
import { Views } from "./views.js";

// What the views show at first: the photograph, the map, and as many sources as there is room for.
function firstLayers({ scenes, sources }) {
  const photo = scenes.some((scene) => scene.rgb);
  const own = sources.map((_, k) => `source:${k}`);
  const layers = [photo ? "photo" : own.shift(), "fused", ...own, "uncertainty", "photo", "photo"].slice(0, 4);
  return { layers, count: own.length && innerWidth > 900 ? 4 : 2 };
}

export class App extends Events {
  constructor(state) {
    super();
    this.state = state; // as the server sent it
    Object.assign(this, { primary: state.primary !== false, working: null, saved: null });
    this.shown = { ...firstLayers(state), opacity: 0, brightness: 1, labels: true };
    this.contrast = state.sources.map(() => 1);
    this.connection = new Connection();
    this.labels = new Labels(state.scenes);
    this.sync = new LabelSync(this);
    this.scenes = new Scenes(this);
    this.drawing = new Drawing(this);
    this.cursor = new Cursor(this);
    this.views = new Views(this);
    this.tools = new Toolbox(this);
    this.learned = new Learned(this);
    this.detector = new Detector(this, state.threshold ?? null);
    this.pictures = new Pictures(this);
    this.suggestions = new Suggestions(this);
  }

  // Another tab draws; this one only looks.
  get readOnly() {
    return !this.primary;
  }

  problem(text) {
    this.tell("problem", { text });
  }

  // Say something to screen readers.
  announce(text) {
    get("announcement").textContent = text;
  }

  // Run something that may fail, and say so in the page.
  async attempt(work) {
    try {
      return await work();
    } catch (error) {
      this.problem(error instanceof Refused ? error.message : `This did not work: ${error.message}.`);
      return null;
    }
  }
}
