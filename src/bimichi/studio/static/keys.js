// Keys for everything. What is listed here is what the help shows.

import { TOOLS } from "./tools.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export const HELP = [
  [
    "Draw",
    [
      ...Object.values(TOOLS).map(({ title, key }) => [key.toUpperCase(), title]),
      ["1 2 3", "Target, not target, ignore; also of the chosen label"],
      ["[ ]", "Width of brush and eraser"],
      ["Ctrl+Z, Ctrl+Shift+Z", "Undo, redo"],
      ["Delete", "Remove the chosen label"],
      ["Alt+arrows, with Shift", "Move, resize the chosen label"],
    ],
  ],
  [
    "Without a mouse",
    [
      ["Arrows, with Shift", "Move the cursor by 1, by 10 pixels"],
      ["Enter", "Put a corner, begin or end a stroke, label a superpixel, erase, hold the pixel"],
      ["Enter twice", "Close a polygon at its last corner"],
      ["Esc", "Give up what is being drawn; release the pixel; stop learning"],
    ],
  ],
  [
    "Look",
    [
      ["+ − 0", "Zoom in, out, whole image; also the wheel"],
      ["Space and drag", "Move the view; also the right button or two fingers"],
      ["W", "1, 2 or 4 views"],
      ["O, Shift+O", "Fused map over the photograph: more, less"],
      ["D", "Outlines of detections on or off"],
      ["H", "Labels on or off"],
      ["I, Shift+I", "Threshold up, down"],
      [", .", "Scene before, scene after"],
    ],
  ],
  [
    "Learn",
    [
      ["L", "Live, once, off"],
      ["T", "Learn now"],
      ["N", "Go to what is most worth labelling"],
      ["X", "The detection at the cursor is a false alarm: make it a negative region"],
      ["Ctrl+S", "Save and export"],
      ["?", "This help"],
    ],
  ],
];

// Keys that a control needs for itself.
function taken(event) {
  const { target, key } = event;
  if (target.closest?.("dialog[open]")) return true;
  const tag = target.tagName;
  if (tag === "TEXTAREA" || tag === "SELECT" || (tag === "INPUT" && !["range", "checkbox"].includes(target.type)))
    return true;
  const pressing = key === "Enter" || key === " ";
  if (tag === "INPUT") return key in MOVES || pressing || key === "Home" || key === "End";
  return (tag === "BUTTON" || tag === "SUMMARY" || tag === "A") && pressing;
}

export function listenToKeys(app, { frames, toolbar, actions }) {
  const { tools, views } = app;
  const move = ([dx, dy], event) => {
    const far = event.shiftKey && !event.altKey ? 10 : 1;
    if (event.altKey) return tools.nudge(dx, dy, event.shiftKey);
    app.held = false;
    const { width, height } = app.current;
    const within = (value, size) => Math.min(size - 1, Math.max(0, value));
    app.choose(within(views.pixel.x + far * dx, width), within(views.pixel.y + far * dy, height));
    tools.follow();
    app.tell("held");
  };
  const centre = () => ({ x: views.pixel.x + 0.5, y: views.pixel.y + 0.5 });
  const labels = ["target", "not", "ignore"];
  const plain = {
    "+": () => views.zoomBy(1.5, centre()),
    "=": () => views.zoomBy(1.5, centre()),
    "-": () => views.zoomBy(1 / 1.5, centre()),
    0: () => views.zoomBy(0),
    "[": () => toolbar.setWidth(tools.width - 2),
    "]": () => toolbar.setWidth(tools.width + 2),
    ",": () => actions.nextScene(-1),
    ".": () => actions.nextScene(1),
    w: () => frames.cycle(),
    o: () => frames.setOpacity(app.shown.opacity + 0.1),
    O: () => frames.setOpacity(app.shown.opacity - 0.1),
    d: () => frames.setOutlined(!app.detector.on),
    h: () => actions.toggleLabels(),
    i: () => app.detector.set(app.detector.cut + 0.02),
    I: () => app.detector.set(app.detector.cut - 0.02),
    l: () => actions.nextMode(),
    t: () => app.train(),
    n: () => actions.goNext(),
    x: () => app.detector.refuse(),
    "?": () => actions.help(),
    Enter: () => tools.step(),
    Delete: () => app.removeSelected(),
    Backspace: () => app.removeSelected(),
    Escape: () => actions.escape(),
  };
  labels.forEach((label, k) => (plain[k + 1] = () => !app.readOnly && tools.chooseLabel(label)));
  for (const [name, { key }] of Object.entries(TOOLS))
    plain[key] = () => (name === "ask" || !app.readOnly) && tools.choose(name);
  const withControl = {
    z: (event) => app.step(!event.shiftKey),
    y: () => app.step(false),
    s: () => actions.exports(),
  };
  document.addEventListener("keydown", (event) => {
    if (!app.current || taken(event)) return;
    if (event.key === " ") app.keys.space = true;
    const control = event.ctrlKey || event.metaKey;
    let work = null;
    if (MOVES[event.key] && !control) work = () => move(MOVES[event.key], event);
    else if (control && !event.altKey) work = withControl[event.key.toLowerCase()];
    else if (!event.altKey) work = plain[event.key] ?? (event.key === " " ? () => {} : plain[event.key.toLowerCase()]);
    if (!work) return;
    event.preventDefault();
    work(event);
  });
  document.addEventListener("keyup", (event) => {
    if (event.key === " ") app.keys.space = false;
  });
  addEventListener("blur", () => (app.keys.space = false));
}
