// Opening: paths, files that are dropped or picked, labels from files, and images that moved.

import { post } from "./connection.js";
import { dialog } from "./dialogs.js";
import { button, make, plural } from "./dom.js";
import { newId } from "./shapes.js";

const LABEL_FILES = /\.(json|geojson|csv|xml|txt)$/i;
const MOST_FOLDERS = 3; // that are named

async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((done, failed) => entry.file(done, failed))];
  const reader = entry.createReader();
  const files = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return files;
    for (const child of some) files.push(...(await filesOf(child)).map((file) => named(file, child.fullPath)));
  }
}

// Files of a folder keep their path in it, since names of scenes and sources come from there.
const named = (file, path) => Object.assign(file, { inFolder: file.inFolder ?? path.replace(/^\//, "") });

// What to open of files that were copied: a folder with all of them, or each by itself.
function rootsOf(copies) {
  const [first] = copies;
  const folder = first.name.split("/")[0];
  const together = first.name.includes("/") && copies.every(({ name }) => name.startsWith(`${folder}/`));
  return together
    ? [first.path.slice(0, first.path.length - first.name.length) + folder]
    : copies.map(({ path }) => path);
}

const pathOf = (file) => file.inFolder || file.webkitRelativePath || file.name;

export class Files {
  constructor(app, header) {
    Object.assign(this, { app, header });
    this.listenForDrops();
  }

  async take(answer) {
    if (answer) this.app.scenes.adopt(answer);
  }

  async open(paths) {
    await this.take(await this.app.attempt(() => post("open", { paths })));
  }

  // Scenes of the same sources; labels, and what can be undone, stay.
  async add(paths) {
    const before = this.app.state.scenes.length;
    const answer = await this.app.attempt(() => post("add", { paths }));
    if (!answer) return;
    await this.take(answer);
    document.querySelector("dialog[open]")?.close();
    const count = answer.scenes.length - before;
    this.app.tell("notice", { text: `${plural(count, "scene")} added.` });
  }

  async tryIt() {
    this.header?.banner("working", "Drawing a street …");
    await this.take(await this.app.attempt(() => post("try")));
    this.header?.banner("working", null);
  }

  // Copies go to the project's folder; images are then opened from there, and labels drawn.
  async upload(files) {
    const labels = files.filter((file) => LABEL_FILES.test(file.name));
    const images = files.filter((file) => !LABEL_FILES.test(file.name));
    const copies = await this.send(images);
    const take = this.app.state.scenes.length ? "add" : "open";
    if (copies.length && copies.length === images.length) await this[take](rootsOf(copies));
    for (const copy of await this.send(labels)) await this.importLabels(copy);
  }

  async send(files) {
    const { app, header } = this;
    const copies = [];
    const batch = newId(); // files that are added together lie together, over no earlier ones
    for (const [k, file] of files.entries()) {
      header?.banner("working", `Adding ${pathOf(file)} (${k + 1} of ${files.length}) …`);
      const place = `upload?batch=${batch}&name=${encodeURIComponent(pathOf(file))}`;
      const copy = await app.attempt(() => post(place, file));
      if (!copy) break;
      copies.push(copy);
    }
    header?.banner("working", null);
    return copies;
  }

  async importLabels({ path, name }) {
    const answer = await this.app.attempt(() => post("import", { path }));
    if (!answer) return;
    this.app.tell("notice", { text: [`${name}: ${answer.text}`, ...(answer.notes ?? [])].join(" ") });
  }

  listenForDrops() {
    const stop = (event) => {
      event.preventDefault();
      document.body.classList.toggle("dropping", event.type === "dragover");
    };
    for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, stop);
    document.addEventListener("drop", async (event) => {
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      if (this.app.readOnly || !entries.length) return;
      const files = (await Promise.all(entries.map(filesOf))).flat();
      if (files.length) await this.upload(files);
    });
  }

  // Which paths the server opens, in words.
  readable() {
    const folders = this.app.state.folders ?? [];
    const shown = folders.slice(0, MOST_FOLDERS).join(", ") + (folders.length > MOST_FOLDERS ? ", …" : ".");
    return `Opens what lies in ${shown} For other images, start "bimichi studio" with their path, or with --allow FOLDER.`;
  }

  // Controls to open by path or by picking; used by the start page and the dialog.
  controls() {
    const path = make("input", {
      type: "text",
      id: "path",
      placeholder: "/data/night or bimichi.toml",
      spellcheck: "false",
      autocomplete: "off",
    });
    const adding = this.app.state.scenes.length > 0;
    const open = () => path.value.trim() && this.open([path.value.trim()]);
    const go = () => (adding ? path.value.trim() && this.add([path.value.trim()]) : open());
    const instead = button("Open instead", "Close this project, which is saved, and open this path", open);
    path.addEventListener("keydown", (event) => event.key === "Enter" && go());
    const picker = (label, properties) => {
      const input = make("input", {
        type: "file",
        multiple: true,
        class: "unseen",
        tabindex: -1,
        "aria-hidden": "true",
        ...properties,
        on: { change: () => this.upload([...input.files]) },
      });
      return [input, button(label, "Pick on this computer; also by dragging them into the page", () => input.click())];
    };
    return make(
      "div",
      { class: "opening-controls" },
      make("label", { for: "path" }, "Folder, project or image, by its path"),
      make(
        "div",
        { class: "row" },
        path,
        adding
          ? button("Add", "Add its scenes to this project", go, { class: "primary", id: "add-path" })
          : button("Open", "Open this path", go, { class: "primary" }),
        adding ? instead : null,
      ),
      make("p", { class: "note" }, this.readable()),
      make(
        "div",
        { class: "row" },
        ...picker("Pick files …", {}),
        ...picker("Pick a folder …", { webkitdirectory: true }),
      ),
      make(
        "p",
        { class: "note" },
        "Or drag files, or a folder, into this page. One file per source; images of one scene have one name. " +
          "Labels (COCO, GeoJSON, CSV, VOC, YOLO) can be added the same way.",
      ),
    );
  }

  showAdd() {
    const sources = this.app.state.sources.map(({ name }) => name).join(", ");
    dialog(
      "Add scenes, or labels",
      make("p", {}, `Scenes need the same sources as those that are open (${sources}). What is drawn stays.`),
      this.controls(),
    );
  }

  // Why a scene cannot be used; images that moved are recognised by their content.
  showLocate(scene) {
    const { name, problems, lost } = this.app.state.scenes[scene];
    if (!lost) return dialog(`${name} cannot be used`, ...(problems ?? []).map((text) => make("p", {}, text)));
    const path = make("input", {
      type: "text",
      id: "moved",
      "aria-label": "Folder where they are now",
      spellcheck: "false",
    });
    const go = () => path.value.trim() && this.open([path.value.trim()]);
    dialog(
      `Where are the images of ${name}?`,
      ...(problems ?? []).map((text) => make("p", {}, text)),
      make("p", { class: "note" }, "They are recognised by their content, so that labels never land on another image."),
      make(
        "div",
        { class: "row" },
        path,
        button("Look there", "Search this folder for them", go, { class: "primary" }),
      ),
    );
  }
}

export function showStart(root, state, files) {
  const recent = (state.recent ?? []).map((item) => {
    const path = item.path ?? item;
    return make(
      "li",
      {},
      make(
        "button",
        { type: "button", class: "recent", on: { click: () => files.open([path]) } },
        make("b", {}, item.folder ?? path),
        make("small", {}, path),
      ),
    );
  });
  root.replaceChildren(
    make(
      "div",
      { class: "card welcome" },
      make("h2", {}, "Label, learn, look"),
      make(
        "p",
        { class: "lead" },
        "Open images of several sensors, draw boxes around what you look for, and watch the fusion learn it.",
      ),
      button("Try it with a drawn street", "Opens a street at night, seen in colour and in heat", () => files.tryIt(), {
        id: "try",
        class: "primary large",
      }),
      make("h3", {}, "Open your images"),
      files.controls(),
      make("h3", {}, "Recent projects"),
      recent.length
        ? make("ul", { class: "recents" }, ...recent)
        : make("p", { class: "note" }, "None yet. Projects that you open are listed here."),
    ),
  );
  root.hidden = false;
}
