// Which page, who is logged in, and what is live.

import { BACK, borrow, calls, can, follow, get, leave, login, session } from "./api.js";
import { capacity } from "./capacity.js";
import { fleet, heardOf, howFar } from "./fleet.js";
import { oneNode, oneServer } from "./machine.js";
import * as pages from "./pages.js";
import { h, older, onlyQuestionsOf } from "./ui.js";

const PAGES = [
  ["attention", "Attention", pages.attention], ["fleet/node", "Nodes", fleet], ["fleet/server", "Servers", fleet], ["pending", "Pending", pages.pending],
  ["events", "Events", pages.events], ["webhooks", "Webhooks", pages.webhooks], ["images", "Images", pages.images], ["capacity", "Capacity", capacity],
  ["health", "Health", pages.health],
];
const MACHINES = { node: oneNode, server: oneServer };
const page = document.getElementById("page");
const LIVE_PAGES = new Set(["attention", "node", "server", "pending"]);
// What no event tells of is asked for again from time to time, while somebody looks.
const ASKED_AGAIN = new Set(["health", "capacity", "images", "webhooks"]);
const ASK_AGAIN_MS = 10000;
const AWAY_MS = 2000;
let shownAt = "";
let turn = 0;
let stream = null;
let again = null;
let later = null;
let missed = false;
// Who was here last, and what they had typed on which page when their session ended.
let last = null;
let unsent = null;
// Where on the page to come was somebody who goes back to it.
let cameBack = history.state;

// An address that somebody cut off in the middle is still one.
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

