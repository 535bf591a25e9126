// Small pieces that pages are made of. Text becomes text nodes: nothing from the service is ever
// taken for markup.

export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") throw new Error("no inline styles");
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : String(child));
  }
  return made;
}

const GOOD = ["active", "available", "manageable", "ACTIVE", "power on", "running", "ok"];
const BAD = ["error", "ERROR", "down", "crashed"];
const ODD = ["unknown", "UNKNOWN"];
export function tag(word, title) {
  if (word === null || word === undefined || word === "") return h("span", { class: "soft" }, "–");
  const text = String(word);
  let kind = "";
  if (GOOD.includes(text)) kind = "good";
  else if (BAD.includes(text) || text.includes("failed")) kind = "bad";
  else if (text.includes("hold") || text === "PENDING") kind = "hold";
  else if (ODD.includes(text) || text.includes("wait")) kind = "warn";
  else if (/ing$|BUILD|REBOOT|RESIZE|verif/.test(text)) kind = "busy";
  return h("span", { class: `tag ${kind}`, title }, text);
}

function elapsed(text) {
  const seconds = Math.max(0, (Date.now() - Date.parse(text)) / 1000);
  const [amount, unit] = seconds < 90 ? [seconds, "s"] : seconds < 5400 ? [seconds / 60, "min"]
    : seconds < 129600 ? [seconds / 3600, "h"] : [seconds / 86400, "d"];
  return `${Math.round(amount)} ${unit}`;
}

export function ago(text) {
  return text ? h("time", { class: "ago", datetime: text, title: text }, elapsed(text)) : "–";
}

// Time goes on though nothing happens.
export function older() {
  document.querySelectorAll("time.ago").forEach((one) => { one.textContent = elapsed(one.dateTime); });
}

export function moment(text) {
  return h("time", { datetime: text, title: text }, new Date(text).toLocaleString("sv"));
}

export function table(columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty || "Nothing here.");
  rows.forEach((row) => labelled(row, columns));
  const numeric = (at) => (rows.some((row) => row.children[at] && row.children[at].classList.contains("num")) ? "num" : null);
  return h("div", { class: "scroll" }, h("table", { class: "stacks" },
    h("thead", {}, h("tr", {}, columns.map((name, at) => h("th", { scope: "col", class: numeric(at) }, name)))),
    h("tbody", {}, rows)));
}

// Where there is no room for columns, each cell says what it is.
export function labelled(row, columns) {
  [...row.children].forEach((cell, at) => { if (columns[at]) cell.setAttribute("data-label", columns[at]); });
  return row;
}

export const number = (value) => (typeof value === "number" ? value.toLocaleString("en") : value);

export function short(id) {
  return id ? h("code", { title: id }, id.length > 12 ? `${id.slice(0, 8)}…` : id) : "–";
}

// A project, by its name as far as that is known.
export function owner(id, names) {
  return names.has(id) ? h("span", { class: "name", title: id }, names.get(id)) : short(id);
}

export function power(one) {
  const word = one.power_state || "unknown";
  return [tag(word, one.power_state_reason), one.target_power_state ? h("span", { class: "soft" }, ` → ${one.target_power_state}`) : null];
}

export function provision(one) {
  const target = one.target_provision_state;
  return [tag(one.provision_state), target && target !== one.provision_state ? h("span", { class: "soft aim" }, ` → ${target}`) : null];
}

export function why(one) {
  const told = one.last_error || (!one.maintenance && one.fault && `fault: ${one.fault}`);
  // An outage is the reason of the maintenance and the last error too: told once.
  const held = one.maintenance && (!told || one.maintenance_reason !== told) && `maintenance: ${one.maintenance_reason || one.fault || "no reason was given"}`;
  const reasons = [told, held, one.fault ? null : one.power_state_reason, one.wait_reason];
  return [...new Set(reasons.filter(Boolean))].map((text) => h("div", {}, text));
}

export async function quietly(promise, otherwise) {
  try { return await promise; } catch { return otherwise; }
}

export function raw(one) {
  return h("details", {}, h("summary", {}, "Raw JSON"), h("pre", {}, JSON.stringify(one, null, 2)));
}

export function toast(text, bad) {
  const shown = h("div", { class: bad ? "bad" : "" }, text, bad ? h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => shown.remove() }, "×") : null);
  document.getElementById("toast").append(shown);
  setTimeout(() => shown.remove(), bad ? 20000 : 4000);
}

// Asks for some things in a dialog; null if nobody wants it after all. Asked with the same fields again, they have what was said,
// and `problem` says what was wrong with it.
const ASIDE = "aside";
export function questions(title, fields, problem) {
  return new Promise((answer) => {
    const dialog = h("dialog", { "aria-label": title, "data-at": location.hash });
    const form = h("form", {}, h("h2", {}, title), fields.map(([about, field]) => h("label", {}, about, field)),
      problem ? h("div", { class: "trouble", role: "alert" }, problem) : null, h("div", { class: "bar" }, h("button", { class: "main" }, "Go on"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
    form.addEventListener("submit", (event) => { event.preventDefault(); dialog.close("said"); });
    dialog.addEventListener("close", () => { if (dialog.returnValue === ASIDE) return; answer(dialog.returnValue === "said" ? fields.map(([, field]) => field.value) : null); dialog.remove(); });
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
    fields[0][1].focus();
  });
}

// A question belongs to its page: who goes elsewhere has called it off. While its user logs in again it waits, with what was said so far.
export function onlyQuestionsOf(place, isWaiting) {
  document.querySelectorAll("dialog").forEach((one) => {
    if (isWaiting) { one.close(ASIDE); return; }
    if (one.returnValue === ASIDE) { one.returnValue = ""; one.showModal(); }
    if (one.dataset.at !== place) one.close();
  });
}

export const question = (title, about, field, problem) => questions(title, [[about, field]], problem).then((said) => said && said[0]);

// Little is left from here on.
const NEARLY = 0.9;
export function meter(used, limit) {
  const canvas = h("div", { class: used > limit * NEARLY ? "meter full" : "meter", role: "meter", "aria-valuenow": used, "aria-valuemin": 0, "aria-valuemax": limit,
    "aria-label": `${used} of ${limit}` });
  const filled = h("i");
  filled.style.width = `${limit > 0 ? Math.min(100, (100 * used) / limit) : 0}%`;
  canvas.append(filled);
  return canvas;
}

export function copy(text) {
  return h("button", { type: "button", "aria-label": `Copy ${text}`, onclick: async () => {
    // Browsers lend the clipboard to pages over HTTPS and on this machine only.
    try { await navigator.clipboard.writeText(text); toast("Copied."); } catch { window.prompt("Copy this:", text); }
  } }, "Copy");
}
