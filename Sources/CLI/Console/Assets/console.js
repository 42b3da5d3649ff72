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
    show(figures.problems);
  };
  // The browser asks again by itself after each event; a closed stream means that the session has ended.
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      document.getElementById("live-time").textContent = "The figures have stopped: load the page again.";
    }
  };
}

// Whether the server is ready.
function show(problems) {
  const notice = document.getElementById("live-ready");
  const text = problems.length ? "The server is not ready: " + problems.join("; ") : "The server is ready.";
  if (notice.textContent.trim() === text || (problems.length && notice.dataset.text === text)) return;
  notice.dataset.text = text;
  notice.textContent = text;
  notice.className = "notice " + (problems.length ? "bad" : "good");
  notice.setAttribute("role", problems.length ? "alert" : "status");
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
