"use strict";
// Elements, formats and the API. Text from outside only ever becomes a text node: nothing here parses HTML.

const exported = (() => {
  const block = document.getElementById("exported");
  return block ? JSON.parse(block.textContent) : null;
})();

/** Create an element. `props` are properties, `on…` listeners, and attributes whose names contain a dash. */
function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Create an SVG element; all `props` are attributes. */
function s(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return element;
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else if (name === "class") element.className = value;
    else element[name] = value;
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== ""));
  return element;
}

let formToken = "";

/** Return the answer of the API to a GET. An exported file contains the answers. */
async function get(path) {
  if (exported) {
    const answer = exported.answers[path.split("?")[0]];
    if (!answer) throw new Error("this is not in the exported file");
    return answer;
  }
  const response = await fetch(`api/${path}`);
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.error.message), { status: response.status });
  return body;
}

/** Send a change to the API. */
async function post(path, value) {
  const response = await fetch(`api/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-sightline-form": formToken },
    body: JSON.stringify(value),
  });
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.error.message), { status: response.status });
  return body;
}

function pictureUrl(sha256, form) {
  if (exported) return exported.pictures[sha256] || "";
  return `api/image/${sha256}/${form}`;
}

const numbers = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

function formatCount(value) {
  return value === null || value === undefined ? "unknown" : numbers.format(value);
}

function formatShort(value) {
  return value === null || value === undefined ? "?" : compact.format(value);
}

function formatPlural(count, noun) {
  return `${numbers.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

function formatDollars(value) {
  if (value === null || value === undefined) return "price unknown";
  if (value === 0) return "$0";
  if (value < 0.0001) return "under $0.0001";
  return value < 0.01 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

function formatBytes(value) {
  if (value === null || value === undefined) return "unknown";
  if (value < 1024) return `${value} bytes`;
  return value < 1048576 ? `${(value / 1024).toFixed(0)} KB` : `${(value / 1048576).toFixed(1)} MB`;
}

function formatSize(size) {
  return size ? `${size[0]} × ${size[1]}` : "unknown size";
}

function formatTime(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

function formatClock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString(undefined, { timeStyle: "medium" });
}

/** Return a span of time; the date is left out where it is the same. */
function formatSpan(start, end) {
  const same = new Date(start * 1000).toDateString() === new Date(end * 1000).toDateString();
  const last = same ? new Date(end * 1000).toLocaleTimeString(undefined, { timeStyle: "short" }) : formatTime(end);
  const first = formatTime(start);
  return first.endsWith(last) ? first : `${first} to ${last}`;
}

function formatAge(seconds) {
  const past = seconds - Date.now() / 1000;
  for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (-past >= length) return relative.format(Math.round(past / length), unit);
  }
  return "just now";
}

function formatClient(text) {
  return text ? text.split(/[ (]/)[0].slice(0, 40) : "unknown client";
}

/** Return how much less `after` is than `before`, as words. */
function formatSaving(before, after) {
  if (!before || before === after) return "same";
  const share = Math.round((1 - after / before) * 100);
  return share >= 0 ? `${share} % less` : `${-share} % more`;
}

/** Draw figures side by side, each as [value, name, note]. */
function drawTiles(tiles) {
  return h("div", { class: "tiles card" }, tiles.map(([value, name, note]) => h("div", { class: "tile" },
    h("span", { class: "value" }, value), h("span", { class: "name" }, name), h("span", { class: "note" }, note))));
}

/** Ask a question in a dialog, and return whether the user confirmed it. */
function confirmInDialog(question, details, action) {
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    const cancel = h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel");
    const agree = h("button", { type: "button", class: "primary", onclick: () => dialog.close("yes") }, action);
    dialog.className = "small";
    dialog.replaceChildren(
      h("h2", { id: "dialog-title" }, question),
      h("p", {}, details),
      h("div", { class: "actions" }, cancel, agree),
    );
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.returnValue = "";
    dialog.showModal();
    cancel.focus();
  });
}
