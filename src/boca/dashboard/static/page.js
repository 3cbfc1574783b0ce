// The live page.  It asks the server every second for what changed and draws that.
//
// Names, options and messages are the user's: they enter the document as text, never as markup.  Plotly reads some
// markup in labels, so what goes there is escaped.  Points are lists in the order of the parameters, so that no name
// becomes the key of an object.
"use strict";

const EVERY = 1000; // milliseconds between two requests
const MAX_FIDELITIES = 6; // rows in the chart: more would be too low to read
const MAX_COLUMNS = 8; // of parameters in a table
const ROWS = 25; // of the table of trials on one page
const PACE_AFTER = 10; // seconds on the page before it says how long the budget lasts
const MAX_NAME = 24; // characters of a name or an option under the pointer and beside an axis
const VALUE_DIGITS = 6; // of values and points, which are compared and typed in again; amounts have three
// Plotly has a button that sends a chart to its maker's server. A study stays on this machine.
const SETTINGS = {
  displayModeBar: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud"],
};

const at = (id) => document.getElementById(id);

let shown = null; // the study on the page: {name, key, event, tag, data, wasThere, trials, ages}
let listTag = null;
const charts = { key: null, timer: null, restsUntil: 0 }; // of which study they are, and when they are drawn again
let timer = null;
const problems = { link: null, data: null }; // the notice: of the server, of the database or the study
let asking = 0; // the number of the last request; an answer to an earlier one is ignored

// Words and numbers --------------------------------------------------------------------------------------------------

function make(tag, className, ...inner) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inner.map((part) => (part instanceof Node ? part : document.createTextNode(String(part)))));
  return element;
}

function words(value, digits = VALUE_DIGITS) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return String(Number(value.toPrecision(digits)));
}

// A cost or a time to three digits; its whole part is never rounded, and has commas from 10,000 on.
function amount(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e13 || size < 1e3) return words(value, 3);
  const text = value.toFixed(0);
  return size < 1e4 ? text : text.replace(/\B(?=(\d{3})+$)/g, ",");
}

function duration(seconds) {
  const whole = Math.floor(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

function withUnit(value, unit) {
  if (value === null || value === undefined) return "not known yet";
  return `${amount(value)} ${{ targets: "target evaluations", seconds: "s", cost: "cost units" }[unit]}`;
}

// A mean to the last digit that its deviation allows: two digits of the deviation.
function expected(mean, std) {
  const places = 1 - Math.floor(Math.log10(std));
  if (!(std > 0) || places > 8 || Math.abs(mean) >= 1e9) return [words(mean), `± ${words(std, 2)}`];
  return [mean.toFixed(Math.max(places, 0)), `± ${std.toFixed(Math.max(places, 0))}`];
}

function label(text, most = 40) {
  const plain = String(text);
  const cut = plain.length > most ? `${plain.slice(0, most - 1)}…` : plain;
  return cut.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", " ");
}

// Requests -------------------------------------------------------------------------------------------------------------

function wanted() {
  const hash = location.hash;
  if (!hash.startsWith("#/")) return null;
  try {
    return decodeURIComponent(hash.slice(2));
  } catch {
    return null;
  }
}

async function ask(address, tag) {
  const headers = tag ? { "If-None-Match": tag } : {};
  const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(15000) });
  const body = answer.status === 304 ? null : await answer.json().catch(() => null);
  return { status: answer.status, tag: answer.headers.get("ETag"), body };
}

async function poll() {
  clearTimeout(timer);
  const mine = ++asking;
  const name = wanted();
  let pause = EVERY;
  try {
    await (name === null ? pollStudies(mine) : pollStudy(name, mine));
    if (mine === asking) linked(true);
  } catch (error) {
    if (mine === asking) linked(false, error);
    pause = 2 * EVERY;
  }
  if (mine === asking) timer = setTimeout(poll, pause);
}

async function pollList(mine) {
  const answer = await ask("api/studies", listTag);
  if (mine !== asking || answer.status === 304) return;
  if (answer.status !== 200 || !answer.body) throw new Error(`the server said ${answer.status}`);
  listTag = answer.tag;
  drawList(answer.body);
}

async function pollStudies(mine) {
  await pollList(mine);
  await pollComparison(mine);
}

async function pollStudy(name, mine) {
  if (!shown || shown.name !== name) forget(name);
  const query = new URLSearchParams({ name });
  if (shown.key) {
    query.set("key", shown.key);
    query.set("since", shown.event);
  }
  const answer = await ask(`api/study?${query}`, shown.tag);
  if (mine !== asking) return;
  if (answer.status === 304) return age();
  if (answer.status === 404 || answer.status === 422) return missing(name, answer.body);
  if (answer.status !== 200 || !answer.body) throw new Error(`the server said ${answer.status}`);
  shown.tag = answer.tag;
  take(answer.body);
}

function forget(name) {
  shown = { name, key: null, event: 0, tag: null, data: null, wasThere: false, trials: [], ages: [] };
  sorting.page = 0;
  at("study").hidden = true;
}

