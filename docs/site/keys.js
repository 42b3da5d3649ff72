// The shortcut of the search field, and the menu of a narrow window. All else works without this file.
"use strict";
document.addEventListener("keydown", (event) => {
  const field = document.getElementById("q");
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});
if (matchMedia("(max-width: 52rem)").matches) {
  document.querySelector("details.menu").open = false;
}
