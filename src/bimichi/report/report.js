// Start the page: unpack, integrate, draw, and listen.

import { fusedOf, outputOf } from "./integral.js";
import { borders, colourWords, level, Maps, paint, twice } from "./maps.js";
import { unpack } from "./planes.js";
import { get, Readout } from "./readout.js";

const OVERLAYS = {
  boxes: (report) => twice(boxPath(report.boxes), "#111111"),
  truth: (report) => twice(borders(report.width, report.height, parting(report.truth)), "#e6a700"),
  detections: (report) => twice(ringPath(report.detections), "#c2185b"),
  bags: bagStrokes,
};

const parting = (plane) => (i, j) => plane[i] !== plane[j];

function boxPath(boxes) {
  const path = new Path2D();
  for (const box of boxes) path.rect(...box);
  return path;
}

function ringPath(rings) {
  const path = new Path2D();
  for (const [start, ...corners] of rings) {
    path.moveTo(...start);
    for (const corner of corners) path.lineTo(...corner);
  }
  return path;
}

function bagStrokes({ width, height, segments, labels }) {
  const differ = parting(segments);
  const positive = (i, j) => differ(i, j) && (labels[segments[i]] || labels[segments[j]]);
  return [
    { path: borders(width, height, differ), colour: "#777777", width: 1 },
    ...twice(borders(width, height, positive), "#009e73"),
  ];
}

function pictures(report) {
  const { width, height, sources, integral, outputLow, truth } = report;
  const words = colourWords([...report.colours, report.missing]);
  const word = (value) => words[Number.isNaN(value) ? 256 : level(value)];
  const painted = { fused: paint(width, height, (i) => word(fusedOf(integral[i], report))) };
  sources.forEach(({ indices, scaled }, k) => {
    const own = Uint32Array.from(scaled, word);
    painted[`source-${k}`] = paint(width, height, (i) => own[indices[i]]);
  });
  if (truth) painted.truth = paint(width, height, (i) => word(truth[i] ? 1 : outputLow));
  return painted;
}

// The pixel with the largest fused value: the page starts with an answer.
function brightest(report) {
  let [best, most] = [0, -Infinity];
  report.integral.forEach((value, i) => {
    const output = outputOf(value, report);
    if (output > most) [best, most] = [i, output];
  });
  return best;
}

function listen(maps, state, choose) {
  const main = document.querySelector('[data-map="fused"]');
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const actions = {
    "+": () => maps.zoomBy(1.5, centre()),
    "=": () => maps.zoomBy(1.5, centre()),
    "-": () => maps.zoomBy(1 / 1.5, centre()),
    0: () => maps.zoomBy(0),
    Enter: () => state.hold(!state.held),
    Escape: () => state.hold(false),
  };
  const centre = () => ({ x: maps.pixel.x + 0.5, y: maps.pixel.y + 0.5 });
  main.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? 10 : 1;
    if (moves[event.key]) choose(...moves[event.key].map((d, k) => maps.pixel[k ? "y" : "x"] + far * d), true);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  });
  get("zoom-in").addEventListener("click", actions["+"]);
  get("zoom-out").addEventListener("click", actions["-"]);
  get("zoom-reset").addEventListener("click", actions[0]);
  get("release").addEventListener("click", actions.Escape);
}

function addOverlays(maps, report) {
  for (const button of document.querySelectorAll("[data-overlay]")) {
    const overlay = { on: button.getAttribute("aria-pressed") === "true", strokes: null };
    const update = () => {
      overlay.strokes ??= OVERLAYS[button.dataset.overlay](report);
      button.setAttribute("aria-pressed", overlay.on);
      maps.draw();
    };
    if (overlay.on) update();
    maps.overlays.set(button.dataset.overlay, overlay);
    button.addEventListener("click", () => {
      overlay.on = !overlay.on;
      update();
    });
  }
}

function switchTheme() {
  const button = get("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => (button.textContent = dark() ? "Light" : "Dark");
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
  });
  system.addEventListener("change", label);
  label();
}

async function start() {
  switchTheme();
  if (!("DecompressionStream" in window)) {
    throw new Error("it cannot unpack data (DecompressionStream); current Chromium, Firefox and Safari can");
  }
  const report = await unpack(JSON.parse(get("data").textContent));
  report.integral = report.measure.integrate(report.sources);
  const readout = new Readout(report);
  const state = {
    held: false,
    hold(on) {
      this.held = on;
      get("release").hidden = !on;
    },
  };
  const choose = (x, y, announce = false) => {
    const [column, row] = [Math.min(report.width - 1, Math.max(0, x)), Math.min(report.height - 1, Math.max(0, y))];
    maps.show(column, row);
    readout.show(column, row);
    if (announce) get("announcement").textContent = readout.sentence;
  };
  const maps = new Maps(
    report.width,
    report.height,
    (x, y) => state.held || choose(x, y),
    () => state.hold(!state.held),
  );
  const painted = pictures(report);
  for (const view of document.querySelectorAll("[data-map]")) maps.add(view, painted[view.dataset.map]);
  addOverlays(maps, report);
  listen(maps, state, choose);
  const first = brightest(report);
  choose(first % report.width, Math.floor(first / report.width));
  get("problem").remove();
  document.documentElement.dataset.ready = "";
}

start().catch((error) => {
  get("problem").textContent = `This browser cannot show the maps: ${error.message}.`;
});
