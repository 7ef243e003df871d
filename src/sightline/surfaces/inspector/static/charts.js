"use strict";
// Charts as inline SVG, each with a table of its figures for people who cannot see it.

const CHART = { width: 420, height: 156, left: 48, bottom: 22, top: 8 };

/**
 * Draw a bar for each row, or a stack of bars. `kinds` are its parts as [name, words], the lowest first; a row has a label
 * and a figure for each kind. With `beside`, the bars of a row are drawn side by side. `choose` gets the index of a row.
 */
function drawColumns(title, kinds, rows, { format = formatShort, beside = false, choose = null } = {}) {
  const { width, height, left, bottom, top } = CHART;
  const sum = (row) => (beside ? Math.max(...kinds.map(([name]) => row[name])) : kinds.reduce((all, [name]) => all + row[name], 0));
  const most = roundUp(Math.max(0, ...rows.map(sum)));
  const scale = (value) => (value / most) * (height - bottom - top);
  const step = (width - left - 4) / Math.max(rows.length, 8);
  const gap = Math.min(6, step * 0.25);
  const every = [1, 2, 5, 10, 20, 50, 100].find((each) => each * step >= 24) ?? 200;
  const columns = rows.map((row, index) => {
    const x = left + index * step + gap / 2;
    const bar = (step - gap) / (beside ? kinds.length : 1);
    let base = height - bottom;
    const parts = kinds.map(([name], place) => {
      const tall = row[name] ? Math.max(1, scale(row[name])) : 0;
      if (!beside) base -= tall;
      return s("rect", { class: name, x: x + (beside ? place * bar : 0), width: Math.max(0.5, bar - (beside ? 0.5 : 0)), y: beside ? base - tall : base, height: tall, rx: Math.min(1.5, bar / 4) });
    });
    const words = `${row.label}: ${kinds.map(([name, said]) => `${format(row[name])} ${said}`).join(", ")}`;
    return s("g", choose ? { class: "column", "data-index": index } : {}, s("title", {}, words),
      s("rect", { class: "hit", x: x - gap / 2, width: step, y: top, height: height - bottom - top }), parts,
      (index + 1) % every === 0 || every === 1 ? s("text", { x: x + (step - gap) / 2, y: height - 7, "text-anchor": "middle" }, String(index + 1)) : null);
  });
  const grid = [0, 0.5, 1].map((part) => {
    const y = height - bottom - scale(most * part);
    return s("g", {}, s("line", { class: "grid", x1: left, x2: width, y1: y, y2: y }), s("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, format(most * part).replace(/(\.\d*[1-9])0+$/, "$1")));
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, grid, columns);
  if (choose) svg.addEventListener("click", (event) => { const at = event.target.closest(".column"); if (at) choose(Number(at.dataset.index)); });
  const table = h("table", {}, h("thead", {}, h("tr", {}, ["", ...kinds.map(([, words]) => words)].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, h("td", {}, row.label), kinds.map(([name]) => h("td", { class: "number" }, format(row[name])))))));
  return h("figure", { class: "card chart" },
    h("figcaption", {}, title),
    rows.length ? [svg, h("p", { class: "legend" }, kinds.map(([name, words]) => h("span", {}, h("span", { class: `key ${name}` }), words))),
      h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": `${title}, table` }, table))]
      : h("p", { class: "muted" }, "No figures yet."));
}

/** Return the next round number: 1, 2 or 5 with zeros. */
function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= value);
}

/** Draw horizontal bars. `rows` have a label and a value. */
function drawBars(title, rows, format) {
  const top = Math.max(Number.MIN_VALUE, ...rows.map((row) => row.value ?? 0));
  const list = rows.map((row) => {
    const bar = h("span", { class: "bar" });
    bar.style.inlineSize = row.value === null ? "0" : `${Math.max(1, (row.value / top) * 100)}%`;
    return h("div", { class: "row" }, h("span", { class: "name" }, row.label),
      h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", { class: "figure" }, format(row.value)));
  });
  return h("figure", { class: "card chart" }, h("figcaption", {}, title),
    list.length ? h("div", { class: "rows" }, list) : h("p", { class: "muted" }, "No seer was asked yet."));
}

const WITH_AND_WITHOUT = [["without", "without"], ["with", "with Sightline"]];

async function showCharts(main) {
  const [usage, list] = await Promise.all([get("usage"), get("conversations")]);
  const costs = new Map();
  const times = new Map();
  for (const day of usage.days) {
    const known = costs.get(day.seer) ?? null;
    costs.set(day.seer, day.cost_usd === null ? known : (known ?? 0) + day.cost_usd);
  }
  for (const each of usage.latencies) times.set(each.seer, [...(times.get(each.seer) || []), each.ms]);
  const medians = [...times].map(([label, all]) => ({ label, value: all.sort((a, b) => a - b)[all.length >> 1] }));
  const rows = list.conversations.slice(0, 40).reverse();
  const name = (each) => `${each.model}, ${formatTime(each.ended_at)}`;
  const priced = rows.filter((each) => each.cost_usd !== null);
  const choose = (shown) => (index) => { location.hash = `#/c/${shown[index].id}`; };
  main.replaceChildren(
    h("h1", {}, "Charts"),
    h("p", { class: "lead" }, "The last 40 conversations, the newest at the right. Tokens are those of images in all requests, estimated; dollars are list prices without a discount for cached tokens."),
    h("div", { class: "columns two" },
      drawColumns("Tokens of images by conversation", WITH_AND_WITHOUT, rows.map((each) => ({ label: name(each), without: each.tokens_before, with: each.tokens_after })), { beside: true, choose: choose(rows) }),
      drawColumns("Dollars by conversation", WITH_AND_WITHOUT, priced.map((each) => ({ label: name(each), without: each.cost_without_usd, with: each.cost_usd })), { beside: true, format: formatDollars, choose: choose(priced) }),
      drawBars("Cost by seer", [...costs].map(([label, value]) => ({ label, value })), formatDollars),
      drawBars("Time to an answer by seer, median", medians, (ms) => `${(ms / 1000).toFixed(1)} s`)));
}
