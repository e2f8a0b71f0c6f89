// Shortcuts of every page. umbel.js loads it before a page is live; scripts of parts of a page add theirs to the table.

const $ = (selector, within = document) => within.querySelector(selector);

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

// Pages by the key after g. Those that are not in the navigation have no shortcut.
const places = {
  o: "/", t: "/tasks", y: "/types", f: "/workflows", e: "/failures", d: "/duplicates", w: "/workers", q: "/queues", s: "/schedules",
  x: "/outbox", a: "/alerts", ",": "/settings",
};

// step moves the focus to the link of a neighbouring row; Enter then opens it.
function step(by) {
  const rows = [...document.querySelectorAll("main tbody[id] > tr")].filter((row) => $("a", row));
  const now = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[now < 0 ? 0 : Math.min(Math.max(now + by, 0), rows.length - 1)];
  if (row) $("a", row).focus();
}

function follow(selector) {
  const link = $(selector);
  if (link) location.assign(link.href);
}

// followTen follows a link and those of that name on the pages behind it, ten in all, and shows the last page.
async function followTen(selector) {
  let href = $(selector)?.href;
  let last;
  for (let i = 0; href && i < 10; i++) {
    last = href;
    if (i === 9) break;
    const response = await fetch(href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    href = $(selector, page)?.getAttribute("href");
  }
  if (last) location.assign(last);
}

// open opens the menu around what the selector finds, or that it finds, and moves the focus into it.
function open(selector) {
  const found = $(selector);
  const menu = found?.closest("details");
  if (!menu) return;
  menu.open = true;
  const first = found.matches("input") ? found : $(".sheet :is(a, button, input, select)", menu);
  (first ?? $("summary", menu)).focus();
}

function nextTheme() {
  const buttons = [...document.querySelectorAll(".theme button")];
  buttons[(buttons.findIndex((b) => b.ariaPressed === "true") + 1) % buttons.length]?.click();
}

// Single keys can be switched off, for those who speak to their machine.
const setting = {
  get off() { try { return localStorage.getItem("umbel.keys") === "off"; } catch { return false; } },
  set off(value) { try { localStorage.setItem("umbel.keys", value ? "off" : "on"); } catch { /* kept for this page only */ } },
};

// attach adds the shortcuts to keys and serves them. The page offers what umbel.js does for it.
export function attach(keys, page) {
  const { prefix, live, copy, say } = page;

  // visit shows another page, as of the same instant.
  function visit(path) {
    const url = new URL(prefix + path, location.href);
    if ($("#past")) url.searchParams.set("at", new URL(location.href).searchParams.get("at"));
    location.assign(url);
  }

  async function copyText(text, words) {
    const button = element("button", { className: "hidden" });
    button.dataset.copy = text;
    document.body.append(button);
    await copy(button);
    button.remove();
    say(words);
  }

  // A page of the past has its instant in the address; any other gets the last moment. The server writes the relative
  // times of the query, and the span of the chart, as they are then. Pages that only show now are copied as they are.
  async function copyLink() {
    const url = new URL(location.href);
    if (!$("#past")) url.searchParams.set("at", "now");
    url.searchParams.set("pin", "1");
    const page = await fetch(url);
    return copyText(page.ok ? page.url : location.href, page.ok ? "Copied the link to this instant" : "Copied the link");
  }

  // The id or name is that of the row in focus, else that of what the page shows.
  function copyID() {
    const row = document.activeElement?.closest("main tbody tr");
    const href = row && $("a.open, th a, a", row)?.pathname;
    if (href) copyText(decodeURIComponent(href.split("/").pop()), "Copied the ID of this row");
    else $("main .head [data-copy], main h1 ~ [data-copy]")?.click();
  }

  const showPalette = async () => (await import(page.palette)).open({ prefix, keys, visit });
  let dialog;
  const showHelp = () => (dialog ??= help()).showModal();
  let off = setting.off;

  Object.assign(keys, {
    "/": ["search tasks", () => ($("#query") ?? $("input[name=q]"))?.focus()],
    "j": ["next row", () => step(1)],
    "k": ["row before", () => step(-1)],
    "n": ["show new rows", page.showNews],
    "p": ["pause and resume", page.pause],
    "r": ["reload now", () => live.refresh()],
    "f": ["go to the filters", () => $("#query, main form:is([data-filter], [method=get]) :is(input:not([type=hidden]), select)")?.focus()],
    "a": ["open the actions", () => open("main details.tools summary, main .tools details summary")],
    "v": ["save a view", () => open("#view-name")],
    "c": ["choose columns", () => open(".more-columns a, .pick")],
    "e": ["export", () => open("a[download]")],
    "y": ["copy the ID", copyID],
    "Y": ["copy the link to this instant", copyLink],
    "[": ["one event back in time", () => follow("#past-before, #look-back")],
    "]": ["one event on", () => follow("#past-after")],
    "{": ["ten events back in time", () => $("#past") ? followTen("#past-before") : follow("#look-back")],
    "}": ["ten events on", () => followTen("#past-after")],
    "0": ["back to now", () => follow("#past-now")],
    "t": ["next theme", nextTheme],
    "?": ["show this help", showHelp],
  });
  for (const [key, path] of Object.entries(places)) {
    const link = $(`.rail li a[href="${CSS.escape(prefix + path)}"]`);
    if (link) keys[`g ${key}`] = [link.title, () => visit(path)];
  }

  // What the browser does by itself is listed too.
  const always = { "⌘ K": "or Ctrl+K: go to anything", "Enter": "open the row", "Esc": "close what is open" };

  function help() {
    const facts = element("dl");
    const lines = [...Object.entries(always), ...Object.entries(keys).filter(([key]) => !always[key]).map(([key, [words]]) => [key, words])];
    for (const [key, words] of lines) {
      const names = (key.trim() ? key.split(" ") : ["Space"]).map((name) => element("kbd", { textContent: name }));
      facts.append(element("dt", {}, ...names), element("dd", { textContent: words }));
    }
    const box = element("input", { type: "checkbox", checked: !off, onchange: () => setting.off = off = !box.checked });
    const dialog = element("dialog", { className: "help" },
      element("h2", { textContent: "Keyboard", id: "help-title" }), facts,
      element("label", {}, box, " Single keys are shortcuts"),
      element("form", { method: "dialog" }, element("button", { className: "button", textContent: "Close" })));
    dialog.setAttribute("aria-labelledby", "help-title");
    document.body.append(dialog);
    return dialog;
  }

  let lastKey = "";
  let lastKeyAt = 0;
  document.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if ((e.metaKey || e.ctrlKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === "k" && page.palette) {
      e.preventDefault();
      if (!$("dialog[open]")) showPalette();
      return;
    }
    if (off || e.ctrlKey || e.metaKey || e.altKey) return;
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

  $("#pause")?.before(element("button", {
    type: "button", className: "button quiet", textContent: "?", title: "Keyboard shortcuts (?)", onclick: showHelp,
  }));
}
