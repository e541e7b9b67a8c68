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

// One body, and in each row the name of its series: rows can then stand in any order.
function flatten(table) {
  if (table.dataset.flat) return;
  table.dataset.flat = "yes";
  const body = document.createElement("tbody");
  for (const group of [...table.tBodies]) {
    const name = group.rows[0].cells[0];
    name.rowSpan = 1;
    name.scope = "row";
    for (const row of [...group.rows]) {
      if (row.cells[0] !== name) row.prepend(name.cloneNode(true));
      row.dataset.place = body.rows.length;
      body.append(row);
    }
    group.remove();
  }
  table.append(body);
}

function sort(table, header) {
  flatten(table);
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
    flatten(table);
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  table.closest(".wide").before(filter);
}

// What is drawn for a series in a colour of its own, not in one of the page's.
const COLOURED = '[style*="fill: #"]';

// The boxes above a suite's figures.
for (const figures of document.querySelectorAll(".figures")) {
  const parts = Map.groupBy(figures.querySelectorAll("[data-series]"), (part) => part.dataset.series);
  if (parts.size < 2) continue;
  const boxes = document.createElement("fieldset");
  boxes.className = "columns series";
  const legend = document.createElement("legend");
  legend.textContent = "Show in the figures";
  boxes.append(legend);
  for (const [name, drawn] of parts) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.style.accentColor = drawn.map((part) => part.querySelector(COLOURED)?.style.fill).find(Boolean) ?? "";
    box.addEventListener("change", () => {
      for (const part of drawn) part.style.display = box.checked ? "" : "none";
    });
    const label = document.createElement("label");
    label.append(box, name);
    boxes.append(label);
  }
  figures.before(boxes);
}
