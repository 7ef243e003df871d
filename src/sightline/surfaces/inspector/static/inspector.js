"use strict";
// The pages, by the part of the address behind the #, and the list of conversations, which follows new requests.

const PAGES = [["conversations", "Conversations"], ["charts", "Charts"], ["try", "Try it"], ["settings", "Settings"]];
const main = document.getElementById("main");
const live = document.getElementById("live");
let current = { refresh: null, leave: null };

async function showConversations(target) {
  const list = h("div", { class: "conversations card", role: "list" });
  const more = h("button", { type: "button", class: "more", onclick: () => load(next) }, "Show older conversations");
  const totals = h("div", {});
  let next = 0;
  let rows = [];

  async function load(offset) {
    const { conversations, next: after } = await get(`conversations?offset=${offset}`);
    const found = new Set(conversations.map((each) => each.id));
    const others = offset || after !== null ? rows.filter((each) => !found.has(each.id)) : []; // of older pages
    rows = offset ? [...others, ...conversations] : [...conversations, ...others];
    if (offset || !others.length) next = after;
    more.hidden = next === null;
    list.hidden = !rows.length;
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    list.replaceChildren(...rows.map(drawConversation));
    if (focused) list.querySelector(`a[href="${focused}"]`)?.focus({ preventScroll: true });
    totals.replaceChildren(rows.length ? drawTotals(rows, next !== null) : drawEmpty());
  }
  await load(0);
  target.replaceChildren(h("h1", {}, "Conversations"), totals, list, more);
  return () => load(0);
}

function drawEmpty() {
  return h("div", { class: "empty card" }, h("span", { class: "eye", "aria-hidden": "true" }),
    h("h2", {}, "No conversation with images yet"),
    h("p", {}, "Start an agent through Sightline, and give it an image. What becomes of it appears here at once."),
    h("pre", { tabIndex: 0 }, "sightline run -- claude"),
    h("p", { class: "muted" }, "Other agents: ", h("code", {}, "sightline setup --help"), ". Or see what Sightline makes of an image of yours: ", h("a", { href: "#/try" }, "Try it"), "."));
}

function drawTotals(rows, hasMore) {
  const sum = (name) => rows.reduce((total, each) => total + (each[name] || 0), 0);
  const [before, after] = [sum("tokens_before"), sum("tokens_after")];
  return drawTiles([
    [`${formatCount(rows.length)}${hasMore ? "+" : ""}`, rows.length === 1 ? "conversation" : "conversations", formatPlural(sum("requests"), "request")],
    [formatShort(after), "image tokens", `${formatShort(before)} without Sightline`],
    [formatSaving(before, after), "tokens of images", "with Sightline"],
    rows.some((each) => each.cost_usd !== null)
      ? [formatDollars(sum("cost_usd")), "for images", `${formatDollars(sum("cost_without_usd"))} without, where the price is known`]
      : ["–", "for images", "the prices are not known"],
  ]);
}

function drawConversation(each) {
  const bar = h("span", { class: "bar" });
  bar.style.inlineSize = `${Math.min(100, (each.tokens_after / Math.max(1, each.tokens_before)) * 100)}%`;
  return h("div", { role: "listitem" }, h("a", { class: "conversation", href: `#/c/${each.id}` },
    h("span", { class: "model" }, each.models > 1 ? `${each.models} models` : each.model || "unknown model", h("small", {}, `at ${each.upstream}`)),
    h("span", { class: "client" }, formatClient(each.client), h("small", {}, formatAge(each.ended_at))),
    h("span", { class: "counts" }, formatPlural(each.turns, "turn"), h("small", {}, formatPlural(each.images, "image"))),
    h("span", { class: "tokens" }, h("span", { class: "track", "aria-hidden": "true" }, bar),
      h("small", {}, `${formatShort(each.tokens_after)} image tokens, ${formatShort(each.tokens_before)} without`)),
    h("span", { class: "dollars" }, each.cost_usd === null ? "–" : formatDollars(each.cost_usd), h("small", {}, each.cost_usd === null ? "price unknown" : `${formatDollars(each.cost_without_usd)} without`))));
}

async function open() {
  const [, page = "conversations", id = ""] = exported ? ["", "c", exported.conversation] : location.hash.split("/");
  const name = page || "conversations";
  current.leave?.();
  current = { refresh: null, leave: null };
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.hash === `#/${name}` || (name === "c" && link.hash === "#/conversations");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (name === "c") current.refresh = await showConversation(main, id);
    else if (name === "charts") await showCharts(main);
    else if (name === "try") current.leave = showTry(main).leave;
    else if (name === "settings") await showSettings(main);
    else current.refresh = await showConversations(main);
  } catch (error) {
    showError(error);
  }
  document.title = `${main.querySelector("h1")?.firstChild?.textContent ?? ""} – Sightline`;
}

function showError(error) {
  main.replaceChildren(h("h1", {}, error.status === 403 ? "This page needs a session" : "This page can't be shown"),
    h("p", {}, error.message), error.status === 403 ? h("pre", { tabIndex: 0 }, "sightline inspect") : "");
}

/** Follow new requests. The server sends an event for each; pages that show a list load what is new. */
function follow() {
  const events = new EventSource("api/events");
  let first = true;
  events.onopen = () => { live.textContent = "live"; live.className = "live on"; };
  events.onerror = () => { live.textContent = "reconnecting"; live.className = "live"; };
  events.onmessage = () => {
    if (!first) current.refresh?.();
    first = false;
  };
}

/** Exchange the ticket of a one-time link for a session, and remove it from the address. */
async function start() {
  document.getElementById("nav").append(...(exported ? [] : PAGES.map(([name, title]) => h("a", { href: `#/${name}` }, title))));
  document.getElementById("dialog").addEventListener("click", (event) => { if (event.target === event.currentTarget) event.target.close(); });
  if (exported) return open();
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1];
  if (ticket) history.replaceState(null, "", "#/conversations");
  addEventListener("hashchange", async () => { await open(); main.focus({ preventScroll: true }); scrollTo(0, 0); });
  const session = ticket ? post("session", { ticket }) : get("session");
  const shown = ticket ? session.then(open, showError) : open(); // with a cookie, the page needs not wait for the session
  try {
    formToken = (await session).form;
    follow();
  } catch { /* the page says what to do */ }
  return shown;
}

start();
