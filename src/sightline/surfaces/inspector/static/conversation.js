"use strict";
// One conversation: its figures, and a timeline of turns with the images of each request in their places.

async function showConversation(main, id) {
  const page = await get(`conversation?id=${encodeURIComponent(id)}`);
  const requests = [...page.requests];
  const timeline = h("div", { class: "timeline" });
  const chart = h("div", { class: "columns" });
  const more = h("button", { type: "button", class: "more" }, "Show later requests");
  let next = page.next;

  const update = (added) => {
    drawTurns(timeline, added, id);
    more.hidden = next === null;
    const name = (each) => `Request ${requests.indexOf(each) + 1}, turn ${each.turn}`;
    const counted = requests.filter((each) => each.answer);
    chart.replaceChildren(
      drawPairs("Tokens of images by request", requests.map((each) => ({ label: name(each), before: each.tokens_before, after: each.tokens_after }))),
      counted.length ? drawStacks("Cache reads and writes by request", CACHE_KINDS, counted.map((each) => ({ label: name(each), ...splitInput(each.answer) }))) : "");
  };
  more.addEventListener("click", async () => {
    const later = await get(`conversation?id=${encodeURIComponent(id)}&after=${next}`);
    next = later.next;
    requests.push(...later.requests);
    update(later.requests);
  });
  const load = async () => {
    const last = requests.at(-1)?.id ?? 0;
    if (next !== null) return;
    const later = await get(`conversation?id=${encodeURIComponent(id)}&after=${last}`);
    requests.push(...later.requests);
    next = later.next;
    if (later.requests.length) update(later.requests);
  };
  const { summary } = page;
  main.replaceChildren(
    exported ? "" : h("a", { href: "#/conversations", class: "back" }, "‹ Conversations"),
    h("h1", {}, summary.models > 1 ? `${summary.models} models` : summary.model, h("small", {}, ` at ${summary.upstream}`)),
    h("p", { class: "muted" }, `${formatClient(summary.client)}, ${formatTime(summary.started_at)} to ${formatTime(summary.ended_at)}`),
    drawSummary(summary), chart, h("h2", {}, "Timeline"), timeline, more);
  update(page.requests);
  return load;
}

function drawSummary(summary) {
  const tile = (value, name, note = "") => h("div", { class: "tile" }, h("span", { class: "value" }, value), h("span", { class: "name" }, name), h("span", { class: "note" }, note));
  return h("div", { class: "tiles" },
    tile(formatCount(summary.turns), summary.turns === 1 ? "turn" : "turns", formatPlural(summary.requests, "request")),
    tile(formatCount(summary.images), "images", "in the largest request"),
    tile(formatShort(summary.tokens_after), "image tokens", `${formatShort(summary.tokens_before)} without: ${formatSaving(summary.tokens_before, summary.tokens_after)}`),
    tile(summary.cost_usd === null ? "–" : formatDollars(summary.cost_usd), "for images", summary.cost_usd === null ? "the price is not known" : `${formatDollars(summary.cost_without_usd)} without`));
}

/** Add requests to the timeline. */
function drawTurns(timeline, requests, conversation) {
  for (const request of requests) {
    let turn = timeline.lastElementChild;
    if (!turn || Number(turn.dataset.turn) !== request.turn) {
      turn = h("section", { class: "turn", "aria-label": `Turn ${request.turn}` }, h("h3", {}, `Turn ${request.turn}`));
      turn.dataset.turn = request.turn;
      timeline.append(turn);
    }
    turn.append(drawRequest(request, conversation));
  }
}

