// Rows that are chosen: boxes in a list that belong to a form, which says what is to be done with them. The form and
// its boxes work without this; it counts them, and chooses ranges and whole pages.

const attached = new WeakSet();

// attach serves a form once. keys are the shortcuts of the page, which it adds to.
export function attach(form, keys) {
  if (attached.has(form)) return;
  attached.add(form);
  const box = `tbody input[form="${CSS.escape(form.getAttribute("id"))}"]`; // form.id is a field here
  const boxes = () => [...document.querySelectorAll(box)];
  const chosen = () => boxes().filter((box) => box.checked);
  let last = chosen()[0]; // the box that was touched last, maybe before this ran

  // paint says how many are chosen. All that match are so only beyond a whole page.
  function paint() {
    const [all, some] = [boxes(), chosen()];
    const full = all.length > 0 && some.length === all.length;
    const everything = form.querySelector("input[name=q]"); // that matches, beyond this page
    if (everything && !full) everything.checked = false;
    const master = document.querySelector("[data-pick-all]");
    if (master) {
      master.checked = full;
      master.indeterminate = some.length > 0 && !full;
    }
    const said = form.querySelector("output");
    const text = full && all.length > 1 ? `All ${all.length} on this page selected` : `${some.length} selected`;
    if (said.value !== text) said.value = text;
  }

  // choose gives all boxes from the last one to this one the same value.
  function choose(one, checked, range) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(one)];
    const part = range && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [one];
    for (const b of part) b.checked = checked;
    last = one;
    paint();
  }

  function pick(range) {
    const one = boxes().find((b) => b.closest("tr").contains(document.activeElement));
    if (one) choose(one, range || !one.checked, range);
  }

  document.addEventListener("click", (e) => {
    if (e.target.matches?.(box)) choose(e.target, e.target.checked, e.shiftKey);
    else if (e.target.matches?.("[data-pick-all]")) {
      for (const b of boxes()) b.checked = e.target.checked;
      paint();
    }
  });
  new MutationObserver(paint).observe(document.getElementById(form.dataset.rows), { childList: true });
  keys["x"] = ["select the row", () => pick(false)];
  keys["X"] = ["select the rows up to this one", () => pick(true)];
  keys["Escape"] = ["select nothing", () => {
    for (const b of boxes()) b.checked = false;
    paint();
  }];
  paint();
}
