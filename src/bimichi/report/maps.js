// The maps: one view of the image shared by all of them, one cursor, and what is drawn over them.

const MOST_ZOOM = 40;
const DRAG = 4; // pixels of the screen that a click may slip

export class Maps {
  constructor(width, height, onPoint, onHold) {
    Object.assign(this, { width, height, onPoint, onHold });
    this.zoom = 1;
    this.left = 0;
    this.top = 0;
    this.pixel = { x: 0, y: 0 };
    this.panels = [];
    this.overlays = new Map();
    this.pointers = new Map();
    this.resized = new ResizeObserver(() => this.draw());
  }

  add(view, bitmap) {
    const canvas = view.querySelector("canvas");
    this.panels.push({ view, canvas, bitmap, cursor: view.querySelector(".cursor") });
    this.resized.observe(view);
    this.listen(view);
  }

  listen(view) {
    view.addEventListener("pointerdown", (event) => this.press(event, view));
    view.addEventListener("pointermove", (event) => this.move(event, view));
    view.addEventListener("pointerup", (event) => this.release(event, view));
    view.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    view.addEventListener("dblclick", (event) => this.zoomBy(2, this.place(event, view)));
    view.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoomBy(Math.exp(-event.deltaY / 200), this.place(event, view));
      },
      { passive: false },
    );
  }

  // How much of the image a view shows, in its pixels.
  get wide() {
    return this.width / this.zoom;
  }

  get high() {
    return this.height / this.zoom;
  }

  get mostZoom() {
    return MOST_ZOOM;
  }

  // Where in the image, in pixels, an event happened.
  place(event, view) {
    const box = view.getBoundingClientRect();
    return {
      x: this.left + ((event.clientX - box.left) / box.width) * this.wide,
      y: this.top + ((event.clientY - box.top) / box.height) * this.high,
    };
  }

  point(event, view) {
    const { x, y } = this.place(event, view);
    this.onPoint(Math.floor(x), Math.floor(y));
  }

  press(event, view) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    view.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, slipped: this.pointers.size > 0 });
  }

  move(event, view) {
    const held = this.pointers.get(event.pointerId);
    if (!held) {
      if (event.pointerType === "mouse") this.point(event, view);
      return;
    }
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.slipped && Math.hypot(dx, dy) < DRAG) return;
    const box = view.getBoundingClientRect();
    if (this.pointers.size === 2) this.pinch(event, view);
    else this.shift((-dx / box.width) * this.wide, (-dy / box.height) * this.high);
    Object.assign(held, { x: event.clientX, y: event.clientY, slipped: true });
  }

  pinch(event, view) {
    const held = this.pointers.get(event.pointerId);
    const [, other] = [...this.pointers].find(([id]) => id !== event.pointerId);
    const before = Math.hypot(held.x - other.x, held.y - other.y);
    const after = Math.hypot(event.clientX - other.x, event.clientY - other.y);
    const middle = { clientX: (event.clientX + other.x) / 2, clientY: (event.clientY + other.y) / 2 };
    if (before > 0) this.zoomBy(after / before, this.place(middle, view));
    other.slipped = true;
  }

  release(event, view) {
    const held = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (!held || held.slipped) return;
    if (event.pointerType === "mouse") this.onHold();
    this.point(event, view);
  }

  zoomBy(factor, at = { x: this.left + this.wide / 2, y: this.top + this.high / 2 }) {
    const before = this.zoom;
    this.zoom = Math.min(this.mostZoom, Math.max(1, before * factor));
    this.left = at.x - (at.x - this.left) * (before / this.zoom);
    this.top = at.y - (at.y - this.top) * (before / this.zoom);
    this.shift(0, 0);
  }

  shift(dx, dy) {
    this.left = this.within(this.left + dx, this.width, this.wide);
    this.top = this.within(this.top + dy, this.height, this.high);
    this.draw();
  }

  within(start, size, seen) {
    return Math.min(size - seen, Math.max(0, start));
  }

  // Put the cursor on a pixel, and move the view if it would be outside.
  show(x, y) {
    this.pixel = { x, y };
    const { wide, high } = this;
    const dx = Math.min(0, x - this.left) + Math.max(0, x + 1 - this.left - wide);
    const dy = Math.min(0, y - this.top) + Math.max(0, y + 1 - this.top - high);
    if (dx || dy) this.shift(dx, dy);
    else this.placeCursors();
  }

  placeCursors() {
    const [wide, high] = [100 / this.wide, 100 / this.high];
    for (const { cursor } of this.panels) {
      cursor.style.left = `${(this.pixel.x + 0.5 - this.left) * wide}%`;
      cursor.style.top = `${(this.pixel.y + 0.5 - this.top) * high}%`;
      cursor.style.width = `max(${wide}%, 0.6rem)`;
      cursor.style.height = `max(${high}%, 0.6rem)`;
    }
  }

  draw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.panels.forEach((panel) => this.drawPanel(panel));
      this.placeCursors();
    });
  }

  drawPanel({ view, canvas, bitmap }) {
    const [across, down] = [view.clientWidth, view.clientHeight].map((n) => Math.round(n * devicePixelRatio));
    if (!across || !down) return;
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    view.classList.toggle("zoomed", this.zoom > 1);
    const { wide, high } = this;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = across < wide; // shrinking blends pixels, enlarging shows them
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, this.left, this.top, wide, high, 0, 0, across, down);
    context.setTransform(across / wide, 0, 0, down / high, (-this.left * across) / wide, (-this.top * down) / high);
    context.lineCap = "round";
    const hair = (wide / across) * devicePixelRatio * Math.min(1, Math.max(0.5, view.clientWidth / 400));
    for (const overlay of this.overlays.values()) {
      if (!overlay.on) continue;
      for (const { path, colour, width } of overlay.strokes) {
        context.strokeStyle = colour;
        context.lineWidth = width * hair;
        context.stroke(path);
      }
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
  }
}

