// Diagrams in the browser: arrow keys lead from link to link of a drawing, and the event that is pointed at or has the focus
// lights what came before and after it. The drawings work without this.

class Diagram extends HTMLElement {
  connectedCallback() {
    this.addEventListener("keydown", (e) => this.step(e));
    for (const type of ["pointerover", "focusin"]) this.addEventListener(type, (e) => this.light(e.target.closest("[data-event]")));
    this.addEventListener("pointerleave", () => this.light(this.querySelector("[data-event]:focus")));
    this.addEventListener("focusout", () => this.light(null));
    // Updates of the page take the light away.
    this.observer = new MutationObserver(() => this.light(this.lit?.isConnected ? this.lit : null));
    this.observer.observe(this, { childList: true, subtree: true, attributeFilter: ["data-lit", "data-after"] });
  }

  disconnectedCallback() {
    this.observer.disconnect();
  }

  // step moves the focus to the nearest link in the direction of an arrow key.
  step(e) {
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key];
    const from = e.target.closest("svg a");
    if (!direction || !from || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    e.preventDefault();
    const middle = (link) => {
      const box = link.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(from);
    let [best, least] = [null, Infinity];
    for (const link of this.querySelectorAll("svg a")) {
      const [dx, dy] = [middle(link)[0] - x, middle(link)[1] - y];
      const along = dx * direction[0] + dy * direction[1];
      const cost = along + 2 * Math.abs(direction[0] ? dy : dx);
      if (along > 1 && cost < least) [best, least] = [link, cost];
    }
    if (!best) return;
    if (best.hasAttribute("tabindex")) { // one of them is in the order of the tab key
      for (const link of this.querySelectorAll("svg a[tabindex='0']")) link.setAttribute("tabindex", "-1");
      best.setAttribute("tabindex", "0");
    }
    best.focus({ preventScroll: true });
    best.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // light marks the past and the future of an event, or nothing.
  light(event) {
    if (!event && !this.lit) return;
    this.lit = event;
    const before = new Map(); // of each event
    const after = new Map();
    for (const e of this.querySelectorAll("[data-event]")) {
      const n = e.dataset.event;
      before.set(n, e.dataset.after.split(" ").filter(Boolean));
      for (const m of before.get(n)) after.set(m, [...after.get(m) ?? [], n]);
    }
    const reach = (next) => {
      const seen = new Set();
      const open = event ? [event.dataset.event] : [];
      while (open.length) {
        for (const n of next.get(open.pop()) ?? []) {
          if (!seen.has(n)) open.push(n);
          seen.add(n);
        }
      }
      return seen;
    };
    const [past, future] = [reach(before), reach(after)];
    const self = event?.dataset.event;
    const side = (set, n) => set.has(n) || n === self;
    for (const e of this.querySelectorAll("[data-event], [data-from]")) {
      const [from, to] = e.dataset.event ? [e.dataset.event, e.dataset.event] : [e.dataset.from, e.dataset.to];
      let lit = event ? "none" : "";
      if (event && from === self && to === self) lit = "self";
      else if (side(past, from) && side(past, to)) lit = "past";
      else if (side(future, from) && side(future, to)) lit = "future";
      if ((e.dataset.lit ?? "") === lit) continue;
      if (lit) e.dataset.lit = lit;
      else delete e.dataset.lit;
    }
  }
}

customElements.define("umbel-diagram", Diagram);