function take(data) {
  const isAnother = data.key !== shown.key || data.event < shown.event; // a backup may have been put in its place
  if (isAnother) [shown.trials, shown.pace] = [[], null];
  const { number, state, value, told, paid, at_target: target, cost, phase, y, x, z } = data.trials;
  number.forEach((n, i) => {
    shown.trials[n] = {
      state: state[i], value: value[i], told: told[i], paid: paid[i], target: target[i], z: z.map((column) => column[i]),
      cost: cost[i], phase: phase[i], y: y.map((column) => column[i]), x: x.map((column) => column[i]),
    };
  });
  for (const [n, paidNow] of data.repriced) shown.trials[n].paid = paidNow;
  const isNew = number.length > 0 || isAnother;
  shown.key = data.key;
  shown.event = data.event;
  shown.data = data;
  drawStudy(isNew);
}

function linked(isThere, error) {
  const pill = at("link");
  pill.textContent = isThere ? "live" : "no connection";
  pill.className = isThere ? "pill live" : "pill lost";
  pill.title = isThere ? "" : String(error);
  tell("link", isThere ? null : "The server does not answer. This page continues as soon as it does.");
}

function tell(kind, text) {
  problems[kind] = text;
  const said = problems.link ?? problems.data;
  at("notice").hidden = said === null;
  at("notice").textContent = said ?? "";
}

function trouble(text) {
  tell("data", text ? `${text} The page shows what it read before, and continues when the database is back.` : null);
}

function missing(name, body) {
  const wasThere = shown.wasThere || shown.data !== null;
  const gone = "This study was deleted. If it is created again, it is shown again.";
  tell("data", body?.trouble ?? (wasThere ? gone : (body?.error ?? "There is no study with this name.")));
  forget(name);
  isInside(true);
  shown.wasThere = wasThere;
  at("list").hidden = true;
  document.title = "boca";
}

function isInside(aStudy) {
  at("place").hidden = aStudy;
  at("back").hidden = !aStudy;
}

// The list -----------------------------------------------------------------------------------------------------------

function drawList(data) {
  at("study").hidden = true;
  at("list").hidden = false;
  at("place").textContent = data.place;
  isInside(false);
  document.title = "boca: studies";
  trouble(data.trouble);
  at("none").hidden = data.studies.length > 0;
  at("studies").hidden = data.studies.length === 0;
  const rows = data.studies.map((study) => {
    const link = make("a", "", study.name);
    link.href = `#/${encodeURIComponent(study.name)}`;
    if (study.broken) return [cell(""), cell(link, "name"), spanning(study.broken, 6)];
    const share = study.total ? `${words((100 * study.spent) / study.total, 3)} %` : "–";
    return [
      chooser(study.name), cell(link, "name"), cell(study.trials, "num"), cell(study.running, "num"),
      cell(study.failed, study.failed ? "num failed" : "num"), cell(study.front ? `front of ${study.front}` : words(study.best), "num"),
      cell(share, "num"), cell(new Date(1000 * study.created).toLocaleString(), "num"),
    ];
  });
  fill(at("studies"), ["compare", "name", "trials", "running", "failed", "best", "budget spent", "created"], rows);
}

function cell(content, className) {
  return make("td", className, content);
}

function spanning(text, columns) {
  const wide = cell(text, "failed");
  wide.colSpan = columns;
  return wide;
}

function fill(table, heads, rows) {
  const head = make("tr", "", ...heads.map((text) => {
    const one = make("th", "", text);
    one.title = text;
    return one;
  }));
  table.replaceChildren(make("thead", "", head), make("tbody", "", ...rows.map((cells) => make("tr", "", ...cells))));
}

// A study ------------------------------------------------------------------------------------------------------------

function drawStudy(isNew) {
  const data = shown.data;
  at("list").hidden = true;
  at("study").hidden = false;
  isInside(true);
  document.title = `boca: ${data.name}`;
  trouble(data.trouble);
  at("name").textContent = data.name;
  drawAbout(data);
  drawBest(data);
  drawAdvice(data);
  drawBudget(data);
  drawRunning(data);
  drawFailures(data);
  if (isNew) drawTrials();
  const isMoved = JSON.stringify(data.importance) !== shown.importance;
  shown.importance = JSON.stringify(data.importance);
  if (isNew || isMoved) soonCharts();
}

function drawAbout(data) {
  const { trials, complete, running, failed, at_target: target, queued } = data.counts;
  const parts = [
    data.aims, data.strategy, count(trials, "trial"),
    `${complete} complete (${target} at the target)`, `${running} running`, `${failed} failed`,
  ];
  if (queued) parts.push(`${queued} queued`);
  at("about").textContent = parts.join(" · ");
}

function point(names, values) {
  const list = make("dl");
  names.forEach((one, i) => list.append(make("dt", "", one.name ?? one), make("dd", "", words(values[i]))));
  return list;
}

