// Sorts and filters the tables of suites, hides and shows the series of their figures. Without it the
// page says all that it says with it.
"use strict";

// What a cell is sorted by: the number that it begins with, the devices of a topology, or its text.
function keyOf(row, column) {
  let at = 0;
  for (const cell of row.cells) {
    if (at === column && cell.colSpan === 1) {
      const text = cell.textContent.trim();
      const place = /^(\d+)n(\d+)g$/.exec(text);
      if (place) return place[1] * place[2] + place[1] / 1e6;
      const number = parseFloat(text.replaceAll(",", ""));
      return /^[-\d]/.test(text) && !Number.isNaN(number) ? number : text === "–" ? "" : text;
    }
    at += cell.colSpan;
  }
  return "";
}

// Nothing comes last, whatever the direction; numbers come before text.
function compare(a, b, direction) {
  if (a === b) return 0;
  if (a === "" || b === "") return a === "" ? 1 : -1;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return direction * (typeof a === "number" ? a - b : a.localeCompare(b));
}

function sort(table, header) {
  const first = header.classList.contains("n") ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const next = { [first]: second, [second]: "" }[header.getAttribute("aria-sort")] ?? first;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (next) header.setAttribute("aria-sort", next);
  const direction = next === "descending" ? -1 : 1;
  const key = (row) => (next ? keyOf(row, header.cellIndex) : Number(row.dataset.place));
  const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
  rows.sort((a, b) => compare(a[0], b[0], direction));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tBodies[0].rows].forEach((row, place) => (row.dataset.place = place));
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(table, header));
    header.append(button);
  }
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = "Show rows with ...";
  filter.setAttribute("aria-label", "Show only rows with these words");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  table.closest(".wide").before(filter);
}

// Whom the panels compare with, and a link to the view.
const form = document.querySelector("form.view");
const select = document.createElement("select");
const bounds = JSON.parse(form?.dataset.bounds ?? "{}");
const difference = (ratio, unit = " %") => {
  const size = Math.abs(100 * (ratio - 1)).toFixed(1);
  return `${size === "0.0" ? "" : ratio < 1 ? "\u2212" : "+"}${size}${unit}`;
};
const median = (sorted, mean = (a, b) => (a + b) / 2) => {
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : mean(sorted[half - 1], sorted[half]);
};
const geometric = (a, b) => Math.sqrt(a * b);
const copies = (parts) => [...parts].map((part) => part.cloneNode(true));
const speedsOf = (row) => [...row.querySelectorAll("circle")].map((dot) => Number(dot.dataset.speed)).sort((a, b) => a - b);

// One panel beside a system: as reperf.measuring.statistics.ratio, of each row to that system's.
function relate(panel, base, low, high) {
  const theirs = speedsOf(base);
  const place = (share) => `${((100 * (share - low)) / (high - low)).toFixed(2)}%`;
  for (const drawing of panel.querySelectorAll("svg")) {
    const [kept, ...others] = drawing.querySelectorAll("line, text");
    for (const other of others) other.remove();
    for (const side of ["x", "x1", "x2"]) if (kept?.hasAttribute(side)) kept.setAttribute(side, place(1));
    if (kept?.nodeName === "text") kept.textContent = "100 %";
  }
  for (const row of panel.querySelectorAll("tr[data-series]")) {
    const ours = speedsOf(row);
    const ratios = ours.flatMap((one) => theirs.map((other) => one / other)).sort((a, b) => a - b);
    const rank = bounds[`${ours.length},${theirs.length}`];
    const [least, most] = rank ? [ratios[rank - 1], ratios[ratios.length - rank]] : [];
    for (const dot of row.querySelectorAll("circle")) dot.setAttribute("cx", place(dot.dataset.speed / median(theirs)));
    const spoilt = row.classList.contains("unusable");
    const sure = row === base || (rank && !spoilt && (least > 1 || most < 1));
    row.className = `${sure ? "" : "unsure"} ${spoilt ? "unusable" : ""}`;
    const cell = row.querySelector(".ratio");
    const small = document.createElement("small");
    small.textContent = rank ? `${difference(least, "")} to ${difference(most)}` : "untested";
    cell.replaceChildren(...(row === base ? ["the base"] : [`${difference(median(ratios, geometric))} `, small]));
    row.querySelector("rect")?.remove();
  }
}

function showView() {
  const chosen = form.querySelector("input:checked")?.value ?? "all";
  const base = select.value;
  form.querySelector("a").href = `#${new URLSearchParams({ devices: chosen, relative: base })}`;
  for (const article of document.querySelectorAll("article.finding")) {
    const panels = [...article.querySelectorAll("table.panel")];
    for (const panel of panels) if (panel.asMade) panel.replaceChildren(...copies(panel.asMade));
    if (!base) continue;
    const pairs = panels.map((panel) => [panel, [...panel.querySelectorAll("tr[data-series]")].find((row) => row.dataset.series === base)]);
    const there = pairs.filter(([, row]) => row);
    const shares = there.flatMap(([panel, row]) => [...panel.querySelectorAll("circle")].map((dot) => dot.dataset.speed / median(speedsOf(row))));
    const [low, high] = [Math.min(...shares, 1), Math.max(...shares, 1)];
    const margin = 0.05 * (high - low || 0.1);
    for (const [panel, row] of pairs) {
      panel.asMade ??= copies(panel.children);
      const note = document.createElement("small");
      note.textContent = `no ${base}: to the fastest`;
      if (row) relate(panel, row, low - margin, high + margin);
      else panel.tHead.querySelector("th").append(note);
    }
  }
}

if (form) {
  const names = new Set([...document.querySelectorAll("tr[data-series]")].map((row) => row.dataset.series));
  for (const name of ["", ...names]) select.add(new Option(name || "the fastest", name));
  const label = document.createElement("label");
  label.append("Relative to ", select);
  const link = document.createElement("a");
  link.textContent = "Link to this view";
  if (names.size > 1) form.append(label);
  form.append(link);
  const follow = () => {
    const named = new URLSearchParams(location.hash.slice(1));
    const chosen = document.getElementById(`devices-${named.get("devices")}`);
    if (chosen) chosen.checked = true;
    select.value = named.get("relative") ?? select.value;
    if (select.selectedIndex < 0) select.value = "";  // a system of another report
    showView();
  };
  form.addEventListener("change", showView);
  window.addEventListener("hashchange", follow);
  follow();
}
