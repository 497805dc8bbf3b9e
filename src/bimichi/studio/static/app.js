// The studio: what is open, what is shown, and what is said to the server. Parts of the page listen to its events.
/* global unpackMeasure */

import { Connection, getJson, Refused } from "./connection.js";
import { Detector } from "./detector.js";
import { get, onceAFrame } from "./dom.js";
import { Labels } from "./labels.js";
import { Pictures } from "./pictures.js";
import { readMap, Shelf } from "./scenes.js";
import { contains, newShape, tidy } from "./shapes.js";
import { Tools } from "./tools.js";
import { Views } from "./views.js";

const UNSENT = `bimichi-unsent ${location.pathname}`;

// What the views show at first: the photograph, the map, and as many sources as there is room for.
function firstLayers({ scenes, sources }) {
  const photo = scenes.some((scene) => scene.rgb);
  const own = sources.map((_, k) => `source:${k}`);
  const layers = [photo ? "photo" : own.shift(), "fused", ...own, "uncertainty", "photo", "photo"].slice(0, 4);
  return { layers, count: own.length && innerWidth > 900 ? 4 : 2 };
}

// When something happened last, for measurements.
function mark(name) {
  performance.clearMarks(name);
  performance.mark(name);
}

export class App extends EventTarget {
  constructor(state) {
    super();
    this.state = state;
    this.connection = new Connection();
    this.labels = new Labels(state.scenes);
    this.shelf = new Shelf(state.scenes);
    this.views = new Views(this);
    this.tools = new Tools(this);
    this.keys = { space: false };
    Object.assign(this, { scene: 0, selected: null, preview: null, held: false, model: null, report: null });
    Object.assign(this, { score: null, working: null, suggestions: [], primary: state.primary !== false, saved: null });
    this.shown = { ...firstLayers(state), opacity: 0, brightness: 1, labels: true };
    this.contrast = state.sources.map(() => 1);
    this.detector = new Detector(this, state.threshold ?? null);
    this.pictures = new Pictures(this);
    this.pointed = onceAFrame(() => this.explain());
    this.labels.addEventListener("change", ({ detail }) => this.labelsChanged(detail));
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  on(types, listener) {
    for (const type of types.split(" ")) this.addEventListener(type, ({ detail }) => listener(detail));
  }

  get current() {
    return this.state.scenes[this.scene];
  }

  get data() {
    return this.shelf.get(this.scene);
  }

  get shapes() {
    return this.labels.of(this.scene);
  }

  get readOnly() {
    return !this.primary;
  }

  visibleShapes() {
    return this.shown.labels ? (this.preview ?? this.shapes) : [];
  }

  problem(text) {
    this.tell("problem", { text });
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

  // Scenes

  async show(index) {
    this.tools.cancel();
    Object.assign(this, { scene: index, selected: null, held: false });
    this.views.marked = null;
    this.detector.clear();
    this.shelf.open(index);
    this.views.setScene(this.current);
    this.report = null;
    this.connection.send({ type: "view", scene: index });
    this.tell("scene");
    await this.loadScene(index);
  }

  async loadScene(index) {
    const { current, state } = this;
    if (current.usable === false) return;
    await this.attempt(async () => {
      const data = this.shelf.get(index);
      if (!current.tiled) await data.loadAll(state.sources.length);
      if (this.model && !current.tiled && !this.connection.connected) await data.loadFused(this.model.number);
    });
    if (this.scene !== index) return;
    this.prepareReport();
    this.mapChanged();
    this.tell("loaded");
  }

  // After files were added: what was done before can still be undone.
  adopt(state) {
    const known = this.state.scenes.every(
      (scene, k) => scene.name === state.scenes[k]?.name && scene.usable === state.scenes[k]?.usable,
    );
    const same = this.state.sources.length === state.sources.length && this.state.scenes.length > 0;
    if (!known || !same) return location.reload();
    this.labels.scenes.push(
      ...state.scenes.slice(this.labels.scenes.length).map(({ shapes, revision }) => ({ shapes, revision })),
    );
    this.state = state;
    this.shelf.scenes = state.scenes;
    this.tell("state");
  }

  // Other recipes make other planes.
  async refreshState() {
    const state = await this.attempt(() => getJson("state"));
    if (!state) return;
    const old = this.shelf;
    const shelf = new Shelf(state.scenes);
    const data = shelf.open(this.scene);
    await this.attempt(() => data.loadAll(state.sources.length)); // the old pictures stay until then
    const { fused } = old.get(this.scene) ?? {};
    if (fused) data.take(fused);
    this.shelf = shelf;
    this.adopt(state);
    old.close();
    await this.loadScene(this.scene);
  }

  // Labels

  labelsChanged({ scene, what, ours }) {
    if (scene !== this.scene) this.show(scene);
    if (!this.shapes.some((shape) => shape.id === this.selected)) this.selected = null;
    if (ours) this.sendLabels(scene);
    mark("edited");
    this.views.draw();
    this.tell("labels", { scene, what });
  }

  sendLabels(scene) {
    const message = { type: "labels", scene, revision: this.labels.revision(scene), shapes: this.labels.of(scene) };
    if (!this.connection.send(message)) this.keepUnsent(message);
  }

  // While the server cannot be reached, this tab remembers what was drawn, even if it is loaded again.
  keepUnsent(message) {
    const kept = JSON.parse(sessionStorage.getItem(UNSENT) ?? "{}");
    sessionStorage.setItem(UNSENT, JSON.stringify({ ...kept, [message.scene]: message }));
  }

  sendUnsent(revisions = {}) {
    const kept = JSON.parse(sessionStorage.getItem(UNSENT) ?? "{}");
    sessionStorage.removeItem(UNSENT);
    for (const { scene, revision, shapes } of Object.values(kept)) {
      if (scene < this.labels.scenes.length && revision > this.labels.revision(scene))
        this.labels.edit(scene, shapes, "labels kept by this tab");
    }
    this.labels.scenes.forEach(({ revision }, scene) => {
      const known = revisions[scene] ?? this.state.scenes[scene].revision;
      if (this.primary && revision > known) this.sendLabels(scene);
      else if (known > revision) this.fetchLabels();
    });
  }

  async fetchLabels() {
    const state = await this.attempt(() => getJson("state"));
    state?.scenes.forEach(({ shapes, revision }, scene) => this.labels.receive(scene, shapes, revision));
  }

  step(back) {
    if (this.readOnly) return;
    this.tools.cancel();
    const step = back ? this.labels.undo() : this.labels.redo();
    this.announce(step ? `${back ? "Undone" : "Done again"}: ${step.what}.` : `Nothing to ${back ? "undo" : "redo"}.`);
  }

  select(id) {
    if (this.selected === id) return;
    this.selected = id;
    this.views.draw();
    this.tell("selected");
  }

  removeSelected() {
    if (this.selected && !this.readOnly) this.labels.remove(this.scene, this.selected, "removing a label");
  }

  async addSuperpixel([x, y], label) {
    const scene = this.scene;
    const [column, row] = [Math.floor(x), Math.floor(y)];
    if (column < 0 || row < 0 || column >= this.current.width || row >= this.current.height) return;
    const found = await this.attempt(() => this.data.superpixel(column, row));
    if (found) this.labels.add(scene, tidy(newShape("polygon", label, found.points)), "superpixel");
  }

  // The chosen pixel

  point(spot) {
    if (!this.held) this.choose(...spot.map(Math.floor));
  }

  choose(x, y) {
    const { width, height } = this.current;
    if (x < 0 || y < 0 || x >= width || y >= height) return;
    this.views.show(x, y);
    this.pointed();
  }

  leave() {}

  hold([x, y]) {
    const [column, row] = [Math.floor(x), Math.floor(y)];
    const { pixel } = this.views;
    const again = this.held && Math.abs(pixel.x - column) <= 1 && Math.abs(pixel.y - row) <= 1;
    this.held = false;
    this.choose(column, row);
    this.held = !again;
    this.tell("held");
  }

  release() {
    this.held = false;
    this.tell("held");
  }

  explain() {
    this.tell("pixel", this.views.pixel);
  }

  explainBoxClick(spot) {
    const hit = this.shapes.find((shape) => contains(shape, spot));
    this.select(hit?.id ?? null);
    this.hold(spot);
  }

  announce(text) {
    get("announcement").textContent = text;
  }

  // The model

  get stale() {
    if (!this.model) return false;
    if (this.resettled) return true;
    return this.labels.scenes.some(
      ({ revision, shapes }, k) => (this.model.revision?.[k] ?? (shapes.length ? -1 : revision)) !== revision,
    );
  }

  get outputLow() {
    return this.model?.rule.outputLow ?? 0;
  }

  // A model, or number 0 if there is none any more. A second message of the same model completes it.
  receiveModel(model) {
    const earlier = this.arriving;
    this.arriving = this.attempt(async () => {
      if (model.rule) return this.unpackModel(model, earlier);
      await earlier;
      this.forgetModel();
    });
    return this.arriving;
  }

  async unpackModel(model, earlier) {
    const again = this.model?.number === model.number;
    const measure = again ? this.measure : await unpackMeasure(model.rule.measure, model.rule.names.length);
    await earlier;
    if (model.number < this.model?.number) return;
    Object.assign(this, { model, measure });
    if (model.score) this.score = { number: model.number, ...model.score }; // or the old one stays, and is marked
    if (!again) this.resettled = false;
    this.tell("model");
    if (again) return;
    this.prepareReport();
    this.pictures.tiles.forget("fused");
    this.views.draw();
  }

  forgetModel() {
    Object.assign(this, { model: null, measure: null, score: null, report: null, suggestions: [] });
    for (const data of this.shelf.kept.values()) data.forgetMaps();
    this.detector.clear();
    delete document.documentElement.dataset.map;
    for (const what of ["model", "scene", "suggestions"]) this.tell(what);
    this.views.draw();
  }

  // A map comes after its model, and is shown together with it.
  async receiveMap(bytes) {
    const map = readMap(bytes);
    await this.arriving;
    this.shelf.get(map.scene)?.take(map);
    if (map.scene === this.scene) this.mapChanged();
  }

  mapChanged() {
    this.detector.outlineNow();
    this.explain();
    requestAnimationFrame(() => {
      const number = this.data?.fused?.number;
      if (number === undefined) return;
      document.documentElement.dataset.map = number; // drawn in this frame
      mark("mapped");
      this.tell("map");
    });
  }

  // What explains pixels: the rule, and how this scene's sources enter it.
  prepareReport() {
    const { model, data, current, state } = this;
    this.report = null;
    if (!model || !data || current.usable === false) return;
    const { width, height, tiled } = current;
    const shared = { ...model.rule, measure: this.measure, width, height, fullWidth: width, fullHeight: height };
    const own = { truth: data.truth, segments: null, labels: null, colours: state.colours };
    if (!tiled && !data.complete) return;
    this.report = { ...shared, ...own, sources: tiled ? [] : data.enter(model.rule) };
    this.tell("report");
  }

  changeSettings(changes) {
    this.resettled = true; // what is shown was learned by others
    this.connection.send({ type: "settings", ...changes });
    this.tell("working");
  }

  train() {
    this.connection.send({ type: "train" });
  }

  refreshTools() {
    this.tell("tools");
  }
}
