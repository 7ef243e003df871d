"use strict";
// Try it: drop or paste one or two images, mark a part with the mouse, ask. The same as `sightline describe`.

function showTry(main) {
  const images = []; // { name, data, url }
  let crop = null; // [x, y, width, height] in pixels of the first image
  const stage = h("div", { class: "stage" });
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const question = h("textarea", { id: "question", rows: 3, placeholder: "What does the error say? Leave it empty for a full description." });
  const picker = h("input", { type: "file", accept: "image/*", multiple: true, id: "picker", class: "hidden-input", onchange: () => add([...picker.files]) });
  const drop = h("label", { class: "drop", for: "picker" }, h("strong", {}, "Drop, paste or choose an image"), h("span", {}, "Two images are compared."));
  const button = h("button", { type: "button", class: "primary", disabled: true, onclick: () => ask() }, "Describe");
  const clear = h("button", { type: "button", onclick: () => { images.length = 0; crop = null; answer.replaceChildren(); draw([]); } }, "Clear");
  const note = h("p", { class: "muted" });

  async function add(files) {
    for (const file of files.filter((each) => each.type.startsWith("image/")).slice(0, 2)) {
      if (images.length === 2) images.shift();
      const bytes = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
      images.push({ name: file.name, data: btoa(text), url: URL.createObjectURL(file) });
    }
    crop = null;
    draw([]);
  }

  function draw(boxes) {
    button.disabled = !images.length;
    button.textContent = images.length === 2 ? "Compare" : "Describe";
    note.textContent = images.length === 1 ? "Drag on the image to ask about a part of it." : "";
    stage.replaceChildren(...images.map((image, index) => drawOne(image, index, boxes.filter((each) => each.image === index))));
  }

  function drawOne(image, index, boxes) {
    const picture = h("img", { src: image.url, alt: image.name || `Image ${index + 1}`, draggable: false });
    const layers = h("div", { class: "layers" }, picture);
    picture.addEventListener("load", () => {
      const size = [picture.naturalWidth, picture.naturalHeight];
      if (boxes.length) layers.append(drawBoxes(boxes, size));
      if (images.length === 1) makeCroppable(layers, size);
    });
    return h("figure", {}, layers, h("figcaption", { class: "muted" }, image.name));
  }

  function makeCroppable(layers, size) {
    const mark = h("div", { class: "crop", hidden: true });
    layers.append(mark);
    let start = null;
    const locate = (event) => {
      const area = layers.getBoundingClientRect();
      return [Math.min(Math.max((event.clientX - area.left) / area.width, 0), 1), Math.min(Math.max((event.clientY - area.top) / area.height, 0), 1)];
    };
    layers.addEventListener("pointerdown", (event) => { start = locate(event); layers.setPointerCapture(event.pointerId); });
    layers.addEventListener("pointermove", (event) => {
      if (!start) return;
      const end = locate(event);
      const [x, y] = [Math.min(start[0], end[0]), Math.min(start[1], end[1])];
      const [w, t] = [Math.abs(start[0] - end[0]), Math.abs(start[1] - end[1])];
      mark.hidden = w < 0.01 || t < 0.01;
      Object.assign(mark.style, { left: `${x * 100}%`, top: `${y * 100}%`, width: `${w * 100}%`, height: `${t * 100}%` });
      crop = mark.hidden ? null : [Math.round(x * size[0]), Math.round(y * size[1]), Math.max(1, Math.round(w * size[0])), Math.max(1, Math.round(t * size[1]))];
      note.textContent = crop ? `Asking about ${crop[2]} × ${crop[3]} pixels at ${crop[0]}, ${crop[1]}.` : "Drag on the image to ask about a part of it.";
    });
    layers.addEventListener("pointerup", () => { start = null; });
  }

  async function ask() {
    button.disabled = true;
    answer.replaceChildren(h("p", { class: "muted" }, "Looking …"));
    try {
      const sent = { images: images.map(({ name, data }) => ({ name, data })), question: question.value, crop };
      const found = await post("try", sent);
      if (!found.ok) answer.replaceChildren(h("p", { class: "error" }, found.message));
      else {
        answer.replaceChildren(
          h("p", { class: "muted" }, `By ${found.by}, ${found.cached ? "from the cache" : formatDollars(found.cost_usd)}${found.boxes.length ? `, ${found.boxes.length} places marked` : ""}`),
          h("pre", { class: "text", tabIndex: 0 }, found.text));
        if (!crop) draw(found.boxes);
      }
    } catch (error) {
      answer.replaceChildren(h("p", { class: "error" }, error.message));
    }
    button.disabled = !images.length;
  }

  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") add([...event.dataTransfer.files]);
    });
  }
  const paste = (event) => {
    const files = [...(event.clipboardData?.files || [])];
    if (files.length) { event.preventDefault(); add(files); }
  };
  document.addEventListener("paste", paste);
  main.replaceChildren(
    h("h1", {}, "Try it"),
    h("p", { class: "lead" }, "See what a text-only model would get. Without any key, the local reader answers and nothing leaves this machine."),
    h("div", { class: "split try" },
      h("div", {}, picker, drop, note, stage),
      h("div", {}, h("label", { for: "question" }, "Question"), question, h("div", { class: "actions" }, clear, button), answer)));
  return { leave: () => document.removeEventListener("paste", paste) };
}
