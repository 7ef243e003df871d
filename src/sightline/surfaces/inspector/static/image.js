"use strict";
// One image: what became of it and why, what was sent beside the original, what was said about it, and what it cost.

const FATES = { shown: "shown", refitted: "refitted", told: "described", retired: "retired", refused: "refused", repeated: "repeated" };

function altText(image) {
  return `${image.filename || "image"}, ${formatSize(image.size)}, ${FATES[image.fate]}${image.alt ? `: ${image.alt}` : ""}`;
}

/** Return a card with a thumbnail that opens the image. */
function drawThumbnail(image, request) {
  const url = image.kept ? pictureUrl(image.sha256, "thumb") : "";
  const missing = () => h("span", { class: "missing" }, h("span", { "aria-hidden": "true" }, "▦"), "no copy kept");
  const picture = url
    ? h("img", { src: url, alt: altText(image), loading: "lazy", decoding: "async", width: 128, height: 84, onerror: (event) => event.target.replaceWith(missing()) })
    : missing();
  return h("button", { type: "button", class: `thumb ${image.fate}`, onclick: () => showImage(image, request) }, picture,
    h("span", { class: "about" },
      h("span", { class: "badge" }, FATES[image.fate]),
      h("span", { class: "name" }, image.filename || formatSize(image.size)),
      h("span", { class: "why" }, image.why || "as the client sent it")));
}

