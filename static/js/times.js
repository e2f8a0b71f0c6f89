// Shows the times of a page in the zone of the browser, for those who chose so. Each keeps the form that the server gave it.

const two = (n, width = 2) => String(n).padStart(width, "0");

const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
const stamp = (at) => day(at) + clockOf(at);

function show(time) {
  const at = new Date(time.dateTime), form = time.textContent;
  const clock = form.match(/\d\d:\d\d(:\d\d(\.\d{3})?)?/)?.[0];
  if (!clock || Number.isNaN(+at) || time.matches(".offset, [data-since]")) return;
  const date = /^\d{4}-/.test(form) ? day(at) : /^\d+ [A-Z]/.test(form) ? `${at.getDate()} ${at.toLocaleString("en", { month: "short" })} ` : "";
  const text = date + clockOf(at).slice(0, clock.length);
  if (text !== form) time.textContent = text;
  time.title = `${stamp(at)} local, ${time.dateTime.replace("T", " ").replace("Z", "")} UTC`;
}

// title shows the time that the title of a drawing begins with.
function title(of) {
  const at = new Date(of.dataset.at);
  if (Number.isNaN(+at)) return;
  const text = of.textContent.replace(/^\S+ \S+ UTC/, stamp(at));
  if (text === of.textContent) return;
  of.textContent = text;
  of.closest("a")?.setAttribute("aria-label", text);
}

const marked = "time, title[data-at]";
const each = (node) => node.nodeName === "TIME" ? show(node) : title(node);

function showAll(node) {
  const within = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  const one = within?.closest(marked);
  if (one) each(one);
  else for (const t of within?.querySelectorAll(marked) ?? []) each(t);
}

showAll(document.body);
new MutationObserver((records) => {
  for (const r of records) {
    if (r.type === "characterData" || r.target.matches?.(marked)) showAll(r.target);
    else r.addedNodes.forEach(showAll);
  }
}).observe(document.body, { childList: true, subtree: true, characterData: true });
