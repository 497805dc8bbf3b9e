// The page of a studio in a frame. The kernel first gets the address of this notebook, and lets it alone show the page.
function render({ model, el }) {
  const note = document.createElement("p");
  const frame = document.createElement("iframe");
  frame.title = "bimichi studio";
  frame.allow = "fullscreen; clipboard-write";
  frame.style.cssText = "width: 100%; border: 1px solid #8888; border-radius: 4px;";

  function update() {
    const url = model.get("url");
    note.textContent = model.get("note");
    note.hidden = !note.textContent;
    frame.hidden = !url;
    frame.style.height = `${model.get("height")}px`;
    if (url && frame.src !== url) frame.src = url;
    if (!url) frame.removeAttribute("src");
  }

  for (const name of ["url", "note", "height"]) model.on(`change:${name}`, update);
  el.append(note, frame);
  update();
  model.set("origin", window.location.origin);
  model.save_changes();
  return () => {
    for (const name of ["url", "note", "height"]) model.off(`change:${name}`, update);
  };
}

export default { render };