// The number of a value's colour; as in bimichi.report.colours.
export const level = (value) => Math.min(255, Math.max(0, Math.floor(((value + 1) / 2) * 256)));

// Colours as numbers, for `paint`: canvases keep red in the lowest byte.
export function colourWords(colours) {
  return colours.map((colour) => {
    const [red, green, blue] = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

// A line with a light rim, to be seen on any colour.
export const twice = (path, colour) => [
  { path, colour: "#ffffff", width: 3.5 },
  { path, colour, width: 1.5 },
];

// An image of one colour per pixel, looked up by a function of the pixel's number.
export function paint(width, height, colourAt) {
  const canvas = new OffscreenCanvas(width, height);
  const pixels = new Uint32Array(width * height);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colourAt(i);
  const image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// The borders between neighbouring pixels for which `parted` holds; neighbouring ones are one line.
export function borders(width, height, parted) {
  const path = new Path2D();
  const line = (x0, y0, x1, y1) => {
    path.moveTo(x0, y0);
    path.lineTo(x1, y1);
  };
  const since = new Int32Array(width).fill(-1); // the row in which a line between two columns began
  for (let y = 0, i = 0; y <= height; y++) {
    let from = -1; // the column in which a line above this row began
    for (let x = 0; x < width; x++, i++) {
      const left = x > 0 && y < height && parted(i, i - 1);
      if (left && since[x] < 0) since[x] = y;
      else if (!left && since[x] >= 0) {
        line(x, since[x], x, y);
        since[x] = -1;
      }
      const above = y > 0 && y < height && parted(i, i - width);
      if (above && from < 0) from = x;
      else if (!above && from >= 0) {
        line(from, y, x, y);
        from = -1;
      }
    }
    if (from >= 0) line(from, y, width, y);
  }
  return path;
}
