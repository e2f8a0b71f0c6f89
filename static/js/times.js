// Shows the times of a page in the zone of the browser, for those who chose so. Each keeps the form that the server gave it.

const two = (n, width = 2) => String(n).padStart(width, "0");

function show(time) {
  const at = new Date(time.dateTime), form = time.textContent;
  const clock = form.match(/\d\d:\d\d(:\d\d(\.\d{3})?)?/)?.[0];
  if (!clock || Number.isNaN(+at) || time.matches(".offset, [data-since]")) return;
  let day = "";
  if (/^\d{4}-/.test(form)) day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `;
  else if (/^\d+ [A-Z]/.test(form)) day = `${at.getDate()} ${at.toLocaleString("en", { month: "short" })} `;
  const whole = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
  const text = day + whole.slice(0, clock.length);
  if (text !== form) time.textContent = text;
  time.title = `${time.dateTime.replace("T", " ").replace("Z", "")} UTC`;
}

function showAll(node) {
  const within = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  const time = within?.closest("time");
  if (time) show(time);
  else for (const t of within?.querySelectorAll("time") ?? []) show(t);
}

showAll(document.body);
new MutationObserver((records) => {
  for (const r of records) {
    if (r.type === "characterData" || r.target.nodeName === "TIME") showAll(r.target);
    else r.addedNodes.forEach(showAll);
  }
}).observe(document.body, { childList: true, subtree: true, characterData: true });
