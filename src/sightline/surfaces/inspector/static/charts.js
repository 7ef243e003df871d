"use strict";
// Charts as inline SVG, each with a table of its figures for people who cannot see it.

/** Draw pairs of bars: with Sightline, and without. `rows` have a label, `after` and `before`. */
function drawPairs(title, rows, format = formatShort) {
  const width = Math.max(320, rows.length * 26 + 60);
  const height = 180;
  const top = Math.max(1e-9, ...rows.map((row) => Math.max(row.before, row.after)));
  const scale = (value) => (value / top) * (height - 40);
  const bars = rows.map((row, index) => {
    const x = 48 + index * 26;
    const bar = (value, offset, name) =>
      s("rect", { class: name, x: x + offset, width: 9, rx: 2, y: height - 20 - scale(value), height: scale(value) });
    const words = `${row.label}: ${format(row.after)} with Sightline, ${format(row.before)} without`;
    return s("g", {}, s("title", {}, words), bar(row.before, 0, "without"), bar(row.after, 10, "with"),
      rows.length <= 40 || index % 5 === 0
        ? s("text", { x: x + 9, y: height - 6, "text-anchor": "middle" }, row.short ?? String(index + 1)) : null);
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title }, drawGrid(width, height, top, scale, format), bars);
  const legend = h("p", { class: "legend" },
    h("span", { class: "key with" }), "with Sightline", h("span", { class: "key without" }), "without");
  return drawFigure(title, svg, legend, ["", "with", "without"],
    rows.map((row) => [row.label, format(row.after), format(row.before)]));
}

/** Draw stacked bars. `kinds` are the parts as [name, title], from the bottom; each of `rows` has a label and a figure for each. */
function drawStacks(title, kinds, rows, format = formatShort) {
  const width = Math.max(320, rows.length * 16 + 60);
  const height = 180;
  const top = Math.max(1e-9, ...rows.map((row) => kinds.reduce((sum, [name]) => sum + row[name], 0)));
  const scale = (value) => (value / top) * (height - 40);
  const stacks = rows.map((row, index) => {
    let base = height - 20;
    const parts = kinds.map(([name]) => {
      const tall = scale(row[name]);
      base -= tall;
      return s("rect", { class: name, x: 48 + index * 16, width: 11, y: base, height: tall });
    });
    const words = `${row.label}: ${kinds.map(([name, words]) => `${format(row[name])} ${words}`).join(", ")}`;
    return s("g", {}, s("title", {}, words), parts, index % 5 === 4 || rows.length < 12
      ? s("text", { x: 53 + index * 16, y: height - 6, "text-anchor": "middle" }, row.short ?? String(index + 1)) : null);
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title }, drawGrid(width, height, top, scale, format), stacks);
  const legend = h("p", { class: "legend" }, kinds.flatMap(([name, words]) => [h("span", { class: `key ${name}` }), words]));
  return drawFigure(title, svg, legend, ["", ...kinds.map(([, words]) => words)],
    rows.map((row) => [row.label, ...kinds.map(([name]) => format(row[name]))]));
}

function drawGrid(width, height, top, scale, format) {
  return [0, 0.5, 1].map((part) => s("g", {},
    s("line", { class: "grid", x1: 44, x2: width, y1: height - 20 - scale(top * part), y2: height - 20 - scale(top * part) }),
    s("text", { x: 40, y: height - 16 - scale(top * part), "text-anchor": "end" }, format(top * part))));
}

/** Draw horizontal bars. `rows` have a label and a value. */
function drawBars(title, rows, format) {
  const top = Math.max(Number.MIN_VALUE, ...rows.map((row) => row.value));
  const list = rows.map((row) => {
    const bar = h("span", { class: "bar" });
    bar.style.inlineSize = `${Math.max(1, (row.value / top) * 100)}%`;
    return h("div", { class: "row" }, h("span", { class: "name" }, row.label),
      h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", { class: "figure" }, format(row.value)));
  });
  return h("figure", { class: "card chart" }, h("figcaption", {}, title),
    list.length ? h("div", { class: "rows" }, list) : h("p", { class: "muted" }, "Nothing yet."));
}

function drawFigure(title, svg, legend, head, rows) {
  const table = h("table", {}, h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => h("td", {}, each))))));
  return h("figure", { class: "card chart" }, h("figcaption", {}, title),
    h("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": `${title}, chart` }, svg), legend,
    h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": `${title}, table` }, table)));
}

async function showCharts(main) {
  const [usage, list] = await Promise.all([get("usage"), get("conversations")]);
  const costs = new Map();
  const times = new Map();
  for (const day of usage.days) costs.set(day.seer, (costs.get(day.seer) || 0) + (day.cost_usd || 0));
  for (const each of usage.latencies) times.set(each.seer, [...(times.get(each.seer) || []), each.ms]);
  const medians = [...times].map(([label, all]) => ({ label, value: all.sort((a, b) => a - b)[all.length >> 1] }));
  const rows = list.conversations.slice(0, 40).reverse();
  const name = (each) => `${each.model}, ${formatTime(each.ended_at)}`;
  const priced = rows.filter((each) => each.cost_usd !== null);
  main.replaceChildren(
    h("h1", {}, "Charts"),
    h("p", { class: "muted" }, "Tokens are those of images in all requests of a conversation, estimated. Dollars are list prices without a discount for cached tokens."),
    h("div", { class: "columns" },
      drawPairs("Tokens of images by conversation", rows.map((each) => ({ label: name(each), before: each.tokens_before, after: each.tokens_after }))),
      drawPairs("Dollars by conversation", priced.map((each) => ({ label: name(each), before: each.cost_without_usd, after: each.cost_usd })), formatDollars),
      drawBars("Cost by seer", [...costs].map(([label, value]) => ({ label, value })), formatDollars),
      drawBars("Time to an answer by seer, median", medians, (ms) => `${(ms / 1000).toFixed(1)} s`)));
}