function opener(number) {
  const button = make("button", "trial", number);
  button.type = "button";
  button.addEventListener("click", () => openTrial(number));
  return button;
}

const MAX_MEMBERS = 12; // of a front in its card; the table of trials and the chart have them all

function drawFront(data) {
  if (!data.front.length) return at("best").replaceChildren(make("p", "note", "No trial is on the front yet."));
  const list = make("dl");
  for (const { number, values } of data.front.slice(0, MAX_MEMBERS)) {
    list.append(make("dt", "", opener(number)), make("dd", "", data.objectives.map(([name], j) => `${name} ${words(values[j], 4)}`).join(", ")));
  }
  const value = make("div", "big", `${data.front.length} on the front`);
  value.id = "best-value";
  const more = data.front.length - MAX_MEMBERS;
  at("best").replaceChildren(value, list, ...(more > 0 ? [make("p", "note", `and ${more} more`)] : []));
}

function drawBest(data) {
  if (data.objectives.length) return drawFront(data);
  if (!data.best) {
    at("best").replaceChildren(make("p", "note", "No trial is complete at the target yet."));
    return;
  }
  const value = make("div", "big", words(data.best.value));
  value.id = "best-value";
  const note = make("p", "note", "trial ", opener(data.best.number));
  at("best").replaceChildren(value, note, point(data.parameters, data.best.x));
}

function drawAdvice(data) {
  const advice = data.advice;
  if (!advice) return at("advice").replaceChildren(make("p", "note", "There is no recommendation before the first result."));
  const late = advice.is_current ? "" : advice.point ? " · being updated" : "";
  if (!advice.point) {
    const text = advice.words ?? "Being computed …";
    return at("advice").replaceChildren(make("p", "note", advice.is_current || !advice.words ? text : `${text} (before the last result)`));
  }
  const { x, mean, std, verified, feasible } = advice.point;
  const [middle, spread] = expected(mean, std);
  const value = make("div", "big", middle, " ", make("small", "", spread));
  const within = feasible === undefined ? "" : `, within all limits with probability ${feasible.toPrecision(2)}`;
  const note = make("p", "note", (verified ? "was run at the target" : "was not run at the target yet") + within + late);
  at("advice").replaceChildren(value, note, point(data.parameters, x));
}

function drawBudget(data) {
  const { unit, total, spent, reserved, left, limit, target, is_estimate: isEstimate } = data.budget;
  const inTargets = limit?.unit === "targets";
  const about = isEstimate && inTargets ? "about " : "";
  const parts = [spending(data.budget, about)];
  if (total !== null) {
    const share = `${words(Math.min(100, (100 * spent) / total), 3)} %`;
    const said = ["of the budget spent", timeLeft(data)].filter(Boolean).join(" · ");
    const first = make("div", "big", share, " ", make("small", "", said));
    first.id = "budget-share";
    parts.unshift(first);
    parts[1].className = "note";
    const bar = make("div", "bar");
    for (const [kind, share] of [["spent", spent], ["reserved", reserved ?? 0]]) {
      const piece = make("span", kind);
      piece.style.width = `${Math.max(0, Math.min(100, (100 * share) / total))}%`;
      bar.append(piece);
    }
    parts.push(bar);
  }
  const list = make("dl");
  const line = (kind, name, text) => list.append(make("dt", "", make("span", `key ${kind}`), name), make("dd", "", text));
  line("spent", "spent", withUnit(spent, unit));
  line("reserved", "reserved", withUnit(reserved, unit));
  line("left", "left", total === null ? "no limit" : `${about}${withUnit(left, unit)}`);
  parts.push(list);
  if (target !== null && unit !== "targets") {
    parts.push(make("p", "note", `A trial at the target costs ${isEstimate ? "about " : ""}${withUnit(target, unit)}.`));
  }
  at("budget").replaceChildren(...parts);
}

// How long the budget lasts at the pace that this page has seen; nothing while no trial runs.
function timeLeft({ budget: { spent, left }, counts }) {
  const now = performance.now();
  shown.pace ??= { since: now, spent };
  const [seconds, gained] = [(now - shown.pace.since) / 1000, spent - shown.pace.spent];
  if (!counts.running || !(gained > 0) || seconds < PACE_AFTER) return "";
  return `about ${duration(Math.max(left, 0) / (gained / seconds))} left at this pace`;
}

// The amount: in target evaluations if the budget was given so, else in the unit that is counted.
function spending({ unit, total, spent, limit, target }, about) {
  const big = make("div", "big");
  if (total === null) big.append(withUnit(spent, unit), " ", make("small", "", "spent, no limit"));
  else if (limit?.unit === "targets" && target) {
    const number = unit === "targets" ? spent : spent / target;
    big.append(`${about}${amount(number)}`, " ", make("small", "", `of ${withUnit(limit.amount, "targets")} spent`));
  } else big.append(amount(spent), " ", make("small", "", `of ${withUnit(total, unit)} spent`));
  return big;
}

