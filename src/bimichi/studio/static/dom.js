// Elements made in script. Whatever comes from the server is put in as text, never as HTML.

export const get = (id) => document.getElementById(id);

// make("button", { class: "primary", on: { click } }, "Go"): properties are attributes but for `on`, `style`, `data`.
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (name === "style") for (const [key, text] of Object.entries(value)) made.style.setProperty(key, text);
    else if (name === "data") Object.assign(made.dataset, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(text, title, click, properties = {}) {
  return make("button", { type: "button", title, on: { click }, ...properties }, text);
}

export function press(element, on) {
  element.setAttribute("aria-pressed", String(on));
}

// Calls `work` once in the next frame, however often it is asked to.
export function onceAFrame(work) {
  let waiting = null;
  return () => {
    waiting ??= requestAnimationFrame(() => {
      waiting = null;
      work();
    });
  };
}

// Calls `work` with the newest arguments when it was not asked for `pause` milliseconds.
export function debounced(work, pause) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), pause);
  };
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
