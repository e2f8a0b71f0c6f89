// How charts are drawn: what the columns of a table become, their scale, and what is not a column: the step that goes on,
// and marks of deploys and restarts.

const room = { floor: .5, share: .33 }; // of bars apart below zero, as shares of the rest

// A span of seconds in the words of the page.
function duration(s) {
  if (s == null) return "—";
  if (s < 1) return `${+(s * 1e3).toPrecision(3)}\u202fms`;
  if (s < 60) return `${+s.toPrecision(3)}\u202fs`;
  return s < 3600 ? `${+(s / 60).toPrecision(3)}\u202fm` : `${+(s / 3600).toPrecision(3)}\u202fh`;
}

// In UTC, or as chosen.
const local = document.documentElement.dataset.time === "local";
const iso = (s) => new Date(s * 1e3 - (local ? new Date(s * 1e3).getTimezoneOffset() * 6e4 : 0)).toISOString();

// A mark of the time axis: days are told at midnight.
function moment(s, step) {
  const at = iso(s);
  return step >= 86400 || at.includes("T00:00") ? at.slice(5, 10) : at.slice(11, 16);
}

// alone returns the places of values with none beside them, null if there is no such place.
function alone(values) {
  const places = [...values.keys()].filter((i) => values[i] != null && values[i - 1] == null && values[i + 1] == null);
  return places.length ? places : null;
}

const count = (n) => n == null ? "—" : n >= 1e4 ? n.toLocaleString("en").replaceAll(",", "\u202f") : String(n);
const greatest = (columns) => columns.flat().reduce((a, b) => Math.max(a, b ?? 0), 0) || 1;

// shape returns where bars begin and end by column, and the scale: stacked ones stand on those before, those apart have a
// scale of their own.
export function shape(heads, data) {
  const draws = heads.map((th) => th.dataset.draw);
  const sums = data[0].map(() => 0);
  const low = [], high = [];
  data.slice(1).forEach((values, i) => {
    if (draws[i] === "stacked") low[i] = [...sums];
    high[i] = values.map((v, at) => v == null || draws[i] !== "stacked" ? v : sums[at] += v);
  });
  const top = greatest(high.filter((_, i) => draws[i] !== "apart"));
  const most = greatest(high.filter((_, i) => draws[i] === "apart"));
  const floor = draws.includes("apart") ? -top * room.floor : 0;
  draws.forEach((draw, i) => {
    if (draw !== "apart") return;
    low[i] = sums.map(() => floor);
    high[i] = data[i + 1].map((v) => v == null ? null : floor + v / most * top * room.share);
  });
  return { low, high, top, most, floor, bars: draws.some(Boolean) };
}