function nothing(id, text) {
  at(id).replaceChildren(make("p", "note", text));
}

function table(id, heads, rows) {
  const made = make("table");
  fill(made, heads, rows);
  at(id).replaceChildren(make("div", "scroll", made));
}

function coordinates(data) {
  const fidelities = data.fidelities.slice(0, MAX_COLUMNS);
  const parameters = data.parameters.slice(0, MAX_COLUMNS);
  return {
    heads: [...fidelities, ...parameters].map((p) => p.name),
    cells: (row) => [
      ...fidelities.map((_, i) => cell(words(row.z[i], 5), "num")),
      ...parameters.map((_, i) => cell(words(row.x[i], 5), "num")),
    ],
  };
}

function drawRunning(data) {
  at("running-count").textContent = data.counts.running > data.running.length ? `${data.running.length} of ${data.counts.running}` : "";
  shown.ages = [];
  if (!data.running.length) return nothing("running", "No trial is running.");
  const { heads, cells } = coordinates(data);
  const rows = data.running.map((row) => {
    const old = cell("", "num");
    const since = performance.now() - 1000 * row.age;
    shown.ages.push({ cell: old, since });
    const notes = [];
    if (row.attempt) notes.push(`attempt ${row.attempt + 1}`);
    if (row.is_overdue) notes.push("its driver does not answer");
    if (row.host !== null) notes.push(`process ${row.process} on ${row.host}`);
    return [cell(opener(row.number), "num"), old, cell(amount(row.cost), "num"), ...cells(row), cell(notes.join(", "), "waiting")];
  });
  table("running", ["trial", "age", "cost", ...heads, "note"], rows);
  age();
}

function age() {
  for (const { cell: old, since } of shown.ages) old.textContent = duration((performance.now() - since) / 1000);
}

function drawFailures(data) {
  const { failed } = data.counts;
  at("failed-count").textContent = failed > data.failures.length ? `the last ${data.failures.length} of ${failed}` : "";
  if (!data.failures.length) return nothing("failures", "None.");
  if (data.causes.length < data.failures.length) {
    at("failed-count").textContent = `${failed} by cause`;
    const rows = data.causes.map((cause) => [
      cell(`${cause.count}`, "num"), cell(opener(cause.last), "num"), cell(cause.message, "message failed"),
    ]);
    return table("failures", ["trials", "last", "message"], rows);
  }
  const { heads, cells } = coordinates(data);
  const rows = data.failures.map((row) => [
    cell(opener(row.number), "num"), cell(row.message ?? "", "message failed"), ...cells(row),
  ]);
  table("failures", ["trial", "message", ...heads], rows);
}

// The table of all trials: one page of rows is in the document, however many trials there are.

const sorting = { by: "trial", isDown: true, page: 0 };

// The keys differ even if a parameter is called as a column of the table is.
function columns() {
  const of = (list, read) => list.map((p, i) => ({ head: p.name, key: `${read}${i}`, value: (t) => t[read][i] }));
  return [
    { head: "trial", key: "trial", value: (t) => t.number }, { head: "state", key: "state", value: (t) => t.state },
    { head: "value", key: "value", value: (t) => t.value }, { head: "cost", key: "cost", value: (t) => t.cost },
    { head: "phase", key: "phase", value: (t) => t.phase },
    ...of(shown.data.objectives.map(([name]) => ({ name })), "y"), ...of(shown.data.fidelities, "z"), ...of(shown.data.parameters, "x"),
  ];
}

const isGone = (value) => value === null || value === undefined;

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a) < String(b) ? -1 : Number(String(a) > String(b));
}

function chosenTrials(all) {
  const state = at("state").value;
  const text = at("contains").value.toLowerCase();
  const by = all.find((column) => column.key === sorting.by) ?? all[0];
  const turn = sorting.isDown ? -1 : 1;
  const order = (one, other) => {
    const [a, b] = [by.value(one), by.value(other)];
    if (isGone(a) || isGone(b)) return Number(isGone(a)) - Number(isGone(b)) || one.number - other.number; // last
    return turn * compare(a, b) || one.number - other.number;
  };
  return shown.trials
    .map((trial, number) => ({ ...trial, number }))
    .filter((t) => (!state || t.state === state) && (!at("only-target").checked || t.target))
    .filter((t) => !text || all.some((column) => words(column.value(t)).toLowerCase().includes(text)))
    .sort(order);
}

