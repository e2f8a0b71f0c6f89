// Charts in the browser: draws the table of a panel as bars and lines, by uPlot, in a shadow tree of its own, so that updates
// of the page leave it alone. The table is the only source of numbers. plot.js says how they look.

const looks = [matchMedia("(prefers-color-scheme: dark)"), matchMedia("print")];

let library; // loading
let look; // plot.js

function load({ script: url, plot }) {
  library ??= Promise.all([import(plot).then((module) => look = module), new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  })]);
  return library;
}

class Chart extends HTMLElement {
  connectedCallback() {
    this.panel = this.closest("section");
    this.strip = this.panel.matches(".strip");
    if (!this.shadowRoot) this.build();
    this.observer = new MutationObserver(() => this.later());
    this.observer.observe(this.panel, { childList: true, subtree: true, characterData: true, attributeFilter: ["data-value", "data-at"] });
    this.themes = new MutationObserver(() => this.draw(true));
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.size = new ResizeObserver(() => this.plot?.setSize(this.box()));
    this.size.observe(this);
    this.repaint = () => this.draw(true);
    for (const query of looks) query.addEventListener("change", this.repaint);
    load(this.dataset).then(() => this.draw(true), () => this.hidden = true);
  }

  get step() {
    return Number(this.dataset.step);
  }

  disconnectedCallback() {
    for (const o of [this.observer, this.themes, this.size]) o.disconnect();
    for (const query of looks) query.removeEventListener("change", this.repaint);
    this.plot?.destroy();
    this.plot = null;
  }

  build() {
    const shadow = this.attachShadow({ mode: "open" });
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: this.dataset.style });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`
      :host { display: block; --group-1: light-dark(#2672c5, #a4b8fe); --group-2: light-dark(#ac7a03, #fbc146); --group-3: light-dark(#3d6e4e, #44eed9); --group-4: light-dark(#6b2164, #a5551f); --group-5: light-dark(#159cb5, #0c9dcd); --group-6: light-dark(#0b3f91, #5462ba); --group-7: light-dark(#a3488d, #b49720); --group-8: light-dark(#7b857b, #7d897d); }
      .uplot { font: inherit; }
      .mark { position: absolute; z-index: 3; top: 0; bottom: 0; width: 9px; margin-left: -4px; background: linear-gradient(var(--foreground) 0 0) center / 1px no-repeat; }
      .mark.restart { background: repeating-linear-gradient(var(--muted-foreground) 0 3px, transparent 3px 6px) center / 1px no-repeat; }
      .mark.deploy::before { content: ""; position: absolute; top: 0; left: 4px; border: 5px solid transparent; border-width: 0 0 7px 7px; border-left-color: var(--foreground); }
      .mark span { display: none; position: absolute; top: 0; left: 9px; padding: 1px 6px; border: 1px solid var(--border); border-radius: 4px; background: var(--card); color: var(--foreground); font-size: .75rem; line-height: 1.4; white-space: nowrap; }
      .mark.end span { left: auto; right: 9px; }
      .mark:is(:hover, :focus-visible) span { display: block; }
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

  // color is kept for a theme: to ask computes all styles.
  color(token) {
    return this.colors[token] ??= (this.probe.style.color = `var(${token})`, getComputedStyle(this.probe).color);
  }

  // later draws once for many changes, behind the layout that drawing needs.
  later() {
    this.waiting ??= requestAnimationFrame(() => setTimeout(() => {
      this.waiting = undefined;
      this.draw(false);
    }));
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
    if (!window.uPlot || !look || !this.isConnected) return;
    const { heads, data, unfinished } = this.read();
    this.unfinished = unfinished;
    this.shaped = look.shape(heads, data);
    const names = heads.map((th) => `${th.textContent} ${th.dataset.color} ${th.dataset.draw} ${"seconds" in th.dataset}`).join("\n");
    if (this.plot && !anew && names === this.names) {
      this.plot.setData(data);
      return this.tell();
    }
    this.names = names;
    this.colors = {};
    this.plot?.destroy();
    this.plot = new window.uPlot(look.options(this, heads), data, this.place);
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

  // brush has the page show the time that was selected, in whole steps where there are bars.
  brush(plot) {
    const { left, width } = plot.select;
    if (width < 8) return;
    const grain = this.shaped.bars ? this.step : 1;
    const at = (x, round) => new Date(round(plot.posToVal(x, "x") / grain) * grain * 1e3).toISOString().replace(".000", "");
    const url = new URL(this.dataset.brush, location.href);
    url.searchParams.set("since", at(left, Math.floor));
    url.searchParams.set("until", at(left + width, Math.ceil));
    location.assign(url);
  }
}

customElements.define("umbel-chart", Chart);
