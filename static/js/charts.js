// Charts in the browser: draws the table of a panel as lines, by uPlot, in a shadow tree of its own, so that updates of
// the page leave it alone. The table is the only source of numbers.

const looks = [matchMedia("(prefers-color-scheme: dark)"), matchMedia("print")];

let library; // loading

function load(url) {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.uPlot);
    script.onerror = reject;
    document.head.append(script);
  });
  return library;
}

// A span of seconds in the words of the page.
function duration(s) {
  if (s == null) return "—";
  if (s < 1) return `${+(s * 1e3).toPrecision(3)}\u202fms`;
  if (s < 60) return `${+s.toPrecision(3)}\u202fs`;
  return s < 3600 ? `${+(s / 60).toPrecision(3)}\u202fm` : `${+(s / 3600).toPrecision(3)}\u202fh`;
}

// A mark of the time axis, UTC: days are told at midnight.
function moment(s, step) {
  const iso = new Date(s * 1e3).toISOString();
  return step >= 86400 || s % 86400 === 0 ? iso.slice(5, 10) : iso.slice(11, 16);
}

// alone returns the places of values with none beside them, null if there is no such place.
function alone(values) {
  const places = [...values.keys()].filter((i) => values[i] != null && values[i - 1] == null && values[i + 1] == null);
  return places.length ? places : null;
}

const count = (n) => n == null ? "—" : n >= 1e4 ? n.toLocaleString("en").replaceAll(",", "\u202f") : String(n);

class Chart extends HTMLElement {
  connectedCallback() {
    this.panel = this.closest("section");
    this.strip = this.panel.matches(".strip");
    if (!this.shadowRoot) this.build();
    this.observer = new MutationObserver(() => this.later());
    this.observer.observe(this.panel, { childList: true, subtree: true, characterData: true, attributeFilter: ["data-value"] });
    this.themes = new MutationObserver(() => this.draw(true));
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.size = new ResizeObserver(() => this.plot?.setSize(this.box()));
    this.size.observe(this);
    this.repaint = () => this.draw(true);
    for (const look of looks) look.addEventListener("change", this.repaint);
    load(this.dataset.script).then(() => this.draw(true), () => this.hidden = true);
  }

  disconnectedCallback() {
    for (const o of [this.observer, this.themes, this.size]) o.disconnect();
    for (const look of looks) look.removeEventListener("change", this.repaint);
    this.plot?.destroy();
    this.plot = null;
  }

