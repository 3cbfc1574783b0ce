// What the page does when it is opened, and when something is pressed.
"use strict";

if (new URLSearchParams(location.search).has("token")) {
  history.replaceState(null, "", location.pathname + location.hash); // from here on the cookie proves it
}
addEventListener("hashchange", () => {
  [listTag, compareTag] = [null, null];
  if (at("trial").open) at("trial").close();
  shown = null;
  tell("data", null);
  poll();
});
addEventListener("visibilitychange", () => {
  if (!document.hidden) poll();
});
const drawAll = () => {
  drawCharts();
  drawComparison();
};
addEventListener("load", drawAll); // Plotly is large and comes last
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
for (const id of ["state", "only-target", "contains"]) {
  at(id).addEventListener("input", () => {
    sorting.page = 0;
    drawTrials();
  });
}
const turnPage = (by) => {
  sorting.page += by;
  drawTrials();
};
at("filter").addEventListener("submit", (event) => event.preventDefault());
at("newer").addEventListener("click", () => turnPage(-1));
at("older").addEventListener("click", () => turnPage(1));
at("download").addEventListener("click", download);
at("scale").addEventListener("change", () => shown?.data && drawProgress(shown.data));
at("close").addEventListener("click", () => at("trial").close());
at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  openTrial(Number(at("number").value));
});
poll();
