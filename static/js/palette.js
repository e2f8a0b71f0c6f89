// A field that finds pages, tasks, workers, queues, views and what can be done on this page: a combobox with a listbox in
// a dialog. keys.js loads it on ⌘K or Ctrl+K.

let dialog;
let field;
let list;
let said;
let offers = [];
let active = 0;
let asking;
let waiting;
let page; // of keys.js

function element(tag, properties, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

// open shows the palette, empty.
export function open(from) {
  page = from;
  dialog ??= build();
  field.value = "";
  dialog.showModal();
  field.focus();
  ask();
}

function build() {
  field = element("input", { type: "text", autocomplete: "off", spellcheck: false, placeholder: "Find a page, task, worker, queue, view or action", maxLength: 200 });
  for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Go to" })) {
    field.setAttribute(name, value);
  }
  list = element("ul", { id: "palette-list", role: "listbox", ariaLabel: "What there is" });
  said = element("p", { className: "hidden", role: "status" });
  const built = element("dialog", { className: "palette", ariaLabel: "Go to" }, field, list, said);
  built.setAttribute("aria-label", "Go to");
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    show(local());
    waiting = setTimeout(ask, 80);
  });
  field.addEventListener("keydown", (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.isComposing) return;
    if (by && offers.length) mark((active + by + offers.length) % offers.length);
    else if (e.key === "Enter") take(active);
    if (by || e.key === "Enter") e.preventDefault();
  });
  list.addEventListener("pointerdown", (e) => e.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (e) => take([...list.children].indexOf(e.target.closest("[role=option]"))));
  built.addEventListener("click", (e) => e.target === built && built.close()); // beside it
  built.addEventListener("close", () => {
    clearTimeout(waiting);
    asking?.abort();
  });
  document.body.append(built);
  return built;
}

const words = () => field.value.toLowerCase().split(/\s+/).filter(Boolean);

// local returns the pages and actions that have all words.
function local() {
  const found = [];
  const add = (kind, text, act, key = "") => {
    const lower = text.toLowerCase();
    if (text && words().every((word) => lower.includes(word)) && !found.some((o) => o.text === text)) found.push({ kind, text, act, key });
  };
  const keyOf = (text) => Object.entries(page.keys).find(([key, [label]]) => key.startsWith("g ") && label === text)?.[0];
  for (const link of document.querySelectorAll(".rail :is(li, .version) a")) add("Page", link.title, () => page.visit(link.pathname.slice(page.prefix.length)), keyOf(link.title));
  for (const e of document.querySelectorAll("main :is(.button, .tools .sheet a, a[download]):is(a, button):not(table *, .more-columns *, form:has(input:not([type=hidden])) *, form[data-select] *, [data-copy], [disabled])")) {
    add("Action", e.textContent.replace(/\s+/g, " ").trim().slice(0, 80), () => e.click());
  }
  for (const [key, [label, act]] of Object.entries(page.keys)) {
    if (!/^(g .|[jk xX0\]}]|Escape)$/.test(key)) add("Action", label[0].toUpperCase() + label.slice(1), act, key);
  }
  return found;
}

async function ask() {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const q = field.value.trim();
  let found = [];
  if (q) {
    try {
      const response = await fetch(`${page.prefix}/api/v1/search?${new URLSearchParams({ q })}`, { signal });
      if (response.ok) found = (await response.json()).items;
    } catch { /* what the page knows is still shown */ }
    if (signal.aborted) return;
  }
  show([...local(), ...found.map(({ kind, text, path }) => ({ kind: kind[0].toUpperCase() + kind.slice(1), text, key: "", act: () => page.visit(path) }))]);
}

function show(items) {
  const chosen = offers[active];
  offers = items;
  list.replaceChildren(...items.map(({ kind, text, key }, i) => {
    const option = element("li", { id: `palette-${i}`, role: "option" }, element("span", { textContent: text }));
    if (key) option.append(element("span", {}, ...key.split(" ").flatMap((name) => [element("kbd", { textContent: name }), " "])));
    option.append(element("small", { textContent: kind }));
    return option;
  }));
  list.hidden = !items.length;
  field.setAttribute("aria-expanded", String(items.length > 0));
  const text = items.length ? `${items.length} found` : "Nothing found";
  if (said.textContent !== text) said.textContent = text;
  said.classList.toggle("hidden", items.length > 0);
  mark(Math.max(0, items.findIndex((o) => active > 0 && o.text === chosen?.text)));
}

function mark(i) {
  active = i;
  for (const [n, option] of [...list.children].entries()) option.setAttribute("aria-selected", String(n === i));
  const option = list.children[i];
  if (!option) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function take(i) {
  const offer = offers[i];
  if (!offer) return;
  dialog.close();
  offer.act();
}
