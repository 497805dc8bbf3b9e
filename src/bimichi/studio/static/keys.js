// Keys for everything. What is listed here is what the help shows.

import { LABELS } from "./shapes.js";
import { TOOLS } from "./tools.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export const HELP = [
  [
    "Draw",
    [
      ...TOOLS.map(({ title, key }) => [key.toUpperCase(), title]),
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

export function listenToKeys(app, frames, actions) {
  const { tools, views } = app;
  const move = ([dx, dy], event) => {
    const far = event.shiftKey ? 10 : 1;
    if (event.altKey) tools.nudge(dx, dy, event.shiftKey);
    else app.cursor.moveBy(far * dx, far * dy);
  };
  const zoom = (factor) => {
    const [x, y] = app.cursor.spot;
    views.zoomBy(factor, { x, y });
  };
  const plain = {
    "+": () => zoom(1.5),
    "=": () => zoom(1.5),
    "-": () => zoom(1 / 1.5),
    0: () => views.zoomBy(0),
    "[": () => tools.setWidth(tools.width - 2),
    "]": () => tools.setWidth(tools.width + 2),
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
    t: () => app.learned.train(),
    n: () => app.suggestions.goNext(),
    x: () => app.detector.refuse(),
    "?": () => actions.help(),
    Enter: () => tools.step(),
    Delete: () => app.drawing.removeChosen(),
    Backspace: () => app.drawing.removeChosen(),
    Escape: () => actions.escape(),
  };
  for (const [k, label] of Object.keys(LABELS).entries())
    plain[k + 1] = () => !app.readOnly && tools.chooseLabel(label);
  for (const kind of TOOLS) plain[kind.key] = () => tools.usable(kind) && tools.choose(kind.id);
  const withControl = {
    z: (event) => (event.shiftKey ? app.drawing.redo() : app.drawing.undo()),
    y: () => app.drawing.redo(),
    s: () => actions.exports(),
  };
  document.addEventListener("keydown", (event) => {
    if (!app.scenes.current || taken(event)) return;
    if (event.key === " ") views.panning = true;
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
    if (event.key === " ") views.panning = false;
  });
  addEventListener("blur", () => (views.panning = false));
}
