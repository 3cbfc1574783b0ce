// When every trial ran, one lane per worker.
"use strict";

const MAX_LANES = 40; // named at the side

// The bars are asked for when the charts are drawn: with every answer they would be most of it.
async function askTimeline(study) {
  const answer = await ask(`api/timeline?${new URLSearchParams({ name: study.name })}`, study.timelineTag);
  if (study !== shown || answer.status === 404 || answer.status === 422) return;
  if (answer.status === 200 && answer.body) [study.timelineTag, study.timeline] = [answer.tag, answer.body.timeline];
  if (study.timeline !== undefined) drawTimeline(study.timeline);
}

function drawTimeline(found) {
  toggle("timeline", Boolean(found), shown.trials.length ? "When these trials ran is not stored: an earlier version of boca made them." : "There are no trials yet.");
  at("timeline-count").textContent = found && found.of > found.number.length ? `the last ${found.number.length} of ${found.of}` : "";
  if (!found) return;
  const colors = theme();
  at("timeline-note").textContent = `${count(found.lanes.length, "lane")}, busy ${words(100 * found.utilization, 2)} % of the time`;
  const kinds = [
    ["below the target", (i) => found.state[i] === "complete" && !found.at_target[i], { color: colors.soft }],
    ["at the target", (i) => found.state[i] === "complete" && found.at_target[i], { color: colors.accent }],
    ["failed", (i) => found.state[i] === "failed", { color: colors.bad, pattern: { shape: "x", bgcolor: colors.card, fgcolor: colors.bad } }],
    ["running", (i) => found.state[i] === "running", { color: "rgba(0,0,0,0)", line: { color: colors.wait, width: 2 } }],
  ];
  const bars = found.number.map((_, i) => i);
  const traces = kinds.map(([name, holds, look]) => {
    const chosen = bars.filter(holds);
    return {
      type: "bar", orientation: "h", name, customdata: chosen.map((i) => found.number[i]),
      y: chosen.map((i) => found.lane[i]), base: chosen.map((i) => new Date(1000 * found.began[i])),
      x: chosen.map((i) => 1000 * (found.ended[i] - found.began[i])), width: 0.8,
      marker: { line: { color: colors.card, width: 0.5 }, ...look }, hoverinfo: "text",
      hovertext: chosen.map((i) => `trial ${found.number[i]}, ${found.state[i]}<br>${label(found.lanes[found.lane[i]], MAX_NAME)}<br>${duration(found.ended[i] - found.began[i])}`),
    };
  }).filter((trace) => trace.y.length);
  const step = 1 + Math.floor((found.lanes.length - 1) / MAX_LANES);
  const named = found.lanes.map((_, i) => i).filter((i) => i % step === 0);
  draw("timeline", traces, layout(colors, {
    height: 90 + 26 * Math.min(found.lanes.length, MAX_LANES), barmode: "overlay",
    xaxis: axis(colors, "", { type: "date" }),
    yaxis: axis(colors, "", { tickvals: named, ticktext: named.map((i) => label(found.lanes[i], MAX_NAME)), range: [found.lanes.length - 0.4, -0.6], showgrid: false }),
  }));
}