async function showImage(image, request) {
  const dialog = document.getElementById("dialog");
  const details = h("div", { class: "said" }, h("p", { class: "muted" }, "Loading …"));
  const stage = h("div", { class: "stage" });
  dialog.className = "large";
  dialog.replaceChildren(
    h("header", {}, h("h2", { id: "dialog-title" }, image.filename || "Image"),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×")),
    h("div", { class: "split" }, stage,
      h("div", { class: "facts" }, drawVerdict(image), drawFacts(image, request), details)));
  drawStage(stage, image, { descriptions: [], questions: [], views: [] });
  dialog.showModal();
  try {
    const known = image.sha256 ? await get(`image/${image.sha256}`) : { descriptions: [], questions: [], views: [] };
    details.replaceChildren(...drawSaid(known, stage));
    drawStage(stage, image, known);
  } catch (error) {
    details.replaceChildren(h("p", { class: "muted" }, error.message));
  }
}

function drawVerdict(image) {
  return h("div", { class: `verdict ${image.fate}` },
    h("strong", {}, `${FATES[image.fate][0].toUpperCase()}${FATES[image.fate].slice(1)}`), " ",
    h("span", {}, image.means),
    image.why ? h("p", { class: "why" }, image.fate === "told" ? `Described ${image.why}.` : `Why: ${image.why}`) : null);
}

function drawFacts(image, request) {
  const share = (tokens) => request.cost_without_usd && request.tokens_before
    ? ` (${formatDollars((request.cost_without_usd / request.tokens_before) * tokens)})` : "";
  const facts = [
    ["Original", `${formatSize(image.size)}, ${formatBytes(image.bytes)}`],
    ["Sent", image.sent_size ? `${formatSize(image.sent_size)}, ${formatBytes(image.sent_bytes)}` : image.fate === "shown" ? "the same bytes" : "text"],
    ["Tokens", image.tokens_after === null ? "unknown" : `${formatCount(image.tokens_after)}${share(image.tokens_after)}`],
    ["Without Sightline", image.tokens_before === null ? "unknown" : `${formatCount(image.tokens_before)}${share(image.tokens_before)}`],
    ["Place", image.place],
    ["Image", image.sha256 ? `sha256:${image.sha256.slice(0, 16)}…` : "unknown sha256"],
  ];
  return h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function drawSaid(known, stage) {
  const total = known.questions.reduce((sum, each) => sum + (each.cost_usd || 0), 0);
  const unpriced = known.questions.some((each) => each.seer && !each.cached && each.cost_usd === null);
  const asked = known.questions.filter((each) => each.seer || each.error);
  const mark = (each, on) => { for (const drawn of stage.querySelectorAll("[data-crop]")) drawn.classList.toggle("on", on && drawn.dataset.crop === String(each.crop)); };
  return [
    asked.length
      ? h("p", { class: "cost" }, "Questions about this image cost ", h("strong", {}, unpriced && !total ? "an unknown price" : formatDollars(total)), unpriced && total ? " and calls of unknown price" : "", ".")
      : h("p", { class: "cost" }, "No seer was asked about this image."),
    known.descriptions.length ? h("h3", {}, "What was said") : null,
    ...known.descriptions.map((each) => h("blockquote", {}, h("cite", {}, each.seer), h("pre", { tabIndex: 0 }, each.text))),
    asked.length ? h("h3", {}, "Asked") : null,
    asked.length ? h("ul", { class: "asked" }, asked.map((each) => h("li", { onmouseenter: () => mark(each, true), onmouseleave: () => mark(each, false) },
      h("span", { class: "question" }, each.question || (each.kind === "joint_description" ? "A comparison" : "A description")),
      h("span", { class: "muted" }, `${each.seer || "no seer"}, ${each.cached ? "from the cache" : formatDollars(each.cost_usd)}`
        + `${each.latency_ms === null ? "" : `, ${(each.latency_ms / 1000).toFixed(1)} s`}${each.crop ? `, about ${each.crop[2]} × ${each.crop[3]} pixels at ${each.crop[0]}, ${each.crop[1]}` : ""}${each.error ? `, failed: ${each.error}` : ""}`),
      each.answer ? h("pre", { class: "answer", tabIndex: 0 }, each.answer) : null))) : null,
  ].filter(Boolean);
}

/** Find boxes that a description mentions, as `label [x1, y1, x2, y2]` in pixels of the image. */
function findBoxes(known, size) {
  if (!size) return [];
  const boxes = [];
  for (const each of known.descriptions) {
    for (const found of each.text.matchAll(/([^\n[\]]{0,60}?)\s*(?:at\s*)?\[(\d+), ?(\d+), ?(\d+), ?(\d+)\]/g)) {
      const [x1, y1, x2, y2] = found.slice(2).map(Number);
      if (x1 < x2 && y1 < y2 && x2 <= size[0] && y2 <= size[1] && boxes.length < 200) boxes.push({ label: found[1].trim(), box: [x1, y1, x2, y2] });
    }
  }
  return boxes;
}

/** Explain why there is no picture of an image. */
function explainMissing(image) {
  if (exported && image.kept) return "The pictures were left out of this file.";
  if (image.fate === "shown") return "The model got this image as the client sent it. The record keeps no copy of images that pass unchanged.";
  if (image.fate === "refused" && !image.sha256) return "The record keeps no copy of an image that could not be read.";
  return "The record has no copy of this image: it was not kept, or has expired.";
}

/** Draw the original with boxes and crops on it, what was sent beside it, and what tools have shown of it. */
function drawStage(stage, image, known) {
  const url = image.kept ? pictureUrl(image.sha256, "file") : "";
  const none = () => h("p", { class: "missing large" }, explainMissing(image));
  if (!url) return stage.replaceChildren(none());
  const shown = h("div", { class: "stage" });
  const boxes = findBoxes(known, image.size);
  const crops = image.size ? [...new Map(known.questions.filter((each) => each.crop).map((each) => [String(each.crop), each])).values()] : [];
  const base = () => h("img", { src: url, alt: `Original: ${altText(image)}`, onerror: () => stage.replaceChildren(none()) });
  const ways = [["Original", () => drawOriginal(shown, base, image, boxes, crops)]];
  if (image.sent_size && !exported) ways.unshift(["Original and sent", () => drawComparison(shown, base, image, boxes)]);
  if (!exported) known.views.forEach((view, index) => ways.push([view.crop ? `Part ${index + 1}` : `View ${index + 1}`, () => drawView(shown, base, image, view)]));
  const tabs = ways.length > 1 ? h("div", { class: "tabs", role: "group", "aria-label": "What to show" }, ways.map(([name, draw], index) => h("button", { type: "button", "aria-pressed": String(index === 0), onclick: (event) => {
    for (const each of tabs.children) each.setAttribute("aria-pressed", String(each === event.target));
    draw();
  } }, name))) : "";
  stage.replaceChildren(...(tabs ? [tabs] : []), shown);
  return ways[0][1]();
}

function drawOriginal(shown, base, image, boxes, crops) {
  const layers = h("div", { class: "layers" }, base());
  if (crops.length) layers.append(drawRectangles("crops", "Parts that questions were about", crops.map((each) => [each.crop, each.question]), image.size));
  if (boxes.length) layers.append(drawBoxes(boxes, image.size));
  const words = [boxes.length ? `${boxes.length === 1 ? "1 box" : `${boxes.length} boxes`} from the description` : "", crops.length ? `${formatPlural(crops.length, "part")} that ${crops.length === 1 ? "a question was" : "questions were"} about` : ""].filter(Boolean);
  shown.replaceChildren(layers, words.length ? h("p", { class: "muted" }, words.join(", ")) : "");
}

/** Draw the original and what was sent in one frame, divided where the slider is. Arrow keys move it. */
async function drawComparison(shown, base, image, boxes) {
  const layers = h("div", { class: "layers divided" }, base());
  const slider = h("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Compare the original with what was sent", oninput: () => move() });
  const move = () => { layers.style.setProperty("--cut", `${slider.value}%`); slider.setAttribute("aria-valuetext", `${slider.value} % original`); };
  const note = h("p", { class: "muted" }, "Loading what was sent …");
  move();
  if (boxes.length) layers.append(drawBoxes(boxes, image.size));
  shown.replaceChildren(layers, h("label", { class: "slider" }, h("span", {}, "original"), slider, h("span", {}, "sent")), note);
  const query = `width=${image.sent_size[0]}&height=${image.sent_size[1]}&bytes=${image.sent_bytes}&sha256=${image.sent_sha256}`;
  try {
    const response = await fetch(`api/image/${image.sha256}/sent?${query}`);
    if (!response.ok) throw new Error((await response.json()).error.message);
    const sent = h("img", { class: "sent", src: URL.createObjectURL(await response.blob()), alt: `As sent: ${formatSize(image.sent_size)}`, onload: (event) => URL.revokeObjectURL(event.target.src) });
    layers.insertBefore(sent, layers.children[1] ?? null);
    layers.append(h("span", { class: "divider", "aria-hidden": "true" }));
    const size = `${formatSize(image.sent_size)}, ${formatBytes(image.sent_bytes)}`;
    note.textContent = response.headers.get("x-sightline-exact") === "yes" ? `These are the very bytes that were sent: ${size}.` : `Made again the same way; the bytes that were sent (${size}) are not kept.`;
  } catch (error) {
    note.textContent = error.message;
  }
}

/** Draw what a tool has shown of the image, in the bytes that it sent, and where that is in the original. */
async function drawView(shown, base, image, view) {
  const layers = h("div", { class: "layers" }, base());
  const what = view.crop ? "A part" : "The image";
  shown.replaceChildren(
    h("div", { class: "pair" }, layers, h("div", { class: "layers" }, h("img", { src: pictureUrl(view.pixels, "file"), alt: `What the tool showed, ${formatSize(view.size)}` }))),
    h("p", { class: "muted" }, `${what} as a tool showed it, in the very bytes: ${formatSize(view.size)}${view.note ? `, ${view.note}` : ""}.`));
  const pieces = view.crop ? [view.crop] : (await get(`image/${image.sha256}/pieces?view=${view.pixels}`)).pieces;
  if (image.size && (view.crop || pieces.length > 1)) layers.append(drawRectangles("crops on", "Parts that it shows", pieces.map((piece, index) => [piece, `Part ${index + 1}`]), image.size));
}

/** Draw rectangles, each as [x, y, width, height] with its words, over an image of this size. */
function drawRectangles(name, title, rectangles, size) {
  const line = Math.max(1, Math.max(...size) / 260);
  return s("svg", { class: `boxes ${name}`, viewBox: `0 0 ${size[0]} ${size[1]}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
    rectangles.map(([[x, y, width, height], words]) => s("rect", { x, y, width, height, "stroke-width": line, "data-crop": [x, y, width, height] }, s("title", {}, words))));
}

function drawBoxes(boxes, size) {
  return drawRectangles("found", "Boxes", boxes.map(({ label, box: [x1, y1, x2, y2] }) => [[x1, y1, x2 - x1, y2 - y1], label || "box"]), size);
}
