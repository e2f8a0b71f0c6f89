// Umbel in the browser: keeps an open page current and adds shortcuts. Pages work without it. The
// protocol and what a page offers are described in docs/live-protocol.md.

const prefix = document.documentElement.dataset.prefix ?? "";
const $ = (selector, within = document) => within.querySelector(selector);
const main = $("main");
const mark = $("#connection");
const pauseButton = $("#pause");

// ---- Elements ----

// parse turns the HTML of one element, which may be a table row, into that element.
const template = document.createElement("template");
function parse(html) {
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

// aged are the times that are shown as ages: all, or none, for those who chose so.
const exact = "time[data-since]";
const aged = { relative: "time:not(.offset, [data-exact])", local: exact, utc: exact }[document.documentElement.dataset.time ?? ""] ?? "time[data-age]";

// idOf is the id of an element. The property of a form is hidden by a field of that name.
const idOf = (node) => node.getAttribute?.("id");

// What a script makes of a field of queries.
const combobox = /^(role|aria-(expanded|controls|autocomplete|activedescendant))$/;

// morph makes old look like next and touches nothing that is the same, so that focus, hover, selected text and scroll
// positions survive. What was opened or closed stays so, the field in use is left alone.
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
  if (old.matches(aged)) return age(old);
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
  if (!lists.has(tbody)) lists.set(tbody, { order: [...tbody.children].map((row) => row.id), waiting: new Map(), came: [] });
  return lists.get(tbody);
}

function rowIn(tbody, id) {
  const row = document.getElementById(id);
  return row?.parentNode === tbody ? row : null;
}

// update changes the rows that are shown at once and lets the others wait until the list is not in use.
function update(tbody, order, rows) {
  const list = listOf(tbody);
  const later = used.has(tbody); // live.apply settles it
  const busy = later || inUse(tbody);
  if (order) list.order = order;
  for (const [id, row] of rows) {
    const shown = rowIn(tbody, id);
    if (shown) morph(shown, row);
    else {
      if (tbody.firstChild && !list.waiting.has(id)) list.came.push(Date.now());
      list.waiting.set(id, row);
    }
  }
  const wanted = new Set(list.order);
  for (const id of list.waiting.keys()) if (!wanted.has(id)) list.waiting.delete(id);
  for (const row of tbody.children) row.toggleAttribute("data-left", !wanted.has(row.id)); // it changes no more
  if (later) return;
  if (!busy && !rushes(tbody)) settle(tbody);
  showPending(tbody);
}

// takeRows does so with all rows of a page.
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
}

// A finger hovers over nothing, though browsers say so of what it touched last.
let hovers = false;
document.addEventListener("pointermove", (e) => hovers = e.pointerType !== "touch", { capture: true, passive: true });

// used holds, while frames are shown, whether lists were in use before: to ask of a page that has just changed makes the browser
// lay it out for the answer, and once more after rows have moved.
let used = new Map();

// inUse reports whether moving rows now would move them away under the user.
function inUse(tbody) {
  const selection = document.getSelection();
  return (hovers && (tbody.matches(":hover") || slotOf(tbody)?.matches(":hover"))) ||
    tbody.contains(document.activeElement) || $("input:checked", tbody) !== null ||
    (!selection.isCollapsed && selection.containsNode(tbody, true)) ||
    scrolledAway(tbody) || $("dialog[open]") !== null;
}

// rushes reports whether more rows come than anybody could read: 5 a second.
function rushes(tbody) {
  const list = listOf(tbody);
  list.came = list.came.filter((at) => at > Date.now() - 2e3);
  return list.came.length > 10;
}

// A page that was never scrolled need not be laid out to know where its lists are.
let scrolled = scrollY > 0;
document.addEventListener("scroll", () => scrolled = true, { capture: true, passive: true });
const scrolledAway = (tbody) => scrolled && tbody.childElementCount > 0 && tbody.getBoundingClientRect().top < 0;

const tbodies = () => [...main.querySelectorAll("tbody[id]")];

function settled(tbody) {
  const { order } = listOf(tbody);
  return order.length === tbody.childElementCount && order.every((id, i) => tbody.children[i].id === id);
}

// ---- The button that says how many rows wait ----

