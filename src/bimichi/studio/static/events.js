// How parts of the page tell each other what happened.

export class Events extends EventTarget {
  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  // Listen to one or several types of events, with spaces between them.
  on(types, listener) {
    for (const type of types.split(" ")) this.addEventListener(type, ({ detail }) => listener(detail));
  }
}

// Note when something happened last, for measurements.
export function mark(name) {
  performance.clearMarks(name);
  performance.mark(name);
}
