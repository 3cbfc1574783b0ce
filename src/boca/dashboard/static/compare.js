// Several studies in one chart.  The studies are chosen in the list, and named in the address, so that a link has them.
"use strict";

const COMPARED = 8; // curves in one chart: more cannot be told apart
const LOOKS = [["#0072B2", "solid"], ["#D55E00", "dash"], ["#009E73", "dot"], ["#CC79A7", "dashdot"], ["#8a6d00", "longdash"], ["#56B4E9", "solid"], ["#7F7F7F", "dash"], ["#a0522d", "dot"]];

let compareTag = null;
let comparison = null; // the last answer

// The address is #compare/A/B with encoded names.
function compared() {
  if (!location.hash.startsWith("#compare/")) return [];
  const names = location.hash.slice("#compare/".length).split("/").filter(Boolean);
  try {
    return [...new Set(names.map(decodeURIComponent))].slice(0, COMPARED);
  } catch {
    return [];
  }
}

function choose(name, isChosen) {
  const names = compared().filter((other) => other !== name);
  if (isChosen) names.push(name);
  const hash = names.length ? `#compare/${names.map(encodeURIComponent).join("/")}` : "#";
  history.replaceState(null, "", hash);
  compareTag = null;
  drawChosen();
  poll();
}

function chooser(name) {
  const box = make("input");
  box.type = "checkbox";
  box.checked = compared().includes(name);
  box.dataset.study = name;
  box.setAttribute("aria-label", `compare ${name}`);
  box.addEventListener("change", () => choose(name, box.checked));
  return cell(box);
}

function drawChosen() {
  const names = compared();
  at("comparison").hidden = names.length === 0;
  for (const box of document.querySelectorAll("#studies input[type=checkbox]")) {
    box.checked = names.includes(box.dataset.study);
    box.disabled = !box.checked && names.length >= COMPARED;
  }
}

async function pollComparison(mine) {
  const names = compared();
  drawChosen();
  if (!names.length) return;
  const query = new URLSearchParams(names.map((name) => ["name", name]));
  const answer = await ask(`api/compare?${query}`, compareTag);
  if (mine !== asking || answer.status === 304) return;
  if (answer.status !== 200 || !answer.body) throw new Error(`the server said ${answer.status}`);
  compareTag = answer.tag;
  comparison = answer.body;
  drawComparison();
}

// In target evaluations if every study knows what one costs; else in the unit that all of them have.
function commonUnit(curves) {
  if (curves.every((curve) => curve.target)) return { words: "target evaluations", of: (curve) => curve.target };
  const units = new Set(curves.map((curve) => curve.unit));
  const said = { cost: "cost units", seconds: "seconds", targets: "target evaluations" };
  return { words: units.size === 1 ? said[[...units][0]] : "in the unit of each study", of: () => 1 };
}

function drawComparison() {
  if (!window.Plotly || !comparison || at("comparison").hidden) return;
  const single = comparison.curves.filter((curve) => curve.direction !== null); // several objectives have no best value
  const [first] = single;
  const same = single.filter((curve) => curve.direction === first?.direction);
  const drawn = same.filter((curve) => curve.x.length);
  const notes = single.length > same.length ? [`Only studies that ${first.direction} are shown.`] : [];
  if (comparison.curves.length > single.length) notes.push("Studies with several objectives are left out.");
  const missing = same.filter((curve) => !curve.x.length).map((curve) => curve.name);
  if (missing.length) notes.push(`Without a result at the target yet: ${missing.join(", ")}.`);
  at("compare-note").textContent = notes.join(" ");
  toggle("compare", drawn.length > 0, "None of these studies has a result at the target yet.");
  if (!drawn.length) return;
  const colors = theme();
  const unit = commonUnit(drawn);
  const values = drawn.flatMap((curve) => curve.y);
  const isLog = at("compare-scale").value === "log" && Math.min(...values) > 0;
  const turn = first.direction === "maximize" ? 1 : -1;
  const top = turn * Math.max(...values.map((value) => turn * value));
  const useful = at("compare-scale").value === "useful" ? usefulRange([top], values, first.direction) : null;
  const traces = drawn.map((curve, i) => {
    const [color, dash] = LOOKS[comparison.curves.indexOf(curve) % LOOKS.length];
    return {
      x: curve.x.map((spent) => spent / unit.of(curve)), y: curve.y, mode: "lines", name: label(curve.name, MAX_NAME),
      line: { shape: "hv", color, dash, width: 2.5 }, hoverinfo: "text",
      text: curve.x.map((spent, k) => `${label(curve.name, MAX_NAME)}<br>best ${words(curve.y[k])}<br>spent ${amount(spent / unit.of(curve))}`),
    };
  });
  draw("compare", traces, layout(colors, {
    height: 380, showlegend: true, legend: { orientation: "h", y: 1.08, font: { color: colors.ink } },
    xaxis: axis(colors, `budget spent (${unit.words})`, { rangemode: "tozero" }),
    yaxis: axis(colors, `best value at the target (${turn > 0 ? "higher" : "lower"} is better)`, isLog ? { type: "log" } : useful ? { range: useful.range } : {}),
  }));
}

at("compare-scale").addEventListener("change", drawComparison);