const slotOf = (tbody) => $(`[data-news="${CSS.escape(tbody.id)}"]`);
let settling;

// showPending says how many rows wait for the list to be out of use.
function showPending(tbody) {
  const slot = slotOf(tbody);
  if (settled(tbody)) return slot?.replaceChildren();
  settling ??= setInterval(settleUnused, 400);
  if (!slot) return;
  const rows = listOf(tbody).waiting.size;
  if (!slot.firstChild) {
    slot.append(element("button", { type: "button", onclick: showNews }));
    if (rows) announce(`${rows} new rows. Press n to show them.`);
  }
  // Where all rows are new, there may have been more.
  const text = !rows ? "New order" : `${rows}${rows === listOf(tbody).order.length ? "+" : ""} new`;
  if (slot.textContent !== text) slot.firstChild.textContent = text;
}

function settleUnused() {
  for (const tbody of tbodies()) {
    if (!settled(tbody) && !(used.get(tbody) ?? inUse(tbody)) && !rushes(tbody)) settle(tbody);
    showPending(tbody);
  }
  tick();
  if (tbodies().every(settled)) settling = clearInterval(settling);
}

function showNews() {
  for (const tbody of tbodies()) {
    const away = scrolledAway(tbody);
    settle(tbody);
    showPending(tbody);
    if (away) tbody.firstElementChild?.scrollIntoView({ block: "nearest" });
  }
  tick();
}

// ---- The socket ----

const timeout = { late: 5e3, beat: 45e3, poll: 5e3, hidden: 5e3, first: 500, longest: 30e3 };
const nothing = new Uint8Array();

