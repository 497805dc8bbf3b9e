// Elements built in script. Whatever comes from the server is put in as text, never as HTML.

export const get = (id) => document.getElementById(id);

// make("button", { class: "primary", on: { click } }, "Go"): properties are attributes but for `on`, `style`, `data`.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function button(text, title, click, properties = {}) {
  return make("button", { type: "button", title, on: { click }, ...properties }, text);
}

export function press(element, on) {
  element.setAttribute("aria-pressed", String(on));
}

// Calls `work` once in the next frame, however often it is asked to.
export function onceAFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

// Calls `work` with the newest arguments when it was not asked for `pause` milliseconds.
export function debounced(work, pause) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), pause);
  };
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