function where() {
  const [path, query] = location.hash.replace(/^#\//, "").split("?");
  const [name, ...words] = path.split("/").map(decoded);
  return { name: name || "attention", words, query: query || "" };
}

// Pages that are drawn again by themselves, unless somebody writes there; on others somebody chooses.
const isRenewed = () => document.getElementById("again") || LIVE_PAGES.has(where().name) || ASKED_AGAIN.has(where().name);

const isWriting = () => page.contains(document.activeElement) && document.activeElement.matches("input");

async function show(quietly) {
  // Who went elsewhere meanwhile is left alone.
  if (quietly && (!isRenewed() || isWriting())) return;
  const { name, words, query } = where();
  if (!session || name === "login") return showLogin();
  const isSame = !last || (last.name === session.name && last.project === session.project);
  onlyQuestionsOf(isSame ? location.hash : null);
  if (!isSame) unsent = null;
  last = session;
  document.getElementById("top").hidden = false;
  draw(name === "fleet" ? `fleet/${words[0] || "node"}` : name);
  const mine = ++turn;
  // First, so that nothing happens unheard between what is shown and what is told.
  if (!stream) await listen();
  if (mine !== turn) return;
  calls.length = 0;
  let was = null;
  if (!quietly) {
    [was, cameBack] = [cameBack, null];
    page.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading …"));
  }
  const isMachine = Object.hasOwn(MACHINES, name) && words[0];
  let made;
  try {
    if (isMachine) made = await MACHINES[name](encodeURIComponent(words[0]));
    else {
      const found = PAGES.find(([word]) => word.split("/")[0] === name);
      if (!found) throw new Error(`There is no page ${name}; choose one above.`);
      made = await (name === "fleet" ? fleet(words[0], query, was ? was.rows : 0) : found[2](query));
    }
  } catch (why) {
    // What was there stays while the service, or its database, is away: it is asked for again when that is back.
    if (quietly && [0, 503].includes(why.status)) {
      if (document.getElementById("live").className === "on") { clearTimeout(later); later = setTimeout(() => soon(0), AWAY_MS); }
      return;
    }
    if (isMachine && why.status === 404) made = gone(name, words[0], why, quietly);
    else made = [h("h1", {}, "That did not work"), h("div", { class: "trouble", role: "alert" }, why.message), h("button", { id: "again", onclick: () => show() }, "Try again")];
  }
  if (mine !== turn) return;
  const scrolled = quietly ? window.scrollY : 0;
  const kept = quietly ? keep() : () => {};
  page.replaceChildren(...made.flat(Infinity).filter(Boolean));
  kept();
  typedAgain();
  if (quietly) window.scrollTo(0, scrolled);
  behind();
  if (shownAt !== location.hash && !quietly) {
    page.focus({ preventScroll: true });
    window.scrollTo(0, was ? was.y : 0);
  }
  shownAt = location.hash;
  const heading = page.querySelector("h1 .long") || page.querySelector("h1");
  document.title = `${heading ? heading.textContent.trim() : "Siderite"} · Siderite`;
}

// Who goes back to a page, or has it loaded anew, finds the place on it that was left.
history.scrollRestoration = "manual";
const left = () => history.replaceState({ y: window.scrollY, rows: where().name === "fleet" ? howFar() : 0 }, "");
document.addEventListener("click", ({ target }) => { if (target.closest("main a")) left(); }, true);
window.addEventListener("beforeunload", left);
window.addEventListener("popstate", ({ state }) => { cameBack = state; });

// Who has a machine deleted, or looks at it while others do, has done nothing wrong.
function gone(kind, id, why, wasHere) {
  return [h("h1", {}, wasHere ? "It is gone" : "It is not there"), h("p", {}, wasHere ? `This ${kind} was deleted.` : why.message),
    h("p", { class: "bar" }, h("a", { href: `#/fleet/${kind}` }, `All ${kind}s`), h("a", { href: `#/events?${new URLSearchParams({ resource: id })}` }, "What the log tells of it"))];
}

// A page that is drawn again leaves the keyboard where it was, open what was open, and written what was written.
function keep() {
  const label = (one) => `${one.tagName} ${one.getAttribute("aria-label") || one.textContent.trim()}`;
  const all = () => [...page.querySelectorAll("a, button, summary, input, select, [tabindex]")];
  const before = all();
  const held = before.indexOf(document.activeElement);
  const same = held < 0 ? [] : before.filter((one) => label(one) === label(before[held]));
  const open = [...page.querySelectorAll("details[open] > summary")].map(label);
  const written = new Map(before.filter((one) => one.matches("input") && one.value !== one.defaultValue).map((one) => [label(one), one.value]));
  return () => {
    page.querySelectorAll("input").forEach((one) => { if (written.has(label(one))) one.value = written.get(label(one)); });
    page.querySelectorAll("details > summary").forEach((one) => { if (open.includes(label(one))) one.parentElement.open = true; });
    if (held < 0) return;
    const again = all().filter((one) => label(one) === label(before[held]));
    const next = again[Math.min(same.indexOf(before[held]), again.length - 1)];
    // Never on another verb: who presses twice shall not have asked for that one.
    const stop = next && next.disabled ? next.closest("[role=group]") : next;
    (stop || page).focus({ preventScroll: true });
  };
}

function draw(name) {
  const nav = document.getElementById("nav");
  const who = document.getElementById("who");
  who.textContent = session.name === session.project ? session.name : `${session.name} in ${session.project}`;
  who.title = `You are ${session.name}, in project ${session.project}.`;
  nav.replaceChildren(...PAGES.filter(([word]) => can("admin") || !["health", "capacity"].includes(word)).map(([word, label]) =>
    h("a", { href: `#/${word}`, "aria-current": word === name ? "page" : null }, label)));
}

function behind() {
  const footer = document.getElementById("behind");
  const distinct = [...new Set(calls.map((call) => `${call.method} ${call.path.replaceAll("%2C", ",")}`))];
  const few = distinct.slice(0, 3).map((text) => h("code", {}, text));
  const rest = distinct.slice(3);
  footer.hidden = !distinct.length;
  footer.replaceChildren(h("span", {}, "Behind this page:"), ...few,
    rest.length ? h("details", {}, h("summary", {}, `and ${rest.length} more`), rest.map((text) => h("div", {}, h("code", {}, text)))) : "");
}

// What was typed and not sent is there again for whoever comes back to it.
function typedAgain() {
  if (unsent && unsent.at === location.hash) unsent.fields.forEach(([name, value]) => page.querySelectorAll("form [name]").forEach((one) => { if (one.name === name) one.value = value; }));
  unsent = null;
}

function showLogin() {
  turn += 1;
  onlyQuestionsOf(null, true);
  // Several requests may find out that a session has ended: whoever logs in by then goes on typing.
  if (page.querySelector("form.login")) return;
  const typed = [...page.querySelectorAll("form [name]")].map((one) => [one.name, one.value]);
  if (typed.length) unsent = { at: sessionStorage.getItem(BACK), fields: typed };
  document.getElementById("top").hidden = true;
  document.getElementById("behind").hidden = true;
  if (stream) { stream.abort(); stream = null; }
  const back = sessionStorage.getItem(BACK);
  const problem = h("div", { role: "alert" }, back ? h("div", { class: "note" }, "Your session has ended: log in again, and go on where you were.") : null);
  const form = h("form", { class: "login" },
    h("h1", {}, h("img", { src: "icon.svg", alt: "", width: 30, height: 30 }), "Siderite"),
    h("label", {}, "User", h("input", { name: "user", autocomplete: "username", required: true, value: back && last ? last.name : "admin" })),
    h("label", {}, "Password", h("input", { name: "password", type: "password", autocomplete: "current-password", required: true })),
    h("label", {}, "Project", h("input", { name: "project", required: true, value: back && last ? last.project : "admin" })),
    h("button", { class: "main" }, "Log in"), problem,
    h("p", { class: "soft" }, "The first administrator's password is in clouds.yaml in the data directory."));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = new FormData(form);
    try {
      await login(said.get("user"), said.get("password"), said.get("project"));
      sessionStorage.removeItem(BACK);
      const next = back || (/^(#\/?(login)?)?$/.test(location.hash) ? "#/attention" : location.hash);
      if (location.hash === next) show(); else location.hash = next;
    } catch (why) {
      problem.replaceChildren(h("div", { class: "trouble" }, why.message));
    }
  });
  page.replaceChildren(form);
  document.title = "Log in · Siderite";
  form.querySelector("input[name=password]").focus();
}

// Live: pages that show machines are drawn again when the log tells of something.

async function listen() {
  stream = new AbortController();
  const label = document.getElementById("live");
  let after = 0;
  const { signal } = stream;
  try { after = (await get("/events/v1/events?last=1")).next; } catch { after = Number(sessionStorage.getItem("siderite-after") || 0); }
  if (signal.aborted) return;
  follow(after, heard, (state, last) => {
    sessionStorage.setItem("siderite-after", String(last));
    // The word is read out when it changes; the number, which always does, is for the eye.
    const word = state === "on" ? "live" : "reconnecting";
    // What was asked for while the service was away is asked for again.
    if (state === "on" && label.className === "off" && isRenewed()) soon(0);
    if (label.className !== state) label.replaceChildren(word, h("span", { "aria-hidden": "true" }));
    label.className = state;
    label.lastChild.textContent = ` · ${last}`;
  }, signal);
}

function heard(event) {
  pages.heardOf(event);
  const { name, words } = where();
  if (name === "events") {
    const table = page.querySelector("table[data-type]");
    const glob = table ? table.getAttribute("data-type") : "";
    const only = table ? table.getAttribute("data-resource") : "";
    const matches = (!only || only === event.resource.id) && (!glob || new RegExp(`^${glob.split("*").map((part) => part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\?/g, ".")).join(".*")}$`).test(event.event_type));
    const body = document.getElementById("tail");
    if (body && matches) {
      page.querySelector("p.empty")?.remove();
      body.prepend(pages.eventRow(event, true));
      while (body.children.length > 500) body.lastChild.remove();
    }
    return;
  }
  if (name === "fleet") heardOf(event);
  if (!LIVE_PAGES.has(name) || (words[0] && event.resource.id !== words[0])) return;
  soon(250);
  // What is counted from the log comes a little after the event itself.
  if (name === "attention") { clearTimeout(later); later = setTimeout(() => soon(0), 2000); }
}

// However fast events come, the page is drawn again: soon, and then half of the time at most.
function soon(wait) {
  if (again) { missed = true; return; }
  again = setTimeout(async () => {
    const began = Date.now();
    missed = false;
    await show(true);
    again = setTimeout(() => { again = null; if (missed) soon(0); }, Date.now() - began);
  }, wait);
}

// Search, theme, log out

const query = document.getElementById("query");
const found = document.getElementById("found");
let asking = null;
// The words that what is shown was found by.
let foundBy = null;
query.addEventListener("input", () => {
  clearTimeout(asking);
  asking = setTimeout(search, 150);
});
// Who goes elsewhere is done with what was found; who comes back sees it again.
const isSearching = () => document.getElementById("find").contains(document.activeElement);
["focusin", "pointerdown"].forEach((name) => document.addEventListener(name, ({ target }) => { if (!target.closest("#find")) found.hidden = true; }));
query.addEventListener("focus", () => { if (found.hidden) search(); });
// The page of what was found: of the machine it belongs to, else what the log tells of it.
function place({ type, id, data }) {
  if (type === "server" || type === "instance") return `#/server/${id}`;
  if (type === "node" || data.node_uuid) return `#/node/${type === "node" ? id : data.node_uuid}`;
  return `#/events?resource=${id}`;
}

async function search() {
  const words = query.value.trim();
  if (!words) { found.hidden = true; return; }
  let results = [];
  let problem = null;
  try { results = (await get(`/events/v1/search?q=${encodeURIComponent(words)}&limit=20`)).results; } catch (why) { problem = why.message; }
  if (words !== query.value.trim() || !isSearching()) return;
  // The keyboard may be on what is replaced.
  const held = [...found.querySelectorAll("a")].indexOf(document.activeElement);
  foundBy = problem ? null : words;
  found.replaceChildren(...(results.length ? results.map((one) => {
    const about = one.data.provision_state || one.data.state || one.data.address || "";
    return h("li", {}, h("a", { href: place(one), onclick: () => { found.hidden = true; query.value = ""; } },
      h("span", { class: "soft" }, `${one.type} `), one.data.name || one.data.display_name || one.id, h("span", { class: "soft" }, ` ${about}`)));
  }) : [h("li", { class: "soft" }, problem || "Nothing found.")]));
  found.hidden = false;
  if (held >= 0) (found.querySelectorAll("a")[held] || query).focus();
}
document.getElementById("find").addEventListener("keydown", (event) => {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way || found.hidden) return;
  event.preventDefault();
  const stops = [query, ...found.querySelectorAll("a")];
  stops[(stops.indexOf(document.activeElement) + way + stops.length) % stops.length].focus();
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); page.focus(); });
document.getElementById("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  // Who is faster than the search means what was typed, not what was found before.
  clearTimeout(asking);
  if (foundBy !== query.value.trim()) await search();
  if (foundBy !== query.value.trim()) return;
  const first = found.querySelector("a");
  if (first) first.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); query.focus(); }
  // Only what was found goes; the words stay, to be asked for again.
  if (event.key === "Escape" && !found.hidden) { event.preventDefault(); query.focus(); found.hidden = true; }
});
const theme = localStorage.getItem("siderite-theme");
if (theme) document.documentElement.dataset.theme = theme;
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("siderite-theme", document.documentElement.dataset.theme);
});
document.getElementById("leave").addEventListener("click", leave);
window.addEventListener("hashchange", () => show());
window.addEventListener("renew", () => show(true));
setInterval(older, 5000);
setInterval(() => { if (session && !document.hidden && ASKED_AGAIN.has(where().name)) soon(0); }, ASK_AGAIN_MS);
borrow().then(() => show());
