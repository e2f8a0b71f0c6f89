// Rows that are chosen: boxes in a list that belong to a form, which says what is to be done with them. The form and
// its boxes work without this; it counts them, and chooses ranges and whole pages.

const attached = new WeakSet();

// attach serves a form once. keys are the shortcuts of the page, which it adds to.
export function attach(form, keys) {
  if (attached.has(form)) return;
  attached.add(form);
  const boxes = () => [...document.querySelectorAll(`tbody input[type="checkbox"][form="${CSS.escape(form.id)}"]`)];
  const chosen = () => boxes().filter((box) => box.checked);
  const whole = form.querySelector("input[name=q]"); // everything that matches, beyond this page
  const said = form.querySelector("output");
  let last = null; // the box that was touched last

  // paint says how many are chosen. All that match are so only beyond a whole page.
  function paint() {
    const [all, some] = [boxes(), chosen()];
    const full = all.length > 0 && some.length === all.length;
    if (whole && !full) whole.checked = false;
    const master = document.querySelector("[data-pick-all]");
    if (master) {
      master.checked = full;
      master.indeterminate = some.length > 0 && !full;
    }
    if (!said) return;
    const text = full && all.length > 1 ? `All ${all.length} on this page selected` : `${some.length} selected`;
    if (said.value !== text) said.value = text;
  }

  // choose gives all boxes from the last one to this one the same value.
  function choose(box, checked, range) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(box)];
    const part = range && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [box];
    for (const b of part) b.checked = checked;
    last = box;
    paint();
  }

  function pick(range) {
    const box = document.activeElement?.closest("tr")?.querySelector(`input[form="${CSS.escape(form.id)}"]`);
    if (box) choose(box, range || !box.checked, range);
  }

  document.addEventListener("click", (e) => {
    if (e.target.matches?.(`tbody input[form="${CSS.escape(form.id)}"]`)) choose(e.target, e.target.checked, e.shiftKey);
    else if (e.target.matches?.("[data-pick-all]")) {
      for (const box of boxes()) box.checked = e.target.checked;
      paint();
    }
  });
  new MutationObserver(paint).observe(document.getElementById(form.dataset.rows), { childList: true });
  keys["x"] = ["select the row", () => pick(false)];
  keys["X"] = ["select the rows up to this one", () => pick(true)];
  keys["Escape"] = ["select nothing", () => {
    for (const box of boxes()) box.checked = false;
    paint();
  }];
  paint();
}
