"use strict";
// One conversation: its figures, and a timeline of turns with the images of each request in their places.

const CACHE_KINDS = [["read", "read"], ["written", "written"], ["uncached", "not cached"]];

async function showConversation(main, id) {
  const page = await get(`conversation?id=${encodeURIComponent(id)}`);
  const requests = [];
  const timeline = h("div", { class: "timeline" });
  const charts = h("div", { class: "columns" });
  const figures = h("div", {});
  const more = h("button", { type: "button", class: "more", onclick: () => load() }, "Show later requests");
  let next = 0;

  const add = (found) => {
    figures.replaceChildren(drawSummary(found.summary));
    requests.push(...found.requests);
    next = found.next;
    more.hidden = next === null;
    drawTurns(timeline, found.requests, id);
    charts.replaceChildren(...drawCharts(requests));
  };
  const load = async () => {
    const last = next ?? requests.at(-1)?.id ?? 0;
    const later = await get(`conversation?id=${encodeURIComponent(id)}&after=${last}`);
    if (later.requests.length) add(later);
    else figures.replaceChildren(drawSummary(later.summary));
  };
  const { summary } = page;
  main.replaceChildren(
    exported ? "" : h("a", { href: "#/conversations", class: "back" }, "‹ Conversations"),
    h("h1", {}, summary.models > 1 ? `${summary.models} models` : summary.model || "unknown model", h("small", {}, ` at ${summary.upstream}`)),
    h("p", { class: "lead" }, `${formatClient(summary.client)}, ${formatSpan(summary.started_at, summary.ended_at)}`),
    figures, charts, h("h2", {}, "Timeline"), drawLegend(), timeline, more);
  add(page);
  return () => (next === null ? load() : null);
}

function drawSummary(summary) {
  return drawTiles([
    [formatCount(summary.turns), summary.turns === 1 ? "turn" : "turns", formatPlural(summary.requests, "request")],
    [formatCount(summary.images), summary.images === 1 ? "image" : "images", "in the largest request"],
    [formatShort(summary.tokens_after), "image tokens", `${formatShort(summary.tokens_before)} without Sightline: ${formatSaving(summary.tokens_before, summary.tokens_after)}`],
    [summary.cost_usd === null ? "–" : formatDollars(summary.cost_usd), "for images", summary.cost_usd === null ? "the price is not known" : `${formatDollars(summary.cost_without_usd)} without Sightline`],
  ]);
}

function drawCharts(requests) {
  const name = (each) => `Request ${requests.indexOf(each) + 1}, turn ${each.turn}`;
  const fates = Object.keys(FATES).filter((fate) => requests.some((each) => each.fates[fate]));
  const counted = requests.filter((each) => each.answer);
  const priced = requests.filter((each) => each.cost_usd !== null);
  const choose = (shown) => (index) => document.getElementById(`request-${shown[index].id}`)?.scrollIntoView({ block: "center" });
  return [
    drawColumns("Images by request", fates.map((fate) => [fate, FATES[fate]]),
      requests.map((each) => ({ label: name(each), ...Object.fromEntries(fates.map((fate) => [fate, each.fates[fate] || 0])) })), { choose: choose(requests), format: (value) => (Number.isInteger(value) ? formatShort(value) : "") }),
    drawColumns("Tokens of images by request", WITH_AND_WITHOUT,
      requests.map((each) => ({ label: name(each), without: each.tokens_before, with: each.tokens_after })), { beside: true, choose: choose(requests) }),
    priced.length ? drawColumns("Dollars for images by request", WITH_AND_WITHOUT,
      priced.map((each) => ({ label: name(each), without: each.cost_without_usd, with: each.cost_usd })), { beside: true, format: formatDollars, choose: choose(priced) }) : "",
    counted.length ? drawColumns("Cache by request", CACHE_KINDS,
      counted.map((each) => ({ label: name(each), ...splitInput(each.answer) })), { choose: choose(counted) }) : "",
  ].filter(Boolean);
}

function drawLegend() {
  const words = { shown: "pixels as sent", refitted: "pixels in another size or format", told: "words instead of pixels", retired: "seen before, now a line", refused: "a sentence that says why not" };
  return h("p", { class: "legend" }, Object.entries(words).map(([fate, text]) => h("span", {}, h("span", { class: `key ${fate}` }), h("strong", {}, FATES[fate]), ` ${text}`)));
}

/** Add requests to the timeline. */
function drawTurns(timeline, requests, conversation) {
  for (const request of requests) {
    let turn = timeline.lastElementChild;
    if (!turn || Number(turn.dataset.turn) !== request.turn) {
      turn = h("section", { class: "turn", "aria-label": `Turn ${request.turn}` },
        h("h3", {}, h("span", { class: "hidden" }, "Turn "), h("span", { class: "number" }, String(request.turn))),
        h("div", { class: "requests" }));
      turn.dataset.turn = request.turn;
      timeline.append(turn);
    }
    turn.lastElementChild.append(drawRequest(request, conversation));
  }
}

function drawRequest(request, conversation) {
  const all = Object.values(request.fates).reduce((sum, count) => sum + count, 0);
  const { answer } = request;
  return h("article", { class: "request card", id: `request-${request.id}` },
    h("header", {}, h("time", {}, formatClock(request.at)),
      h("span", {}, h("strong", {}, formatShort(request.tokens_after)), ` image tokens, ${formatShort(request.tokens_before)} without`),
      answer ? h("span", {}, h("strong", {}, formatShort(answer.input)), ` tokens in all, ${formatShort(answer.output)} answered`) : "",
      answer && answer.cost_usd !== null ? h("strong", {}, formatDollars(answer.cost_usd)) : ""),
    request.notes.length ? h("ul", { class: "notes" }, request.notes.map((each) => h("li", {}, each))) : "",
    h("div", { class: request.images.length === 1 ? "body few" : "body" },
      request.images.length ? h("div", { class: "thumbs" }, request.images.map((each) => drawThumbnail(each, request))) : "",
      h("div", { class: "side" }, drawCache(request),
        all > request.images.length ? drawAllImages(request, conversation, all) : "",
        request.edits.length ? drawEdits(request.edits) : "")));
}

/** Draw how many images the whole request has, by fate; they are loaded by pages when this is opened. */
function drawAllImages(request, conversation, all) {
  const words = `${formatPlural(all, "image")} in this request: ${Object.entries(request.fates).map(([fate, count]) => `${count} ${FATES[fate]}`).join(", ")}`;
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
  const percent = `${Math.round((parts.read / total) * 100)} %`;
  const words = known
    ? `The cached prefix ended after ${formatShort(parts.read)} of ${formatShort(total)} tokens (${percent})${parts.written ? `; ${formatShort(parts.written)} were written to the cache` : ""}`
    : request.cached_messages ? `The cached prefix probably ended after message ${request.cached_messages} of ${request.messages}` : `Nothing of ${formatPlural(request.messages, "message")} was cached`;
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