function drawTrials() {
  if (!shown?.data) return;
  for (const id of ["filter", "pages", "find"]) at(id).hidden = shown.trials.length === 0;
  at("number").max = Math.max(shown.trials.length - 1, 0);
  at("rows-count").textContent = "";
  if (!shown.trials.length) return nothing("latest", "There are no trials yet.");
  const all = columns();
  const found = chosenTrials(all);
  const last = Math.max(Math.ceil(found.length / ROWS) - 1, 0);
  sorting.page = Math.min(Math.max(sorting.page, 0), last);
  at("rows-count").textContent = found.length === shown.trials.length ? "" : `${found.length} of ${shown.trials.length}`;
  at("page-of").textContent = `page ${sorting.page + 1} of ${last + 1}`;
  at("newer").disabled = sorting.page === 0;
  at("older").disabled = sorting.page === last;
  const seen = all.slice(0, 5 + 2 * MAX_COLUMNS);
  const kinds = { failed: "num failed", running: "num waiting", complete: "num" };
  const rows = found.slice(sorting.page * ROWS, (sorting.page + 1) * ROWS).map((t) => [
    cell(opener(t.number), "num"), cell(t.state, kinds[t.state]), cell(words(t.value), "num"), cell(amount(t.cost), "num"),
    ...seen.slice(4).map((column) => cell(words(column.value(t), 5), "num")),
  ]);
  table("latest", seen.map((column) => column.head), rows);
  at("latest").querySelectorAll("th").forEach((head, i) => makeSortable(head, seen[i].key, i));
}

function makeSortable(head, key, i) {
  const isIt = key === sorting.by;
  const arrow = isIt ? (sorting.isDown ? " ↓" : " ↑") : "";
  const button = make("button", "", `${head.textContent}${arrow}`);
  button.type = "button";
  button.addEventListener("click", () => {
    Object.assign(sorting, { by: key, isDown: isIt && !sorting.isDown, page: 0 });
    drawTrials();
    at("latest").querySelectorAll("th button")[i].focus();
  });
  head.setAttribute("aria-sort", isIt ? (sorting.isDown ? "descending" : "ascending") : "none");
  head.replaceChildren(button);
}

