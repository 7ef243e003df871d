"use strict";
// One image: what became of it and why, what was sent beside the original, what was said about it, and what it cost.

const FATES = { shown: "shown", refitted: "refitted", told: "described", retired: "retired", refused: "refused", repeated: "repeated" };

function altText(image) {
  return `${image.filename || "image"}, ${formatSize(image.size)}, ${FATES[image.fate]}`;
}

/** Return a card with a thumbnail that opens the image. */
function drawThumbnail(image, request) {
  const url = image.sha256 ? pictureUrl(image.sha256, "thumb") : "";
  const missing = () => h("span", { class: "missing" }, h("span", { "aria-hidden": "true" }, "▦"), "not in the record");
  const picture = url
    ? h("img", { src: url, alt: altText(image), loading: "lazy", decoding: "async", width: 160, height: 110, onerror: (event) => event.target.replaceWith(missing()) })
    : missing();
  return h("button", { type: "button", class: `thumb ${image.fate}`, onclick: () => showImage(image, request) },
    picture,
    h("span", { class: "badge" }, FATES[image.fate]),
    h("span", { class: "name" }, image.filename || formatSize(image.size)),
    h("span", { class: "why" }, image.why || "as sent"));
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
  drawStage(stage, image, []);
  dialog.showModal();
  try {
    const known = image.sha256 ? await get(`image/${image.sha256}`) : { descriptions: [], questions: [] };
    details.replaceChildren(...drawSaid(known));
    drawStage(stage, image, findBoxes(known, image.size));
  } catch (error) {
    details.replaceChildren(h("p", { class: "muted" }, error.message));
  }
}

function drawVerdict(image) {
  return h("div", { class: `verdict ${image.fate}` },
    h("strong", {}, `${FATES[image.fate][0].toUpperCase()}${FATES[image.fate].slice(1)}`), " ",
    h("span", {}, image.means),
    image.why ? h("p", { class: "why" }, "Why: ", image.why) : null);
}

function drawFacts(image, request) {
  const share = (tokens) => request.cost_without_usd && request.tokens_before
    ? ` (${formatDollars((request.cost_without_usd / request.tokens_before) * tokens)})` : "";
  const facts = [
    ["Original", `${formatSize(image.size)}, ${formatBytes(image.bytes)}`],
    ["Sent", image.sent_size ? `${formatSize(image.sent_size)}, ${formatBytes(image.sent_bytes)}` : image.fate === "shown" ? "the same" : "text"],
    ["Tokens without Sightline", image.tokens_before === null ? "unknown" : `${formatCount(image.tokens_before)}${share(image.tokens_before)}`],
    ["Tokens with Sightline", image.tokens_after === null ? "unknown" : `${formatCount(image.tokens_after)}${share(image.tokens_after)}`],
    ["Place in the request", image.place],
    ["Image", image.sha256 ? `sha256:${image.sha256.slice(0, 16)}…` : "not in the record"],
  ];
  return h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function drawSaid(known) {
  const total = known.questions.reduce((sum, each) => sum + (each.cost_usd || 0), 0);
  const unpriced = known.questions.some((each) => each.seer && !each.cached && each.cost_usd === null);
  const asked = known.questions.filter((each) => each.seer || each.error);
  return [
    h("p", { class: "cost" }, "Questions about this image cost ", h("strong", {}, unpriced && !total ? "an unknown price" : formatDollars(total)), unpriced && total ? " and calls of unknown price" : "", "."),
    known.descriptions.length ? h("h3", {}, "What was said") : null,
    ...known.descriptions.map((each) => h("blockquote", {}, h("cite", {}, each.seer), h("pre", { tabIndex: 0 }, each.text))),
    asked.length ? h("h3", {}, "Asked") : null,
    asked.length ? h("ul", { class: "asked" }, asked.map((each) => h("li", {},
      h("strong", {}, each.question || (each.kind === "joint_description" ? "a comparison" : "a description")),
      h("span", { class: "muted" }, ` ${each.seer || "no seer"}, ${each.cached ? "from the cache" : formatDollars(each.cost_usd)}`
        + `${each.latency_ms === null ? "" : `, ${(each.latency_ms / 1000).toFixed(1)} s`}${each.error ? `, failed: ${each.error}` : ""}`)))) : null,
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

/** Draw the original, what was sent beside it with a slider, and boxes on it. */
function drawStage(stage, image, boxes) {
  const url = image.sha256 ? pictureUrl(image.sha256, "file") : "";
  if (!url) {
    stage.replaceChildren(h("p", { class: "missing large" }, "The record does not have this image: the model got it as the client sent it, and nothing had to be kept."));
    return;
  }
  const original = h("img", { src: url, alt: `Original: ${altText(image)}` });
  const layers = h("div", { class: "layers" }, original);
  const controls = [];
  if (image.sent_size && !exported) {
    const sent = h("img", { class: "sent", src: `api/image/${image.sha256}/scaled?edge=${Math.max(...image.sent_size)}`, alt: `As sent: ${formatSize(image.sent_size)}` });
    const slider = h("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Compare the original with what was sent", oninput: () => layers.style.setProperty("--cut", `${slider.value}%`) });
    layers.style.setProperty("--cut", "50%");
    layers.append(sent);
    controls.push(h("label", { class: "slider" }, h("span", {}, "original"), slider, h("span", {}, "sent")));
  }
  if (boxes.length) layers.append(drawBoxes(boxes, image.size));
  stage.replaceChildren(layers, ...controls, boxes.length ? h("p", { class: "muted" }, `${formatPlural(boxes.length, "box")
    .replace("boxs", "boxes")} from the description`) : "");
}

function drawBoxes(boxes, size) {
  const line = Math.max(1, Math.max(...size) / 300);
  return s("svg", { class: "boxes", viewBox: `0 0 ${size[0]} ${size[1]}`, preserveAspectRatio: "none", role: "img", "aria-label": "Boxes" },
    boxes.map(({ label, box: [x1, y1, x2, y2] }) => s("rect", { x: x1, y: y1, width: x2 - x1, height: y2 - y1, "stroke-width": line }, s("title", {}, label || "box"))));
}
