// Umbel in the browser: keeps an open page current and adds shortcuts. Pages work without it. The
// protocol and what a page offers are described in docs/live-protocol.md.

const prefix = document.documentElement.dataset.prefix ?? "";
const $ = (selector, within = document) => within.querySelector(selector);
const main = $("main");
const mark = $("#connection");
const pauseButton = $("#pause");

// ---- Elements ----

// parse turns the HTML of one element, which may be a table row, into that element.
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

// idOf is the id of an element. The property of a form is hidden by a field of that name.
const idOf = (node) => node.getAttribute?.("id");

// What a script makes of a field of queries.
const combobox = /^(role|aria-(expanded|controls|autocomplete|activedescendant))$/;

// morph makes old look like next and touches nothing that is the same, so that focus, hover, selected
// text and scroll positions survive. What the user opened or closed stays so, the field in use is left alone.
function morph(old, next) {
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName || idOf(old) !== idOf(next)) return old.replaceWith(next);
  if (old.isEqualNode(next)) return setFields(old, next);
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = next.data);
  for (const { name } of [...old.attributes]) {
    const ours = opens(old, name) || old.matches("[data-complete]") && combobox.test(name);
    if (!ours && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (!opens(old, name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  setFields(old, next);
  if (old.matches("time[data-age]")) return age(old);
  if (old.matches("[data-news], [data-options], [data-kept]")) return;
  if (old.matches("tbody[id]")) return takeRows(old, [...next.children]);
  let at = old.firstChild;
  for (const child of [...next.childNodes]) {
    const keyed = idOf(child) && [...old.children].find((e) => idOf(e) === idOf(child));
    if (keyed && keyed !== at) {
      old.insertBefore(keyed, at);
      at = keyed;
    }
    if (at && at.nodeName === child.nodeName && idOf(at) === idOf(child)) {
      const after = at.nextSibling;
      morph(at, child);
      at = after;
    } else {
      old.insertBefore(child, at);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

const opens = (e, name) => name === "open" && e.matches("details, dialog");

function setFields(old, next) {
  if (old.nodeName !== "INPUT" || old === document.activeElement) return;
  if (old.form?.matches("[data-select]") || old.matches("[data-pick-all]")) return;
  if (old.checked !== next.checked) old.checked = next.checked;
  if (old.value !== next.value) old.value = next.value;
}

// ---- Lists: tbodies with an id, whose rows have ids ----

// lists holds, by tbody, the ids of the rows that it should have, and the rows that it has not yet.
const lists = new WeakMap();

function listOf(tbody) {
  if (!lists.has(tbody)) lists.set(tbody, { order: [...tbody.children].map((row) => row.id), waiting: new Map() });
  return lists.get(tbody);
}

function rowIn(tbody, id) {
  const row = document.getElementById(id);
  return row?.parentNode === tbody ? row : null;
}

// update changes the rows that are shown at once and lets the others wait until the list is not in use.
function update(tbody, order, rows) {
  const list = listOf(tbody);
  if (order) list.order = order;
  for (const [id, row] of rows) {
    const shown = rowIn(tbody, id);
    if (shown) morph(shown, row);
    else list.waiting.set(id, row);
  }
  const wanted = new Set(list.order);
  for (const id of list.waiting.keys()) if (!wanted.has(id)) list.waiting.delete(id);
  for (const row of tbody.children) row.toggleAttribute("data-left", !wanted.has(row.id)); // it changes no more
  if (!inUse(tbody)) settle(tbody);
  tell(tbody);
}

// takeRows does the same with all rows of a page that was fetched.
function takeRows(tbody, rows) {
  update(tbody, rows.map((row) => row.id), rows.map((row) => [row.id, row]));
}

// settle gives a list the rows and the order that it should have.
function settle(tbody) {
  const { order, waiting } = listOf(tbody);
  const focused = tbody.contains(document.activeElement) && document.activeElement;
  const wanted = new Set(order);
  for (const row of [...tbody.children]) if (!wanted.has(row.id)) row.remove();
  let at = tbody.firstElementChild;
  for (const id of order) {
    const row = rowIn(tbody, id) ?? waiting.get(id);
    if (!row) return void live.startOver();
    if (row === at) at = at.nextElementSibling;
    else tbody.insertBefore(row, at);
  }
  waiting.clear();
  if (focused?.isConnected) focused.focus({ preventScroll: true });
  tick();
}

// A finger hovers over nothing, though browsers say so of what it touched last.
let hovers = false;
document.addEventListener("pointermove", (e) => hovers = e.pointerType !== "touch", { capture: true, passive: true });

// inUse reports whether moving rows now would move them away under the user.
function inUse(tbody) {
  const selection = document.getSelection();
  return (hovers && (tbody.matches(":hover") || slotOf(tbody)?.matches(":hover"))) ||
    tbody.contains(document.activeElement) || $("input:checked", tbody) !== null ||
    (!selection.isCollapsed && selection.containsNode(tbody, true)) ||
    scrolledAway(tbody) || $("dialog[open]") !== null;
}

const scrolledAway = (tbody) => tbody.childElementCount > 0 && tbody.getBoundingClientRect().top < 0;

const tbodies = () => [...main.querySelectorAll("tbody[id]")];

function settled(tbody) {
  const { order } = listOf(tbody);
  return order.length === tbody.childElementCount && order.every((id, i) => tbody.children[i].id === id);
}

// ---- The pill that tells of rows that wait ----

const slotOf = (tbody) => $(`[data-news="${CSS.escape(tbody.id)}"]`);
let settling;

// tell shows how many rows wait for the list to be out of use, when they are let in by themselves.
function tell(tbody) {
  const slot = slotOf(tbody);
  if (settled(tbody)) return slot?.replaceChildren();
  settling ??= setInterval(settleUnused, 400);
  if (!slot) return;
  const rows = listOf(tbody).waiting.size;
  if (!slot.firstChild) {
    slot.append(element("button", { type: "button", onclick: showNews }));
    if (rows) announce(`${rows} new rows. Press n to show them.`);
  }
  // When all rows are new there may have been more, which have left again.
  const text = !rows ? "New order" : `${rows}${rows === listOf(tbody).order.length ? "+" : ""} new`;
  if (slot.textContent !== text) slot.firstChild.textContent = text;
}

function settleUnused() {
  for (const tbody of tbodies()) {
    if (!settled(tbody) && !inUse(tbody)) settle(tbody);
    tell(tbody);
  }
  if (tbodies().every(settled)) settling = clearInterval(settling);
}

function showNews() {
  for (const tbody of tbodies()) {
    const away = scrolledAway(tbody);
    settle(tbody);
    tell(tbody);
    if (away) tbody.firstElementChild?.scrollIntoView({ block: "nearest" });
  }
}

// ---- The socket ----

const patience = { late: 5e3, beat: 45e3, poll: 5e3, hidden: 5e3, first: 500, longest: 30e3 };

const live = {
  socket: null,
  open: false, // the server has spoken
  tries: 0, // since the last time it did
  topic: "", // subscribed to
  at: {}, // epoch and seq of the last frame of topic, or the page that the first one leads from
  refused: "", // a topic that the server does not have
  late: false,
  paused: false,
  hidden: false,
  polling: null,
  polled: false, // the last poll worked
  heard: Date.now(), // when the server last spoke, by any way
  skew: Date.now() - performance.now(), // the server's clock less the time since the page began, ms
  skews: [], // as the last messages had it
  refreshed: 0, // when it was begun

  wanted() {
    const topic = main?.dataset.topic ?? "";
    return this.paused || this.hidden || topic === this.refused ? "" : topic;
  },

  // follow makes the subscription what it should be, and connects if there is none to be had.
  follow() {
    const topic = this.wanted();
    if (this.open && topic !== this.topic) {
      if (this.topic) this.send({ op: "unsub", topic: this.topic });
      this.topic = topic;
      this.late = false;
      if (topic && this.at.topic !== topic) this.at = this.page();
      if (topic) this.send({ op: "sub", ...this.at });
    }
    if (topic && !this.socket) this.connect();
    if (!topic) this.poll(false);
    paint();
  },

  connect() {
    clearTimeout(this.again);
    const url = new URL(prefix + "/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = this.socket = new WebSocket(url);
    socket.onmessage = (e) => {
      this.heard = Date.now();
      if (!this.open) {
        this.open = true;
        this.tries = 0;
        this.poll(false);
        this.follow();
      }
      this.take(JSON.parse(e.data));
    };
    socket.onclose = () => this.lost();
  },

  // lost forgets the socket and tries again later, the later the more often it failed.
  lost() {
    if (this.socket) this.socket.onclose = this.socket.onmessage = null;
    this.socket?.close();
    this.socket = null;
    this.open = false;
    this.topic = "";
    this.tries++;
    if (this.tries >= 2 && this.wanted()) this.poll(true);
    const wait = Math.random() * Math.min(patience.longest, patience.first * 2 ** this.tries);
    clearTimeout(this.again);
    this.again = setTimeout(() => !this.socket && this.follow(), wait);
    paint();
  },

  send(message) {
    this.socket.send(JSON.stringify(message));
  },

  take(message) {
    if (message.v !== 1) return location.reload(); // by now the server has another script
    if (message.now) this.reckon(message.now - performance.now());
    if (message.topic === undefined || message.topic !== this.topic) return paint();
    if (message.error) {
      this.refused = message.topic;
      this.topic = "";
      this.refresh();
      return paint();
    }
    this.late = message.late;
    if (message.late !== undefined) return paint();
    if (!message.reset && (!message.page || message.page !== this.at.page)) {
      if (message.epoch === this.at.epoch && message.seq <= this.at.seq) return;
      if (message.epoch !== this.at.epoch || message.seq !== this.at.seq + 1) return this.startOver();
    }
    this.at = { topic: message.topic, epoch: message.epoch, seq: message.seq };
    apply(message);
    paint();
  },

  // reckon estimates the server's clock. A message shows it too early by the time for which it was under way, so that the
  // latest of the last few is nearest. What is far too early is no delay: the clock was set.
  reckon(skew) {
    if (skew < this.skew - patience.beat) this.skews = [];
    this.skews = [...this.skews.slice(-4), skew];
    this.skew = Math.max(...this.skews);
  },

  // page is where a page begins that was just loaded.
  page: () => ({ topic: main.dataset.topic, page: main.dataset.page }),

  // startOver asks for everything that is not in at.
  startOver(at = { topic: this.topic }) {
    this.at = at;
    if (this.open && this.topic) this.send({ op: "sub", ...at });
  },

  // poll fetches the page now and then, for want of a socket.
  poll(on) {
    if (!on) this.polling = clearInterval(this.polling);
    else this.polling ??= setInterval(() => this.refresh(), patience.poll);
    this.polled &&= on;
  },

  // refresh fetches the page and takes over what is new in it.
  async refresh() {
    if (going) return;
    this.refreshed = Date.now();
    this.polled = await swap(location.href).then(() => true, () => false) && this.polling != null;
    paint();
  },
};

// apply shows a frame.
function apply(frame) {
  let strange = false;
  for (const op of frame.ops) {
    const target = document.getElementById(op.id);
    if (!target) strange = true;
    else if (op.op === "replace") morph(target, parse(op.html));
    else update(target, op.order, Object.entries(op.rows ?? {}).map(([id, html]) => [id, parse(html)]));
  }
  tick();
  // The page has another layout by now. Once is enough if that does not help.
  if (strange && Date.now() - live.refreshed > patience.poll) live.refresh();
}

function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hourCycle: "h23" });
}

// paint tells how live the page is.
function paint() {
  if (!mark) return;
  const last = `last update ${clock(live.heard)}`;
  let [state, text] = ["live", "Live"];
  if (!main?.dataset.topic) [state, text] = ["static", "Not live"];
  else if (live.paused) [state, text] = ["paused", "Paused"];
  else if (live.open) { if (live.late) [state, text] = ["late", "Too slow to update"]; }
  else if (live.polled) text = "Live, each 5 s";
  else if (!navigator.onLine) [state, text] = ["offline", `Offline, ${last}`];
  else if (Date.now() - live.heard > patience.late) [state, text] = ["reconnecting", `Reconnecting, ${last}`];
  else [state, text] = ["connecting", "Connecting"];
  if (mark.dataset.state !== state) mark.dataset.state = state;
  if (mark.textContent !== text) mark.textContent = text;
  // What the page said of the broker may not be so any more.
  const broker = $("#broker");
  if (broker) broker.hidden = state === "offline" || state === "reconnecting";
}

function pause() {
  live.paused = !live.paused;
  pauseButton?.setAttribute("aria-pressed", live.paused);
  const label = pauseButton && $(".label", pauseButton);
  if (label) label.textContent = live.paused ? "Resume" : "Pause";
  live.follow();
}

// ---- Pages without a load ----

let shown = location.pathname + location.search;
let loading;
let going = 0; // loads that the user waits for

// swap fetches a page and takes over its main part. It returns the address that answered.
async function swap(url, settleAll) {
  loading?.abort();
  loading = new AbortController();
  const response = await fetch(url, { signal: loading.signal, headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const next = $("main", page);
  if (!next) throw new Error(`no page at ${url}`);
  live.heard = Date.now();
  document.title = page.title;
  for (const part of ["#banner", "#history-alert", "#outbox-alert", "#broker", "#dead", ".top .search", ".top .theme"]) {
    const [old, now] = [$(part), $(part, page)];
    if (old && now) morph(old, now);
  }
  keepList(next);
  if (settleAll) for (const tbody of tbodies()) tbody.replaceChildren();
  morph(main, next);
  tick();
  equip();
  const before = live.topic;
  live.follow();
  if (live.topic === before) live.startOver(live.page()); // the page is ahead of the frames
  return response.url;
}

// keepList leaves the list as it is while what was asked for cannot be read.
function keepList(next) {
  const [good, stale] = [$("[data-list]"), $("[data-stale]", next)];
  if (good && stale) stale.replaceChildren(...good.cloneNode(true).childNodes);
}

// go shows another page, with push as a step of its own in the history, else with replace in the same.
async function go(url, how) {
  going++;
  live.refused = "";
  const focus = document.activeElement?.id;
  try {
    const address = new URL(await swap(url, true));
    shown = address.pathname + address.search;
    if (how) history[`${how}State`](null, "", shown);
    for (const form of document.querySelectorAll("form[data-filter]:not(:focus-within)")) form.reset(); // to what is shown
    if (focus && document.activeElement === document.body) document.getElementById(focus)?.focus();
    pointAtMistake();
  } catch (error) {
    if (error.name !== "AbortError") location.assign(url);
  } finally {
    going--;
  }
}

// pointAtMistake selects what is wrong of the query that was just run.
function pointAtMistake() {
  const [wrong, field] = [$("#wrong mark"), $("#query")];
  if (!wrong || document.activeElement !== field) return;
  const start = wrong.previousSibling?.textContent.length ?? 0;
  field.setSelectionRange(start, start + wrong.textContent.length);
}

document.addEventListener("submit", (e) => {
  if (!e.target.matches("form[data-filter]")) return;
  e.preventDefault();
  const form = /** @type {HTMLFormElement} */ (e.target);
  const fields = /** @type {[string, string][]} */ ([...new FormData(form)]).filter(([, value]) => value !== "");
  go(`${e.target.action}?${new URLSearchParams(fields)}`, "push");
});
document.addEventListener("click", (e) => {
  const link = e.target.closest("a[data-swap]");
  for (const menu of document.querySelectorAll("[data-menu][open]")) if (!menu.contains(e.target)) menu.open = false;
  if (!link || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  go(link.href, "push");
});
document.addEventListener("keydown", (e) => {
  const menu = e.key === "Escape" && $("[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  $("summary", menu).focus();
});
document.addEventListener("focusin", async (e) => {
  const { complete } = e.target.dataset;
  if (complete) (await import(complete)).attach(e.target, prefix);
});

// equip serves what has a script of its own.
async function equip() {
  for (const form of document.querySelectorAll("form[data-select]")) (await import(form.dataset.select)).attach(form, keys);
  const list = $("[data-preview]");
  if (list) keys[" "] = ["preview the row", async () => (await import(list.dataset.preview)).toggle()];
}

addEventListener("popstate", () => {
  if (location.pathname + location.search === shown) return; // only the fragment changed
  document.activeElement?.blur();
  go(location.href);
});

// ---- Ages, announcements, copying ----

function span(seconds) {
  const unit = (n, name) => `${n}\u202f${name}`;
  const two = (size, big, small) => {
    const rest = Math.floor((seconds % size) / (size === 86400 ? 3600 : size / 60));
    return unit(Math.floor(seconds / size), big) + (rest ? ` ${unit(rest, small)}` : "");
  };
  if (seconds < 60) return unit(Math.floor(seconds), "s");
  if (seconds < 3600) return two(60, "m", "s");
  return seconds < 86400 ? two(3600, "h", "m") : two(86400, "d", "h");
}

function age(time) {
  const seconds = (performance.now() + live.skew - Date.parse(time.dateTime)) / 1000;
  if (Number.isNaN(seconds)) return;
  // Clocks differ a little: what is due in less than 5 s has just happened.
  const text = seconds < -5 ? `in ${span(-seconds)}` : span(Math.max(0, seconds));
  if (time.textContent !== text) time.textContent = text;
}

// tick redraws ages, but none that would be read aloud each time.
function tick() {
  for (const time of document.querySelectorAll("time[data-age]")) if (!time.closest("[role=alert]")) age(time);
}

// Under the pointer, names, cut text, ages and buttons get a title that says all of it.
document.addEventListener("pointerover", (e) => {
  const target = e.target.closest(".name, td code, .copy, time[data-age]");
  if (!target || target.title) return;
  target.title = target.dateTime ? `${target.dateTime.replace("T", " ").replace("Z", "")} UTC` : target.ariaLabel ?? target.textContent;
});

const voice = element("div", { className: "hidden", role: "status" });
document.body.append(voice);
let spoken = 0;

function announce(text) {
  if (Date.now() - spoken < 10e3) return;
  spoken = Date.now();
  say(text);
}

// say is heard each time: the element is a new one.
function say(text) {
  voice.replaceChildren(element("p", { textContent: text }));
}

async function copy(button) {
  const text = button.dataset.copy || button.previousElementSibling.title;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard without TLS
    const area = element("textarea", { value: text, className: "hidden" });
    button.after(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.dataset.copied = "";
  setTimeout(() => delete button.dataset.copied, 1500);
  say("Copied");
}

document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-copy]");
  if (button) copy(button);
});

// ---- Keys ----

const keys = {
  "/": ["search", () => ($("#query") ?? $("input[name=q]"))?.focus()],
  "j": ["next row", () => step(1)],
  "k": ["row before", () => step(-1)],
  "n": ["show new rows", showNews],
  "p": ["pause and resume", pause],
  "g o": ["overview", () => location.assign(prefix + "/")],
  "g t": ["tasks", () => location.assign(prefix + "/tasks")],
  "g w": ["workers", () => location.assign(prefix + "/workers")],
  "g q": ["queues", () => location.assign(prefix + "/queues")],
  "g x": ["outbox", () => location.assign(prefix + "/outbox")],
  "g e": ["failures", () => location.assign(prefix + "/failures")],
  "?": ["this help", () => help().showModal()],
};

// step moves the focus to the link of a neighbouring row; Enter then opens it.
function step(by) {
  const rows = [...main.querySelectorAll("tbody[id] > tr")].filter((row) => $("a", row));
  const now = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[now < 0 ? 0 : Math.min(Math.max(now + by, 0), rows.length - 1)];
  if (row) $("a", row).focus();
}

// Single keys can be switched off, for those who speak to their machine.
const setting = {
  get off() { try { return localStorage.getItem("umbel.keys") === "off"; } catch { return false; } },
  set off(value) { try { localStorage.setItem("umbel.keys", value ? "off" : "on"); } catch { /* kept for this page only */ } },
};
let keysOff = setting.off;

let dialog;
function help() {
  if (dialog) return dialog;
  const facts = element("dl");
  for (const [key, [words]] of Object.entries(keys)) {
    const names = (key.trim() ? key.split(" ") : ["Space"]).map((name) => element("kbd", { textContent: name }));
    facts.append(element("dt", {}, ...names), element("dd", { textContent: words }));
  }
  const box = element("input", { type: "checkbox", checked: !keysOff, onchange: () => setting.off = keysOff = !box.checked });
  dialog = element("dialog", {},
    element("h2", { textContent: "Keyboard" }), facts,
    element("label", {}, box, " Single keys are shortcuts"),
    element("form", { method: "dialog" }, element("button", { className: "button", textContent: "Close" })));
  document.body.append(dialog);
  return dialog;
}

let lastKey = "";
let lastKeyAt = 0;
document.addEventListener("keydown", (e) => {
  if (keysOff || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
  if (e.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable], dialog")) return;
  if (e.key === " " && e.target.closest("input, button, summary")) return; // it has a meaning there
  const pair = Date.now() - lastKeyAt < 1000 ? `${lastKey} ${e.key}` : "";
  lastKey = e.key;
  lastKeyAt = Date.now();
  const [, act] = keys[pair] ?? keys[e.key] ?? [];
  if (!act) return;
  e.preventDefault();
  act();
});

// ---- Start ----

pauseButton?.addEventListener("click", pause);
pauseButton?.before(element("button", {
  type: "button", className: "button quiet", textContent: "?", title: "Keyboard shortcuts (?)", onclick: () => help().showModal(),
}));

let hiding;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  const hide = (hidden) => {
    live.hidden = hidden;
    live.follow();
  };
  if (document.hidden) hiding = setTimeout(hide, patience.hidden, true);
  else hide(false);
});
for (const event of ["online", "offline"]) addEventListener(event, paint);
addEventListener("online", () => live.socket || live.follow());

setInterval(() => {
  if (live.open && Date.now() - live.heard > patience.beat) live.lost();
  paint();
}, 1000);
setInterval(tick, matchMedia("(prefers-reduced-motion: reduce)").matches ? 10e3 : 1e3);
tick();
equip();
live.follow();