// A text that a spreadsheet would take for a formula begins with an apostrophe.
function csv(value) {
  if (isGone(value)) return "";
  const text = typeof value === "number" ? String(value) : String(value).replace(/^(?=[=+\-@\t\r])/, "'");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asCsv() {
  const all = columns();
  const rows = chosenTrials(all).map((t) => all.map((column) => csv(column.value(t))));
  return [all.map((column) => csv(column.head)), ...rows].map((row) => row.join(",")).join("\r\n");
}

function download() {
  const link = make("a", "");
  link.href = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  link.download = `${shown.name.replace(/[^\w.-]+/g, "_")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Charts -------------------------------------------------------------------------------------------------------------

function soonCharts() {
  // thousands of points take a while to draw: the charts then rest three times as long, the rest of the page does not
  clearTimeout(charts.timer);
  charts.timer = setTimeout(drawCharts, charts.key === shown.key ? charts.restsUntil - performance.now() : 0);
}

function drawCharts() {
  clearTimeout(charts.timer);
  if (!window.Plotly || !shown?.data) return;
  const began = performance.now();
  drawProgress(shown.data);
  drawPlane(shown.data);
  drawQueried(shown.data);
  drawImportance(shown.data);
  askTimeline(shown).catch(() => {}); // the next answer on the study says what is wrong
  charts.key = shown.key;
  charts.restsUntil = performance.now() + 3 * (performance.now() - began);
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: color("ink"), quiet: color("quiet"), grid: color("grid"), line: color("line"), accent: color("accent"), soft: color("soft"), bad: color("bad"), wait: color("wait"), card: color("card") };
}

function layout(colors, more) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colors.quiet, size: 12, family: "system-ui, sans-serif" },
    margin: { l: 64, r: 14, t: 8, b: 46 },
    hovermode: "closest", dragmode: false,
    hoverlabel: { bgcolor: colors.card, bordercolor: colors.line, font: { color: colors.ink, size: 12 }, align: "left" },
    showlegend: false,
    ...more,
  };
}

function axis(colors, title, more) {
  return {
    title: { text: title, standoff: 10 }, gridcolor: colors.grid, linecolor: colors.line, zeroline: false,
    tickcolor: colors.line, automargin: true, fixedrange: true, ...more,
  };
}

function draw(id, traces, figure) {
  window.Plotly.react(at(id), traces, figure, SETTINGS);
  const chart = at(id);
  if (chart.dataset.listens) return;
  chart.dataset.listens = "yes";
  new ResizeObserver(() => fit(chart)).observe(chart.parentElement);
  chart.on("plotly_click", (event) => {
    const number = event.points[0]?.customdata;
    if (Number.isInteger(number)) openTrial(number);
  });
}

function fit(chart) {
  requestAnimationFrame(() => {
    const isWrong = Math.abs((chart._fullLayout?.width ?? 0) - chart.clientWidth) > 1;
    if (chart.clientWidth > 0 && isWrong) window.Plotly.Plots.resize(chart);
  });
}

function toggle(id, isThere, text) {
  at(id).hidden = !isThere;
  at(id).previousElementSibling.hidden = !isThere; // its legend
  at(`no-${id}`).hidden = isThere;
  at(`no-${id}`).textContent = text;
}

function staircase(data) {
  // the results at the target, and the best of them, against the budget spent when they came
  // with several objectives, the value of a trial is the hypervolume after it
  const volumes = new Map(data.volumes);
  const isFront = data.objectives.length > 0;
  const better = isFront || data.direction === "maximize" ? (a, b) => a > b : (a, b) => a < b;
  const finished = shown.trials.map((trial, number) => ({ ...trial, number })).filter((t) => t.state !== "running");
  finished.sort((a, b) => a.told - b.told);
  const seen = { x: [], y: [], number: [] };
  const best = { x: [], y: [] };
  let spent = 0;
  let top = null;
  for (const trial of finished) {
    spent += trial.paid;
    if (trial.state !== "complete" || !trial.target || (isFront && !volumes.has(trial.number))) continue;
    if (isFront) trial.value = volumes.get(trial.number);
    seen.x.push(spent);
    seen.y.push(trial.value);
    seen.number.push(trial.number);
    if (top === null || better(trial.value, top)) {
      top = trial.value;
      best.x.push(spent);
      best.y.push(top);
    }
  }
  if (top !== null) {
    best.x.push(spent);
    best.y.push(top);
  }
  return { seen, best, spent };
}

// A budget that was given in seconds or cost units stays in these; any other is shown in target evaluations.
function counted({ unit, limit, target }) {
  const inTargets = !limit || limit.unit === "targets";
  if (unit === "targets" || (inTargets && target)) return { unit: "target evaluations", one: unit === "targets" ? 1 : target };
  return { unit: { cost: "cost units", seconds: "seconds" }[unit], one: 1 };
}

// The part of the axis without results that are far from typical, as in the plots; null if that is all of it.
function usefulRange(best, values, direction) {
  const turn = direction === "maximize" ? 1 : -1;
  const top = turn * best[best.length - 1];
  const distance = (value) => top - turn * value;
  const positive = values.map(distance).filter((d) => d > 0).sort((a, b) => a - b);
  if (!positive.length) return null;
  const limit = 6 * positive[Math.floor((positive.length - 1) / 2)];
  const reach = Math.max(...[...values, ...best].map(distance).filter((d) => d <= limit));
  const beyond = values.filter((value) => distance(value) > limit).length;
  if (!beyond || !Number.isFinite(reach)) return null;
  const ends = [turn * (top + 0.06 * reach), turn * (top - 1.06 * reach)];
  return { range: ends.sort((a, b) => a - b), beyond };
}

function drawProgress(data) {
  const { seen, best, spent } = staircase(data);
  toggle("progress", seen.x.length > 0, "No trial is complete at the target yet.");
  if (!seen.x.length) return;
  const colors = theme();
  const { unit, one } = counted(data.budget);
  const end = Math.max(data.budget.total ?? 0, spent) / one || 1;
  const useful = at("scale").value === "useful" ? usefulRange(best.y, seen.y, data.objectives.length ? "maximize" : data.direction) : null;
  const isLog = at("scale").value === "log" && Math.min(...seen.y) > 0;
  at("beyond").textContent = useful ? `${useful.beyond} worse outside` : at("scale").value === "log" && !isLog ? "no log axis: not all values are positive" : "";
  const traces = [
    { x: best.x.map((v) => v / one), y: best.y, mode: "lines", name: "best so far", line: { shape: "hv", color: colors.accent, width: 2 }, hoverinfo: "skip" },
    {
      x: seen.x.map((v) => v / one), y: seen.y, mode: "markers", name: "trials at the target", customdata: seen.number,
      marker: { color: colors.accent, size: 6, opacity: 0.55 }, hoverinfo: "text",
      text: seen.number.map((n, i) => `trial ${n}<br>${data.objectives.length ? "hypervolume" : "value"} ${words(seen.y[i])}<br>spent ${amount(seen.x[i] / one)}`),
    },
  ];
  draw("progress", traces, layout(colors, {
    height: 340,
    xaxis: axis(colors, `budget spent (${unit})`, { range: [0, 1.02 * end] }),
    yaxis: axis(colors, data.objectives.length ? "hypervolume of the front" : `value at the target (${data.direction === "maximize" ? "higher" : "lower"} is better)`, isLog ? { type: "log" } : useful ? { range: useful.range } : {}),
  }));
}

// The trials in the plane of the first two objectives.
function drawPlane(data) {
  at("front-card").hidden = data.objectives.length === 0;
  if (!data.objectives.length) return;
  const colors = theme();
  const members = new Set(data.front.map(({ number }) => number));
  const kinds = [
    ["below the target", (t) => !t.target, { color: colors.soft, size: 6 }],
    ["at the target", (t) => t.target && !members.has(t.number), { color: colors.wait, size: 7, symbol: "circle-open" }],
    ["on the front", (t) => members.has(t.number), { color: colors.accent, size: 9 }],
  ];
  const told = shown.trials.map((trial, number) => ({ ...trial, number })).filter((t) => t.state === "complete" && t.y.every((v) => v !== null));
  const traces = kinds.map(([name, holds, marker]) => {
    const chosen = told.filter(holds);
    return {
      x: chosen.map((t) => t.y[0]), y: chosen.map((t) => t.y[1]), mode: "markers", name, marker, customdata: chosen.map((t) => t.number),
      hoverinfo: "text", text: chosen.map((t) => [`trial ${t.number}`, ...data.objectives.map(([one], j) => `${label(one, MAX_NAME)} ${words(t.y[j])}`)].join("<br>")),
    };
  });
  const title = ([name, towards]) => `${label(name, MAX_NAME)} (${towards === "maximize" ? "higher" : "lower"} is better)`;
  draw("front", traces, layout(colors, { height: 340, xaxis: axis(colors, title(data.objectives[0])), yaxis: axis(colors, title(data.objectives[1])) }));
}

function drawQueried(data) {
  const fidelities = data.fidelities.slice(0, MAX_FIDELITIES);
  const isThere = fidelities.length > 0 && shown.trials.length > 0;
  toggle("queried", isThere, fidelities.length ? "There are no trials yet." : "This study has no fidelities: every trial is at the target.");
  if (!isThere) return;
  const colors = theme();
  const kinds = [
    ["below the target", (t) => t.state === "complete" && !t.target, { color: colors.soft, size: 6 }],
    ["at the target", (t) => t.state === "complete" && t.target, { color: colors.accent, size: 7 }],
    ["failed", (t) => t.state === "failed", { color: colors.bad, size: 7, symbol: "x" }],
    ["running", (t) => t.state === "running", { color: colors.wait, size: 8, symbol: "circle-open", line: { width: 2 } }],
  ];
  const gap = 0.12 / fidelities.length;
  const height = (1 - gap * (fidelities.length - 1)) / fidelities.length;
  const traces = [];
  const figure = layout(colors, {
    height: Math.max(340, 150 * fidelities.length + 60), shapes: [],
    xaxis: axis(colors, "trial", { anchor: fidelities.length > 1 ? `y${fidelities.length}` : "y", range: [-1, Math.max(shown.trials.length, 10)], tickformat: "d" }),
  });
  fidelities.forEach((fidelity, j) => {
    const suffix = j === 0 ? "" : String(j + 1);
    const codes = fidelity.type === "choice" ? fidelity.choices : null;
    const place = (value) => (codes ? codes.indexOf(value) : value);
    figure[`yaxis${suffix}`] = vertical(colors, fidelity, 1 - j * (height + gap), height);
    const target = place(data.target[j]);
    figure.shapes.push({
      type: "line", layer: "below", xref: "paper", x0: 0, x1: 1, yref: `y${suffix}`, y0: target, y1: target,
      line: { color: colors.quiet, width: 1, dash: "dot" },
    });
    for (const [name, holds, marker] of kinds) {
      const chosen = shown.trials.map((trial, number) => ({ trial, number })).filter(({ trial }) => holds(trial));
      if (!chosen.length) continue;
      traces.push({
        x: chosen.map((c) => c.number), y: chosen.map((c) => place(c.trial.z[j])), yaxis: `y${suffix}`,
        mode: "markers", name, marker, customdata: chosen.map((c) => c.number),
        hoverinfo: "text", text: chosen.map(({ trial, number }) => hover(data, trial, number)),
      });
    }
  });
  draw("queried", traces, figure);
}

// The shares are those of the model behind the recommendation, the most important parameter first.
function drawImportance(data) {
  const found = data.importance;
  const text = data.advice?.words ?? (data.advice?.is_current ? "This model has no importance of single parameters." : "Being computed …");
  toggle("importance", Boolean(found), data.advice ? text : "There is no model before the first result.");
  if (!found) return;
  const colors = theme();
  const names = found.names.map((name) => label(name, MAX_NAME));
  const rows = names.map((_, i) => i);
  const [target, ...others] = found.views;
  const spread = (share) => ({ type: "data", symmetric: false, array: share.high.map((v, i) => v - share.middle[i]), arrayminus: share.low.map((v, i) => share.middle[i] - v), thickness: 1.2, width: 0, color: colors.ink });
  const said = (share, kind) => share.middle.map((v, i) => `${names[i]}: ${kind} ${words(v, 2)}${found.has_interval ? ` (${words(share.low[i], 2)} to ${words(share.high[i], 2)})` : ""}`);
  const bar = (share, kind, width, color) => ({ type: "bar", orientation: "h", x: share.middle, y: rows, width, marker: { color }, hovertext: said(share, kind), hoverinfo: "text" });
  const traces = [bar(target.total, "total", 0.62, colors.soft), bar(target.first, "first-order", 0.3, colors.accent)];
  if (found.has_interval) traces[0].error_x = spread(target.total);
  const symbols = ["triangle-up-open", "square-open", "diamond-open"];
  others.forEach((view, k) => {
    const off = others.length > 1 ? 0.3 * ((2 * (k + 1)) / (others.length + 1) - 1) : 0.2;
    traces.push({ mode: "markers", x: view.total.middle, y: rows.map((i) => i + off), marker: { symbol: symbols[k % 3], size: 8, color: colors.wait }, hovertext: said(view.total, `total, ${label(view.words)}`), hoverinfo: "text" });
  });
  const marks = others.map((view, k) => `${["△", "□", "◇"][k % 3]} ${view.words}`);
  at("importance-note").textContent = ["share of the variance of f", ...marks].join(" · ") + (found.is_warped ? " · of warped values, as the model sees them" : "");
  draw("importance", traces, layout(colors, {
    height: 90 + 24 * rows.length, barmode: "overlay",
    xaxis: axis(colors, "share of the variance of f", { range: [0, 1] }),
    yaxis: axis(colors, "", { tickvals: rows, ticktext: names, range: [rows.length - 0.4, -0.6], showgrid: false }),
  }));
}

function hover(data, trial, number) {
  const lines = data.fidelities.slice(0, MAX_FIDELITIES).map((f, i) => `${label(f.name, MAX_NAME)} ${label(words(trial.z[i], 5), MAX_NAME)}`);
  return [`trial ${number}, ${trial.state}`, ...lines, `value ${words(trial.value)}`].join("<br>");
}

function vertical(colors, fidelity, top, height) {
  const domain = [Math.max(top - height, 0), Math.min(top, 1)];
  const title = label(fidelity.name, MAX_NAME);
  if (fidelity.type === "choice") {
    const codes = fidelity.choices.map((_, i) => i);
    return axis(colors, title, {
      domain, tickvals: codes, ticktext: fidelity.choices.map((c) => label(words(c), MAX_NAME)), range: [-0.6, codes.length - 0.4],
    });
  }
  const scale = fidelity.log ? Math.log10 : (v) => v;
  const [low, high] = [scale(fidelity.low), scale(fidelity.high)];
  const edge = 0.07 * (high - low);
  return axis(colors, title, { domain, type: fidelity.log ? "log" : "linear", range: [low - edge, high + edge], nticks: 5 });
}

// One trial ----------------------------------------------------------------------------------------------------------

async function openTrial(number) {
  const detail = at("detail");
  detail.replaceChildren(make("h3", "", `Trial ${number}`), make("p", "note", "Loading …"));
  if (!at("trial").open) at("trial").showModal();
  try {
    const answer = await ask(`api/trial?${new URLSearchParams({ name: shown.name, number })}`);
    if (answer.status !== 200) throw new Error(answer.body?.error ?? `the server said ${answer.status}`);
    detail.replaceChildren(...describe(answer.body));
  } catch (error) {
    detail.replaceChildren(make("h3", "", `Trial ${number}`), make("p", "note failed", error.message));
  }
}

function describe(trial) {
  const parts = [make("h3", "", `Trial ${trial.number} · ${trial.state}`)];
  parts.push(make("p", "note", trial.why.reason ?? ""));
  if (trial.message) parts.push(make("pre", "failed", trial.message));
  const facts = [["value", trial.value], ...trial.outcomes, ["cost", amount(trial.cost)], ["seconds", trial.seconds === null ? null : amount(trial.seconds)], ["noise", trial.noise], ["seconds of overhead", amount(trial.overhead)], ["phase", trial.phase], ...trial.notes.map(([name, value]) => [`note ${name}`, value])].filter(([, v]) => v !== null);
  if (trial.attempt) facts.push(["attempt", trial.attempt + 1]);
  facts.push(...clock(trial));
  parts.push(point(facts.map(([name]) => name), facts.map(([, value]) => value)));
  parts.push(make("h2", "", "x"), point(trial.parameters, trial.x));
  if (trial.fidelities.length) parts.push(make("h2", "", `z${trial.at_target ? ", the target" : ""}`), point(trial.fidelities, trial.z));
  const why = Object.entries(trial.why).filter(([name]) => name !== "reason" && name !== "phase");
  if (why.length) parts.push(make("h2", "", "Why"), point(why.map(([name]) => name), why.map(([, value]) => plain(value))));
  if (trial.output) parts.push(make("h2", "", trial.is_cut ? "The end of what it printed" : "What it printed"), make("pre", "", trial.output));
  return parts;
}

function clock(trial) {
  const at = (seconds) => new Date(1000 * seconds).toLocaleString();
  const facts = [["began", trial.began === null ? null : at(trial.began)], ["ended", trial.ended === null ? null : at(trial.ended)]];
  facts.push(["driver", trial.host === null ? null : `process ${trial.process} on ${trial.host}`], ["worker", trial.worker]);
  for (const lost of trial.attempts) facts.push([`attempt ${lost.attempt + 1}`, `${lost.began ?? "?"} on ${lost.host ?? "?"}: ${lost.ending}`]);
  return facts.filter(([, value]) => value !== null);
}

function plain(value) {
  if (value === null || typeof value !== "object") return value;
  const short = (_, inner) => (typeof inner === "number" ? Number(inner.toPrecision(6)) : inner);
  return JSON.stringify(value, short, 1).replace(/\s*\n\s*/g, " ");
}