const live = {
  socket: null,
  open: false, // the server has answered, and its last socket did not fail
  attempts: 0, // since the last frame
  topic: "", // of the socket
  at: {}, // topic, epoch and seq of the last frame, or topic and page that the first one leads from
  tail: nothing, // the last frames, to which the next one may refer
  refused: "", // a topic that the server does not have
  late: false,
  paused: false,
  hidden: false,
  polling: null,
  polled: false, // the last poll worked
  answered: Date.now(), // when the server last did, by any way
  skew: Date.now() - performance.now(), // the server's clock less the time since the page began, ms
  skews: [], // as the last messages had it
  refreshed: 0, // when it was begun
  frames: [], // to be shown
  applied: 0, // when frames were shown last
  every: 1e3, // ms

  wanted() {
    const topic = main?.dataset.topic ?? "";
    return this.paused || this.hidden || topic === this.refused ? "" : topic;
  },

  // follow makes the socket that of the topic which is wanted.
  follow() {
    const topic = this.wanted();
    if (this.socket && topic !== this.topic) this.drop();
    if (!topic) {
      this.open = false;
      this.poll(false);
    } else if (!this.socket) this.connect(topic);
    paint();
  },

  connect(topic) {
    clearTimeout(this.again);
    if (this.at.topic !== topic) this.at = this.page();
    this.topic = topic;
    this.late = false;
    const url = new URL(prefix + "/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.search = new URLSearchParams(this.at).toString();
    const socket = this.socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    let work = Promise.resolve(); // on one message after the other
    socket.onmessage = ({ data }) => {
      this.answered = Date.now();
      if (!this.open) {
        this.open = true;
        this.poll(false);
      }
      work = work.then(() => this.take(socket, data)).catch(() => {
        if (this.socket !== socket) return;
        this.at = { topic };
        this.lost();
      });
    };
    socket.onclose = ({ code }) => {
      if (code === 4401 || code === 4403) return location.reload(); // to sign in, or to see what may be seen now
      this.lost();
    };
  },

  drop() {
    if (this.socket) this.socket.onclose = this.socket.onmessage = null;
    this.socket?.close();
    this.socket = null;
  },

  // lost tries again later, the later the more often it failed.
  lost() {
    this.drop();
    this.open = false;
    this.attempts++;
    if (this.attempts >= 2 && this.wanted()) this.poll(true);
    const wait = Math.random() * Math.min(timeout.longest, timeout.first * 2 ** this.attempts);
    clearTimeout(this.again);
    this.again = setTimeout(() => !this.socket && this.follow(), wait);
    paint();
  },

  async take(socket, data) {
    if (this.socket !== socket) return;
    if (typeof data === "string") return this.note(JSON.parse(data));
    const starts = new Uint8Array(data)[0] === 1;
    const text = await inflate(starts ? nothing : this.tail, new Uint8Array(data, 1));
    if (this.socket !== socket) return;
    const begin = starts ? text.lastIndexOf(10) + 1 : 0; // behind the frames to which others refer
    const frame = JSON.parse(new TextDecoder().decode(text.subarray(begin)));
    this.tail = starts ? text.slice(0, begin) : joined(this.tail, text).slice(-32768); // what deflate can refer to
    const { epoch = this.at.epoch, seq = this.at.seq + 1 } = frame;
    this.at = { topic: this.topic, epoch, seq };
    this.attempts = 0;
    this.late = false;
    this.frames.push(frame);
    this.applying ??= setTimeout(() => this.apply(), this.applied + this.every - Date.now());
    paint();
  },

  // apply shows the frames that have come.
  apply() {
    this.applying = clearTimeout(this.applying);
    this.applied = Date.now();
    used = new Map(tbodies().map((tbody) => [tbody, inUse(tbody)]));
    try {
      for (const frame of this.frames.splice(0)) apply(frame);
      settleUnused();
    } finally {
      used.clear();
    }
  },

  // note takes what is no frame.
  note(message) {
    if (message.now) {
      if (message.v !== 2) return location.reload(); // by now the server has another script
      this.setClock(message.now - performance.now());
    }
    if (message.late !== undefined) this.late = message.late;
    if (message.error) {
      this.refused = this.topic;
      this.drop();
      this.refresh();
    }
    paint();
  },

  // setClock estimates the server's clock. A message shows it too early by its time under way, so that the latest of the
  // last few is nearest. What is far too early is no delay: the clock was set.
  setClock(skew) {
    if (skew < this.skew - timeout.beat) this.skews = [];
    this.skews = [...this.skews.slice(-4), skew];
    this.skew = Math.max(...this.skews);
  },

  // page is where a page begins that was just loaded.
  page: () => ({ topic: main.dataset.topic, page: main.dataset.page }),

  // startOver asks for everything that is not in at.
  startOver(at = { topic: this.topic }) {
    this.at = at;
    this.frames = []; // of the page before
    this.drop();
    this.follow();
  },

  // poll fetches the page now and then, for want of a socket.
  poll(on) {
    if (!on) this.polling = clearInterval(this.polling);
    else this.polling ??= setInterval(() => this.refresh(), timeout.poll);
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

// inflate returns the bytes that deflate compressed after those of tail.
async function inflate(tail, bytes) {
  const n = tail.length;
  const stored = [0, n, n >> 8, ~n, ~n >> 8]; // the head of a block that is not compressed
  const stream = new Response(joined(joined(stored, tail), bytes)).body.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer()).subarray(n);
}

function joined(a, b) {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

// reorder returns the order of a list whose parts are new ids, and spans of the order before: index and length.
function reorder(before, parts) {
  return parts.flatMap((part) => typeof part === "string" ? part : before.slice(part[0], part[0] + part[1]));
}

// rowFrom returns a row from its HTML, or from that of some of its cells by index.
function rowFrom(list, id, html) {
  if (typeof html === "string") return parse(html);
  const row = (rowIn(list, id) ?? listOf(list).waiting.get(id)).cloneNode(true);
  const cells = [...row.querySelectorAll("td")];
  for (const i in html) cells[i].replaceWith(parse(html[i]));
  return row;
}

// apply shows a frame.
function apply(frame) {
  let strange = false;
  for (const op of frame.ops) {
    const target = document.getElementById(op.id);
    if (!target) strange = true;
    else if (op.html) morph(target, parse(op.html));
    else {
      const order = op.order && reorder(listOf(target).order, op.order);
      update(target, order, Object.entries(op.rows ?? {}).map(([id, html]) => [id, rowFrom(target, id, html)]));
    }
  }
  // The page has another layout by now.
  if (strange && Date.now() - live.refreshed > timeout.poll) live.refresh();
}

function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hourCycle: "h23" });
}