function drawRequest(request, conversation) {
  const all = Object.values(request.fates).reduce((sum, count) => sum + count, 0);
  return h("article", { class: "request" },
    h("header", {}, h("time", {}, formatTime(request.at)),
      h("span", {}, `${formatShort(request.tokens_after)} image tokens, ${formatShort(request.tokens_before)} without`),
      request.cost_usd === null ? "" : h("span", {}, `${formatDollars(request.cost_usd)} for images`),
      request.answer ? h("span", {}, `${formatShort(request.answer.input)} tokens in, ${formatShort(request.answer.output)} out${request.answer.cost_usd === null ? "" : `: ${formatDollars(request.answer.cost_usd)}`}`) : ""),
    drawCache(request),
    request.notes.length ? h("ul", { class: "notes" }, request.notes.map((each) => h("li", {}, each))) : "",
    request.images.length ? h("div", { class: "thumbs" }, request.images.map((each) => drawThumbnail(each, request))) : "",
    all > request.images.length ? drawAllImages(request, conversation, all) : "",
    request.edits.length ? drawEdits(request.edits) : "");
}

/** Draw how many images the whole request has, by fate; they are loaded by pages when this is opened. */
function drawAllImages(request, conversation, all) {
  const words = `${all === request.new_images ? formatPlural(all, "image") : `${formatPlural(all, "image")} in all`}: ${Object.entries(request.fates).map(([fate, count]) => `${count} ${FATES[fate]}`).join(", ")}`;
  if (exported) return h("p", { class: "muted" }, words);
  const list = h("div", { class: "thumbs" });
  const more = h("button", { type: "button", class: "more", onclick: () => load() }, "Show more images");
  let next = 0;
  async function load() {
    const page = await get(`images?id=${encodeURIComponent(conversation)}&request=${request.id}&offset=${next}`);
    list.append(...page.images.map((each) => drawThumbnail(each, request)));
    next = page.next;
    more.hidden = next === null;
  }
  return h("details", { class: "all", ontoggle: (event) => { if (event.target.open && !list.children.length) load(); } }, h("summary", {}, words), list, more);
}

const CACHE_KINDS = [["read", "read from the cache"], ["written", "written to it"], ["uncached", "neither"]];

/** Split the input of an answer into what was read from the cache, written to it, and neither. */
function splitInput({ input, cached, written }) {
  const read = Math.min(cached || 0, input);
  const added = Math.min(written || 0, input - read);
  return { read, written: added, uncached: input - read - added };
}

/** Draw where the cached prefix ended, as the provider counted it; else where it probably did: where the last request ended. */
function drawCache(request) {
  const known = request.answer && request.answer.cached !== null;
  if (!known && (request.cached_messages === null || !request.messages)) return "";
  const parts = known ? splitInput(request.answer) : { read: request.cached_messages, written: 0, uncached: request.messages - request.cached_messages };
  const total = Math.max(1, parts.read + parts.written + parts.uncached);
  const bars = CACHE_KINDS.slice(0, 2).map(([name]) => {
    const bar = h("span", { class: name });
    bar.style.inlineSize = `${(parts[name] / total) * 100}%`;
    return bar;
  });
  const repeated = `${request.cached_messages} of ${formatPlural(request.messages, "message")} were in the request before`;
  const words = known
    ? [`${formatShort(parts.read)} of ${formatShort(total)} input tokens came from the cache`, parts.written ? `, ${formatShort(parts.written)} were written to it` : "", request.cached_messages ? `; ${repeated}` : ""]
    : request.cached_messages ? `Probably cached: the first ${request.cached_messages} of ${formatPlural(request.messages, "message")}` : `Nothing of ${formatPlural(request.messages, "message")} was cached`;
  return h("div", { class: "prefix" }, h("span", { class: "track parts", "aria-hidden": "true" }, bars), h("span", { class: "muted" }, words));
}

function drawEdits(edits) {
  return h("details", { class: "edits" }, h("summary", {}, `${formatPlural(edits.length, "edited place")}, before and after`),
    edits.map((edit) => h("div", { class: "edit" }, h("code", {}, edit.place),
      h("div", { class: "sides" }, drawSide("Before", edit.before), drawSide("After", edit.after)))));
}

/** Draw the text of a place, with each image as a chip. */
function drawSide(name, text) {
  const parts = (text || "(nothing)").split("[image]");
  const nodes = parts.flatMap((part, index) => (index ? [h("span", { class: "chip" }, "image"), part] : [part]));
  return h("div", {}, h("h4", {}, name), h("pre", { tabIndex: 0 }, nodes));
}
