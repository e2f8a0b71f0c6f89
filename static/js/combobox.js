// Completes a query while it is typed: a combobox with a listbox as the WAI-ARIA authoring practices have it.
// umbel.js loads it when a field of queries gets the focus.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const fields = new WeakSet();

// The server counts bytes, the field UTF-16 units.
const bytes = (text, units) => encoder.encode(text.slice(0, units)).length;
const units = (text, bytes) => decoder.decode(encoder.encode(text).slice(0, bytes)).length;

// attach makes input a combobox, once. Its list is the element with data-options beside it.
export function attach(input, prefix) {
  const list = input.parentNode.querySelector("[data-options]");
  if (!list || fields.has(input)) return;
  fields.add(input);

  let offers = [];
  let active = -1;
  let asking;
  let waiting;

  function paint() {
    list.hidden = offers.length === 0;
    input.setAttribute("aria-expanded", !list.hidden);
    for (const [i, option] of [...list.children].entries()) option.setAttribute("aria-selected", i === active);
    if (active < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[active].id);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  // An option that was chosen stays so if a later answer has it too. Equal options stay, since one may be being clicked.
  function show(items) {
    const chosen = offers[active]?.text;
    const equal = items.length === offers.length && items.every(({ text }, i) => text === offers[i].text);
    offers = items;
    active = items.findIndex(({ text }) => text === chosen);
    if (!equal) list.replaceChildren(...items.map(({ text, help }, i) => {
      const option = document.createElement("li");
      option.id = `${list.id}-${i}`;
      option.role = "option";
      const [value, words] = [document.createElement("code"), document.createElement("span")];
      value.textContent = text;
      words.textContent = help;
      option.append(value, words);
      return option;
    }));
    paint();
  }

  function close() {
    clearTimeout(waiting);
    asking?.abort();
    show([]);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    const query = new URLSearchParams({ q: input.value, at: String(bytes(input.value, input.selectionStart)) });
    try {
      const response = await fetch(`${prefix}/api/v1/suggest?${query}`, { signal });
      const { items } = response.ok ? await response.json() : { items: [] };
      if (!signal.aborted && document.activeElement === input) show(items);
    } catch {
      if (!signal.aborted) show([]);
    }
  }

  // accept takes an offer over and returns whether it completes a term.
  function accept(i) {
    const { query, at } = offers[i];
    input.value = query;
    const place = units(query, at);
    input.setSelectionRange(place, place);
    const whole = query[place - 1] !== ":";
    if (whole) close();
    else ask();
    return whole;
  }

  function move(by) {
    if (list.hidden) return void ask();
    active = (active + by + offers.length + (active < 0 && by < 0)) % offers.length;
    paint();
  }

  const keys = {
    ArrowDown: () => (move(1), true),
    ArrowUp: () => (move(-1), true),
    Escape: () => !list.hidden && (close(), true),
    Tab: () => !list.hidden && (accept(Math.max(active, 0)), true),
    // Enter runs the query. An offer that was gone to is taken over first, and asked on where it is only a field.
    Enter: () => {
      if (active >= 0 && !accept(active)) return true;
      close();
      return false;
    },
  };
  input.addEventListener("keydown", (e) => {
    const act = !e.ctrlKey && !e.metaKey && !e.altKey && !e.shiftKey && !e.isComposing && keys[e.key];
    if (act && act()) e.preventDefault();
  });
  input.addEventListener("input", () => {
    active = -1;
    paint();
    clearTimeout(waiting);
    waiting = setTimeout(ask, 80);
  });
  input.addEventListener("blur", close);
  list.addEventListener("pointerdown", (e) => e.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (e) => {
    const i = [...list.children].indexOf(e.target.closest("[role=option]"));
    if (i >= 0) accept(i);
  });

  input.role = "combobox";
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  paint();
}
