// Searches the index that assets/index.js defines: rows of [place, page title, anchor, heading, text].
"use strict";
const limit = 40;
const field = document.getElementById("q");
const list = document.getElementById("results");
const state = document.getElementById("state");
const rows = window.countersignIndex.map((row) => ({
  place: row[0] + (row[2] ? "#" + row[2] : ""), title: row[1], heading: row[3], text: row[4],
  top: (row[1] + " " + row[3]).toLowerCase(), body: row[4].toLowerCase(),
}));

// A section matches if it has every word; words in titles and headings weigh more, the history weighs less.
function score(row, words) {
  let sum = 0;
  for (const word of words) {
    const inTop = row.top.includes(word);
    const inBody = row.body.includes(word);
    if (!inTop && !inBody) { return 0; }
    sum += (inTop ? 10 : 0) + (inBody ? 1 : 0);
  }
  const whole = row.heading.toLowerCase() === words.join(" ") ? 20 : 0;
  return (sum + whole) * (/^(docs\/decisions\/|CHANGELOG)/.test(row.place) ? 0.4 : 1);
}

// Adds the text with the words marked, as text nodes: what was typed never becomes HTML.
function addMarked(parent, text, words) {
  const lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    let next = -1, length = 0;
    for (const word of words) {
      const found = lower.indexOf(word, at);
      if (found >= 0 && (next < 0 || found < next)) { next = found; length = word.length; }
    }
    if (next < 0) { break; }
    parent.append(text.slice(at, next));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next, next + length);
    parent.append(mark);
    at = next + length;
  }
  parent.append(text.slice(at));
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10);
  list.replaceChildren();
  if (words.length === 0) { state.textContent = "Type a word."; return; }
  const found = rows.map((row) => ({ row, score: score(row, words) })).filter((each) => each.score > 0);
  found.sort((a, b) => b.score - a.score);
  const shown = found.slice(0, limit);
  state.textContent = found.length > limit ? `${found.length} sections; the first ${limit}:` : `${found.length} sections`;
  for (const { row } of shown) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = row.place;
    addMarked(link, row.heading && row.heading !== row.title ? `${row.title}: ${row.heading}` : row.title, words);
    const text = document.createElement("p");
    const first = Math.max(0, Math.min(...words.map((word) => row.body.indexOf(word)).filter((at) => at >= 0), 1e9) - 60);
    const start = first > 1e8 || first === 0 ? 0 : row.text.indexOf(" ", first) + 1;
    const excerpt = row.text.slice(start, start + 220);
    addMarked(text, (start > 0 ? "… " : "") + excerpt + (start + 220 < row.text.length ? " …" : ""), words);
    item.append(link, text);
    list.append(item);
  }
}

// The arrow keys go from the field through the results and back.
document.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") { return; }
  const stops = [field, ...list.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  const next = stops[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at >= 0 && next) { event.preventDefault(); next.focus(); }
});
field.value = new URLSearchParams(location.search).get("q") || "";
field.addEventListener("input", show);
show();