// options are those of the library for a chart.
export function options(chart, heads) {
  const { uPlot } = window;
  const { strip, step } = chart;
  const seconds = heads.some((th) => "seconds" in th.dataset);
  const words = seconds ? duration : count;
  const shaped = () => chart.shaped;
  const bars = uPlot.paths.bars({
    align: 1, size: [1, Infinity], gap: 1,
    disp: { y0: { unit: 1, values: (_, i) => shaped().low[i - 1] }, y1: { unit: 1, values: (_, i) => shaped().high[i - 1] } },
  });
  const axis = { stroke: chart.color("--muted-foreground"), font: `${strip ? 10 : 12}px system-ui`, grid: { stroke: chart.color("--border"), width: 1 }, ticks: { show: false } };
  const splits = (_, __, ___, max, by) => {
    const { floor, top } = shaped();
    if (strip) return [0, top];
    const list = floor ? [floor, floor + top * room.share] : [];
    for (let v = 0; v <= max; v += by) if (seconds || Number.isInteger(v)) list.push(v);
    return list;
  };
  const drawn = (th) => {
    const color = chart.color(th.dataset.color);
    if (th.dataset.draw) return { fill: color, stroke: color, width: 0, paths: bars, points: { show: false } };
    return {
      stroke: color, width: 1.5, ...shaped().bars && { paths: uPlot.paths.stepped({ align: 1 }) },
      points: { ...shaped().bars && { show: false }, filter: (plot, i, shown) => shown ? null : alone(plot.data[i]) }, // no line would show it
    };
  };
  return {
    ...chart.box(),
    tzDate: (s) => uPlot.tzDate(new Date(s * 1e3), "UTC"),
    cursor: {
      drag: { x: true, y: false, setScale: false }, points: { show: !shaped().bars },
      dataIdx: (plot, _, near, x) => shaped().bars && plot.data[0][near] > x ? Math.max(near - 1, 0) : near, // bars stand after their time
    },
    scales: {
      x: { range: (_, low, high) => [low, shaped().bars || low === high ? high + step : high] },
      y: { range: () => [shaped().floor, shaped().top * 1.08] },
    },
    axes: [
      { ...axis, size: strip ? 16 : 30, ...strip && { gap: 1 }, values: (_, at, __, ___, by) => at.map((s) => moment(s, by)) },
      {
        ...axis, size: strip ? 46 : 58, ...strip && { gap: 2, space: 18 }, splits,
        values: (_, at) => at.map((v) => v >= 0 ? words(v) : v === shaped().floor ? "" : words(shaped().most)),
      },
    ],
    ...strip && { padding: [6, 8, 0, 0] },
    series: [
      { label: local ? "Time" : "UTC", value: (_, s, __, i) => s == null ? "—" : iso(s).slice(0, 16).replace("T", " ") + (i === chart.unfinished ? ", so far" : "") },
      ...heads.map((th) => ({ label: th.textContent, value: (_, v) => words(v), ...drawn(th) })),
    ],
    hooks: {
      setCursor: [(plot) => plot.cursor.left < 0 && chart.tell()], setSelect: [(plot) => chart.brush(plot)],
      drawClear: [(plot) => shaped().bars && unheard(chart, plot)], draw: [(plot) => { pale(chart, plot); place(chart, plot); }],
    },
  };
}

// unheard shades the steps of which nothing is known, which are not those without tasks.
function unheard(chart, plot) {
  const [at, ...values] = plot.data;
  const { ctx, bbox: { top, height } } = plot;
  ctx.fillStyle = chart.color("--muted");
  at.forEach((s, i) => {
    if (values.some((column) => column[i] != null)) return;
    const [from, to] = [s, s + chart.step].map((x) => Math.round(plot.valToPos(x, "x", true)));
    ctx.fillRect(from, top, to - from, height);
  });
}

// pale draws the step that goes on lighter: it may rise yet.
function pale(chart, plot) {
  const [at, i] = [plot.data[0], chart.unfinished];
  if (i < 0) return;
  const { ctx, bbox: { left, top, width, height } } = plot;
  const from = chart.shaped.bars ? plot.valToPos(at[i], "x", true) : i ? plot.valToPos(at[i - 1], "x", true) : left;
  ctx.save();
  ctx.globalAlpha = .55;
  ctx.fillStyle = chart.color("--card");
  ctx.fillRect(from, top, left + width - from, height);
  ctx.restore();
}

// place puts a line with a label over the chart for each mark that the page lists. Those in place stay, and so does the focus.
function place(chart, plot) {
  const width = plot.bbox.width / devicePixelRatio; // clientWidth would make the browser lay out the page
  const marks = [...chart.panel.querySelectorAll(".chart-marks li")].map((li) => ({
    kind: li.dataset.kind, text: li.textContent.trim().replace(/\s+/g, " "), left: Math.round(plot.valToPos(li.dataset.at, "x")),
  })).filter(({ left }) => left >= 0 && left <= width);
  const key = JSON.stringify(marks);
  if (plot.over.dataset.marks === key) return;
  plot.over.dataset.marks = key;
  for (const old of plot.over.querySelectorAll(".mark")) old.remove();
  for (const { kind, text, left } of marks) {
    const line = document.createElement("span");
    line.className = `mark ${kind}${left > width * .6 ? " end" : ""}`;
    line.style.left = `${left}px`;
    line.role = "img";
    line.ariaLabel = text;
    if (!chart.strip) line.tabIndex = 0; // a strip stands before the list, which the keyboard is to reach soon
    line.append(Object.assign(document.createElement("span"), { textContent: text }));
    plot.over.append(line);
  }
}
