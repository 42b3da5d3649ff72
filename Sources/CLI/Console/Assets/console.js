// What the console does beyond its pages, which work without this: figures that follow the traffic and a key for
// the search. It makes no markup.
"use strict";

// The figures of the first page.
const tiles = document.querySelector("[data-live]");
if (tiles) {
  const events = new EventSource(tiles.dataset.live);
  events.onmessage = (message) => {
    const figures = JSON.parse(message.data);
    for (const [id, text] of Object.entries(figures.texts)) {
      const element = document.getElementById(id);
      if (element && element.textContent !== text) element.textContent = text;
    }
    if (figures.chart) document.getElementById("live-chart").setAttribute("d", figures.chart);
    show("live-ready", figures.problems, "The server is not ready: ", "The server is ready.", true);
    show("live-warnings", figures.warnings, "Warnings: ", "", false);
  };
  // The browser asks again by itself after each event; a closed stream means that the session has ended.
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      document.getElementById("live-time").textContent = "The figures have stopped: load the page again.";
    }
  };
}

// What is wrong, and what will be.
function show(id, points, lead, otherwise, loud) {
  const notice = document.getElementById(id);
  const text = points.length ? lead + points.join("; ") : otherwise;
  // A reader of the screen is told of changes alone.
  if (!notice || notice.textContent.trim() === text) return;
  notice.textContent = text;
  notice.hidden = !text;
  if (!loud) return;
  notice.className = "notice " + (points.length ? "bad" : "good");
  notice.setAttribute("role", points.length ? "alert" : "status");
}

// "/" leads to the search, unless something is being typed.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  const search = document.getElementById("search");
  if (!search) return;
  event.preventDefault();
  search.focus();
});
