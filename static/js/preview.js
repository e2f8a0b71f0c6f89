// A look at the task of the row in focus, beside the list. It shows parts of the task's own page.

const parts = ["#task-head", "#task-texts", "#task-runs"];

let panel;
let shown = ""; // address of the task
let asking;

const rowLink = () => document.activeElement?.closest("tbody tr")?.querySelector("a.open");

// toggle opens the preview of the row in focus, or closes it.
export function toggle() {
  const link = rowLink();
  if (!link || link.href === shown) return close();
  show(link.href);
}

function close() {
  asking?.abort();
  panel?.remove();
  panel = undefined;
  shown = "";
}

async function show(href) {
  asking?.abort();
  asking = new AbortController();
  shown = href;
  try {
    const response = await fetch(href, { signal: asking.signal, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    fill(parts.map((part) => page.querySelector(part)).filter(Boolean), href);
  } catch (error) {
    if (error.name !== "AbortError") close();
  }
}

function fill(list, href) {
  if (!panel) {
    panel = document.createElement("aside");
    panel.className = "peek";
    panel.setAttribute("aria-label", "Preview");
    document.body.append(panel);
  }
  for (const part of list) for (const e of [part, ...part.querySelectorAll("[id]")]) e.removeAttribute("id");
  const whole = document.createElement("a");
  Object.assign(whole, { className: "button", href, textContent: "Open the task" });
  const shut = document.createElement("button");
  Object.assign(shut, { className: "button quiet", type: "button", textContent: "Close", onclick: close });
  const line = document.createElement("p");
  line.className = "line";
  line.append(whole, shut);
  panel.replaceChildren(line, ...list);
}

// The preview follows the focus from row to row.
document.addEventListener("focusin", () => {
  const link = panel && rowLink();
  if (link && link.href !== shown) show(link.href);
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || !panel) return;
  e.stopPropagation(); // it closes one thing
  close();
}, true);