// paint shows how live the page is.
function paint() {
  if (!mark) return;
  const last = () => `last update ${clock(live.answered)}`;
  let [state, text] = ["live", "Live"];
  if (!main?.dataset.topic) [state, text] = ["static", "Not live"];
  else if (live.paused) [state, text] = ["paused", "Paused"];
  else if (live.open) { if (live.late) [state, text] = ["late", "Too slow to update"]; }
  else if (live.polled) text = "Live, each 5 s";
  else if (!navigator.onLine) [state, text] = ["offline", `Offline, ${last()}`];
  else if (Date.now() - live.answered > timeout.late) [state, text] = ["reconnecting", `Reconnecting, ${last()}`];
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
  if (!$(".rail", page)) location.assign(url); // nobody is signed in any more
  live.answered = Date.now();
  document.title = page.title;
  for (const part of ["#past", "#look-back", "#banner", "#history-alert", "#outbox-alert", "#broker", ".rail", ".top .search", ".top .theme"]) {
    const [old, now] = [$(part), $(part, page)];
    if (old && now) morph(old, now);
  }
  keepList(next);
  if (settleAll) for (const tbody of tbodies()) tbody.replaceChildren();
  morph(main, next);
  tick();
  equip();
  live.startOver(live.page()); // the page is ahead of the frames
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

// present is the time: that of the server, or the end of the trace that it shows.
function present() {
  const end = $("#trace")?.dataset.at;
  return end ? Date.parse(end) : performance.now() + live.skew;
}

// Ages are those of the instant that the page shows; that of the instant itself is told by now.
function age(time) {
  const instant = $("#past")?.dataset.at;
  const since = "since" in time.dataset;
  const now = instant && !since ? Date.parse(instant) : present();
  const seconds = (now - Date.parse(time.dateTime)) / 1000;
  if (Number.isNaN(seconds)) return;
  // Clocks differ a little: what is due in less than 5 s has just happened.
  const past = span(Math.max(0, seconds));
  const text = since ? `${past} ago. ` : seconds < -5 ? `in ${span(-seconds)}` : "age" in time.dataset ? past : `${past} ago`;
  if (time.textContent !== text) time.textContent = text;
}

// tick redraws ages, but none that would be read aloud each time.
function tick() {
  for (const time of document.querySelectorAll(aged)) if (!time.closest("[role=alert]")) age(time);
}

// Under the pointer, what may be cut gets a title with all of it.
document.addEventListener("pointerover", (e) => {
  const target = e.target.closest(`.name, td code, .copy, ${aged}`);
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

// ---- Times past ----

document.addEventListener("change", (e) => {
  if (e.target instanceof HTMLInputElement && e.target.id === "scrubber") e.target.form?.requestSubmit();
});

// ---- Keys ----

// keys are shortcuts by key: what each does in words, and a function. keys.js has most of them.
const keys = {};
const { keys: shortcuts, palette } = document.documentElement.dataset;
try {
  if (shortcuts) (await import(shortcuts)).attach(keys, { prefix, palette, live, pause, showNews, copy, say });
} catch { /* the page works without them */ }

// ---- Start ----

pauseButton?.addEventListener("click", pause);
const rate = $("#rate");
if (rate) {
  const name = "umbel.rate";
  try { rate.value = localStorage.getItem(name) ?? String(live.every); } catch { /* the usual one */ }
  live.every = Number(rate.value) || live.every;
  rate.value = String(live.every);
  rate.onchange = () => {
    live.every = Number(rate.value);
    try { localStorage.setItem(name, rate.value); } catch { /* for this page only */ }
  };
}

let hiding;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  const hide = (hidden) => {
    live.hidden = hidden;
    live.follow();
  };
  if (document.hidden) hiding = setTimeout(hide, timeout.hidden, true);
  else hide(false);
});
for (const event of ["online", "offline"]) addEventListener(event, paint);
addEventListener("online", () => live.socket || live.follow());

setInterval(() => {
  if (live.open && Date.now() - live.answered > timeout.beat) live.lost();
  paint();
}, 1000);
setInterval(tick, matchMedia("(prefers-reduced-motion: reduce)").matches ? 10e3 : 1e3);
tick();
equip();
$(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on phones, the bar is wider than the screen
live.follow();

export { inflate, live, morph, reorder, span }; // for tests