  build() {
    const shadow = this.attachShadow({ mode: "open" });
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: this.dataset.style });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`
      :host { display: block; }
      .uplot { font: inherit; }
      .u-legend { font-size: .75rem; text-align: start; color: var(--muted-foreground); }
      .u-legend th { font-weight: 500; }
      .u-legend .u-value { color: var(--foreground); }
      .u-select { background: color-mix(in oklab, var(--ring) 22%, transparent); }
      .u-hz .u-cursor-x { border-color: var(--muted-foreground); }
      .strip .uplot { display: flex; width: 100%; }
      .strip .u-legend { display: grid; grid: repeat(5, 12px) / auto-flow minmax(9.5rem, 1fr); width: auto; margin: 0; font-size: .6875rem; line-height: 12px; }
      .strip .u-legend tr { display: flex; align-items: center; }
      .strip .u-legend :is(th, td) { display: flex; align-items: center; padding: 0 2px; white-space: nowrap; }
      .strip .u-legend .u-marker { width: 8px; height: 8px; }
      @media (max-width: 767px) { .strip .u-legend { grid-auto-columns: 6.5rem; } .strip .u-legend tr:first-child { display: none; } }`);
    shadow.adoptedStyleSheets = [sheet];
    this.probe = document.createElement("span");
    this.place = document.createElement("div");
    this.place.className = this.strip ? "strip" : "";
    shadow.append(link, this.probe, this.place);
  }

  // box is the size of the plot. The legend of a strip stands beside it.
  box() {
    const beside = this.strip ? this.shadowRoot.querySelector(".u-legend")?.offsetWidth ?? 0 : 0;
    return { width: Math.max(this.clientWidth - beside, 120), height: this.strip ? 60 : 190 };
  }

  color(token) {
    this.probe.style.color = `var(${token})`;
    return getComputedStyle(this.probe).color;
  }

  // later draws once for many changes at a time.
  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw(false);
    });
  }

  // read returns the table: its columns, and their values, oldest first, null where nothing is known.
  read() {
    const heads = [...this.panel.querySelectorAll("thead th")].slice(1);
    const rows = [...this.panel.querySelectorAll("tbody tr")].sort((a, b) => a.dataset.at - b.dataset.at);
    const at = rows.map((row) => Number(row.dataset.at));
    const values = heads.map((_, i) => rows.map((row) => {
      const value = row.children[i + 1]?.dataset.value;
      return value === undefined ? null : Number(value);
    }));
    return { heads, data: [at, ...values], unfinished: rows.findIndex((row) => "unfinished" in row.dataset) };
  }

  draw(anew) {
    if (!window.uPlot || !this.isConnected) return;
    const { heads, data, unfinished } = this.read();
    this.unfinished = unfinished;
    const names = heads.map((th) => `${th.textContent} ${th.dataset.color} ${"seconds" in th.dataset}`).join("\n");
    if (this.plot && !anew && names === this.names) {
      this.plot.setData(data);
      return this.tell();
    }
    this.names = names;
    this.plot?.destroy();
    this.plot = new window.uPlot(this.options(heads), data, this.place);
    if (this.strip) this.plot.setSize(this.box());
    this.tell();
  }

  // tell has the legend say the newest values that are whole, unless the pointer asks for others.
  tell() {
    const { data, cursor } = this.plot;
    if (cursor.left >= 0) return;
    const last = this.unfinished < 0 ? data[0].length - 1 : this.unfinished - 1;
    if (last >= 0) this.plot.setLegend({ idx: last });
  }

  options(heads) {
    const words = heads.some((th) => "seconds" in th.dataset) ? duration : count;
    const axis = { stroke: this.color("--muted-foreground"), font: `${this.strip ? 10 : 12}px system-ui`, grid: { stroke: this.color("--border"), width: 1 }, ticks: { show: false } };
    return {
      ...this.box(),
      tzDate: (s) => window.uPlot.tzDate(new Date(s * 1e3), "UTC"),
      cursor: { drag: { x: true, y: false, setScale: false } },
      scales: { y: { range: (_, __, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, ...this.strip && { size: 16, gap: 1 }, values: (_, marks, __, ___, step) => marks.map((s) => moment(s, step)) },
        { ...axis, size: this.strip ? 46 : 58, ...this.strip && { gap: 2, space: 18 }, values: (_, marks) => marks.map(words) },
      ],
      ...this.strip && { padding: [6, 8, 0, 0] },
      series: [
        { label: "UTC", value: (_, s, __, i) => s == null ? "—" : new Date(s * 1e3).toISOString().slice(0, 16).replace("T", " ") + (i === this.unfinished ? ", so far" : "") },
        ...heads.map((th) => ({
          label: th.textContent, stroke: this.color(th.dataset.color), width: 1.5, value: (_, v) => words(v),
          points: { filter: (plot, i, shown) => shown ? null : alone(plot.data[i]) }, // no line would show it
        })),
      ],
      hooks: { setCursor: [(plot) => plot.cursor.left < 0 && this.tell()], drawClear: [(plot) => this.shade(plot)], setSelect: [(plot) => this.brush(plot)] },
    };
  }

  // shade marks the step that goes on: lines that fall there may rise yet.
  shade(plot) {
    const [at, i] = [plot.data[0], this.unfinished];
    if (i < 0) return;
    const { left, top, width, height } = plot.bbox;
    const from = i ? plot.valToPos(at[i - 1], "x", true) : left;
    plot.ctx.fillStyle = this.color("--muted");
    plot.ctx.fillRect(from, top, left + width - from, height);
  }

  // brush shows the time that was selected.
  brush(plot) {
    if (plot.select.width < 8) return;
    const from = Math.floor(plot.posToVal(plot.select.left, "x"));
    const to = Math.ceil(plot.posToVal(plot.select.left + plot.select.width, "x"));
    const url = new URL(this.dataset.brush, location.href);
    url.searchParams.set("chart", url.searchParams.get("chart").replace("1-2", `${from}-${to}`));
    location.assign(url);
  }
}

customElements.define("umbel-chart", Chart);
