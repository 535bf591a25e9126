// Fleet: all machines, page after page; found by facets, or by words in the index.

import { can, get, machines, projects } from "./api.js";
import { newServer } from "./guest.js";
import { ago, h, number, owner, power, provision, tag, toast, why } from "./ui.js";
import { DISTURBS, MEANS, needed, nodeVerb, serverVerb, words_ } from "./verbs.js";

const FIRST = 100;
const PAGE = 500;
const STATUSES = ["ACTIVE", "BUILD", "PENDING", "SHUTOFF", "ERROR", "RESCUE", "PAUSED", "SUSPENDED", "REBOOT", "HARD_REBOOT", "REBUILD", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE",
  "MIGRATING", "SHELVED", "SHELVED_OFFLOADED", "SOFT_DELETED"];
const FIELDS = ["uuid", "name", "provision_state", "target_provision_state", "power_state", "target_power_state", "power_state_reason", "provision_updated_at",
  "created_at", "owner", "resource_class", "conductor_group", "maintenance", "maintenance_reason", "last_error", "fault", "wait_reason"];
const RUNNING = { 0: "unknown", 1: "running", 3: "paused", 4: "off", 6: "crashed", 7: "suspended" };
export const runs = (one) => RUNNING[one["OS-EXT-STS:power_state"]] || "–";

const KINDS = {
  node: {
    title: "Nodes", noun: "nodes", none: "There are no nodes yet. Enrol one: siderite node create NAME --driver redfish --driver-info redfish_address=…",
    columns: ["Node", "State", "Power", "In state for", "Owner", "Class", "Why"],
    facets: (asked, states) => [choice("provision_state", "state", states, asked), choice("maintenance", "maintenance", ["true", "false"], asked),
      choice("fault", "fault", ["power failure", "clean failure", "rescue abort failure", "service failure"], asked), words("resource_class", "resource class", asked), words("owner", "owner", asked)],
    address: (asked, marker, limit) => `/baremetal/v1/nodes?${with_(asked, { fields: FIELDS.join(), limit, ...(marker ? { marker } : {}) })}`,
    items: (found) => found.nodes,
    value: (one, name) => one[name],
    id: (one) => one.uuid,
    cells: (one) => [link("node", one.uuid, one.name), provision(one), power(one), ago(one.provision_updated_at || one.created_at), owner(one.owner, owners),
      brief(one.resource_class), why(one)],
    verbs: ["manage", "provide", "active", "deleted", "inspect", "abort", "power on", "power off", "rebooting", "maintenance on", "maintenance off"],
    act: nodeVerb,
  },
  server: {
    title: "Servers", noun: "servers", none: "There are no servers yet. Make one here, or by: siderite server create NAME --flavor FLAVOR --image IMAGE",
    columns: ["Server", "Status", "Power", "In state for", "Owner", "Host", "Flavor", "Why"],
    facets: (asked) => [choice("status", "status", STATUSES, asked), words("name", "name", asked),
      // Hosts are for administrators to see: the API leaves out what others say of them.
      can("admin") ? words("host", "host", asked) : null],
    address: (asked, marker, limit) => `/compute/v2.1/servers/detail?${with_(asked, { limit, ...(can("admin") ? { all_tenants: 1 } : {}), ...(marker ? { marker } : {}) })}`,
    items: (found) => found.servers,
    value: (one, name) => one[name === "host" ? "OS-EXT-SRV-ATTR:host" : name],
    id: (one) => one.id,
    cells: (one) => [link("server", one.id, one.name), [tag(one.status), one["OS-EXT-STS:task_state"] ? h("span", { class: "soft" }, ` ${one["OS-EXT-STS:task_state"]}`) : null],
      tag(runs(one)), ago(one.updated), owner(one.tenant_id, owners), brief(one["OS-EXT-SRV-ATTR:host"]), brief(one.flavor.original_name), one.wait_reason || (one.fault && one.fault.message) || ""],
    verbs: ["start", "stop", "reboot", "reboot_hard", "pause", "unpause", "shelve", "unshelve", "delete"],
    act: serverVerb,
    make: newServer,
  },
};

const howMany = (way, count) => `${number(count)} ${count === 1 ? way.noun.slice(0, -1) : way.noun}`;
const with_ = (asked, more) => new URLSearchParams([...asked, ...Object.entries(more)]);
const brief = (text) => (text ? h("span", { class: "name", title: text }, text) : "–");
let owners = new Map();
// Who is shown by a name may be asked for by it, too.
function wanted(asked) {
  const found = [...owners].find(([, name]) => name === asked.get("owner"));
  const made = new URLSearchParams(asked);
  if (found) made.set("owner", found[0]);
  return made;
}
const link = (kind, id, name) => h("a", { class: "name", href: `#/${kind}/${id}`, title: name || id }, name || id);

function choice(name, label, known, asked) {
  return h("select", { name, "aria-label": label }, ["", ...known].map((word) =>
    h("option", { value: word, selected: (asked.get(name) || "") === word }, word || `any ${label}`)));
}

function words(name, label, asked) {
  return h("input", { name, placeholder: label, "aria-label": label, size: 11, value: asked.get(name) || "" });
}

export async function fleet(kind = "node", query = "", upTo = 0) {
  const asked = new URLSearchParams(query);
  const way = Object.hasOwn(KINDS, kind) && KINDS[kind];
  if (!way) throw new Error(`There is no page fleet/${kind}; choose one above.`);
  const sought = asked.get("q");
  asked.delete("q");
  const chosen = new Set();
  const many = h("span", { class: "soft", role: "status" });
  const go = h("button", { type: "button", disabled: true, title: `Choose some ${way.noun} first.` }, "Do it to the chosen");
  const counted = () => { many.textContent = chosen.size ? `${number(chosen.size)} chosen` : ""; go.disabled = !chosen.size; };
  const parts = [];
  const count = h("span", { class: "soft", role: "status" });
  const more = h("button", { type: "button" }, "More");
  let total = 0;
  let begun = false;
  let ended = false;
  const fresh = new Set();
  const recount = () => {
    count.textContent = `${howMany(way, total)}${ended ? "" : " so far"}`;
    news.textContent = `Show ${howMany(way, fresh.size).replace(" ", " new ")}`;
    news.hidden = !fresh.size;
  };
  const news = h("button", { type: "button", hidden: true, onclick: () => window.dispatchEvent(new Event("hashchange")) });
  const mine = { way, kind, parts, sought: new Set(), timer: null, isFetching: false,
    // One that was deleted is no row, and not chosen any more.
    gone(id) {
      fresh.delete(id);
      if (!parts.some((each) => each.drop(id))) return;
      total -= 1;
      chosen.delete(id);
      counted();
      recount();
    },
    // Where nothing is filtered, one that was made is not put between others under somebody's hand, but offered.
    made(id) {
      if (sought || [...asked].length || parts.some(({ items }) => items.some((one) => way.id(one) === id))) return;
      fresh.add(id);
      recount();
    } };
  live = mine;
  const all = h("input", { type: "checkbox", "aria-label": `Choose all ${way.noun} that are shown` });
  all.addEventListener("change", () => parts.forEach(({ items, rows }) => {
    items.forEach((one) => (all.checked ? chosen.add(way.id(one)) : chosen.delete(way.id(one))));
    (rows() || []).forEach((one) => { one.querySelector("input").checked = all.checked; });
    counted();
  }));
  const choose = (only) => {
    [...chosen].filter((id) => !only.has(id)).forEach((id) => chosen.delete(id));
    all.checked = false;
    parts.forEach(({ items, rows }) => (rows() || []).forEach((one, at) => { one.querySelector("input").checked = chosen.has(way.id(items[at])); }));
    counted();
  };
  const search = sought && searched(way, kind, sought);
  const fetchPage = () => (search ? search(wanted(asked)) : paged(way, kind, wanted(asked), parts.flatMap(({ items }) => items.map(way.id))));
  async function next() {
    more.disabled = true;
    mine.isFetching = true;
    let page;
    try { page = await fetchPage(); } catch (problem) {
      mine.isFetching = false;
      if (!begun) throw problem;
      toast(problem.message, true);
      more.textContent = "Try again";
      watcher.unobserve(more);
      more.disabled = false;
      return;
    }
    mine.isFetching = false;
    begun = true;
    more.textContent = "More";
    const { items, end } = page;
    const before = parts.length;
    for (let at = 0; at < items.length; at += FIRST) parts.push(part(items.slice(at, at + FIRST), (one) => row(way, one, chosen, counted), way.id));
    if (!before && parts.length) parts[0].show();
    table.append(...parts.slice(before).map(({ body }) => body));
    total += items.length;
    ended = end;
    items.forEach((one) => fresh.delete(way.id(one)));
    soon(mine);
    recount();
    more.hidden = end;
    more.disabled = false;
    // Watched anew: what stays in sight through all this would not be told of again.
    watcher.unobserve(more);
    if (!end) watcher.observe(more);
  }
  more.addEventListener("click", next);
  const watcher = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && !more.disabled) next(); }, { rootMargin: "600px" });
  const table = h("table", { class: `fleet ${kind}s` }, h("thead", {}, h("tr", {}, h("th", { class: "tick" }, all), way.columns.map((name) => h("th", { scope: "col" }, name)))));
  const [tables, known] = await Promise.all([machines(), projects()]);
  owners = known;
  const filters = facets({ kind, way, asked, sought, states: Object.keys(tables[kind].verbs) });
  let refused = null;
  // A filter that is refused is still there to be mended.
  try { await next(); } catch (problem) { if (problem.status !== 400 && !(problem instanceof SyntaxError)) throw problem; refused = problem.message; }
  // What a search finds is asked for one by one: too much for going back.
  for (let before = 0; !search && before < total && total < upTo && !ended;) { before = total; await next(); }
  if (refused) return [h("h1", {}, way.title), filters, h("div", { class: "trouble", role: "alert" }, refused)];
  return [
    way.make ? h("div", { class: "bar" }, h("h1", {}, way.title), way.make()) : h("h1", {}, way.title), filters, can("member") ? bulk({ way, chosen, go, choose }, many) : null, h("p", { class: "count" }, count, " ", news),
    total || !ended ? h("div", { class: "scroll" }, table) : h("p", { class: "empty" }, [...asked].length || sought ? `No ${way.noun} match.` : empty(kind, way)), more,
  ];
}

// Who sees only what is the project's is not told that there is nothing at all.
function empty(kind, way) {
  if (kind === "node" && !can("admin")) return "No node belongs to your project, or is lent to it.";
  return can("member") ? way.none : `There are no ${way.noun} yet.`;
}

// Some rows, which are made when they come near to what is looked at, and replaced by one of their height
// when they are far from it: ten thousand cost no more than some hundred.
const ROW_PX = 36;
const shownParts = new WeakMap();
const near = new IntersectionObserver((seen) => seen.forEach(({ target, isIntersecting }) => {
  const mine = shownParts.get(target);
  if (mine && isIntersecting !== mine.isThere) (isIntersecting ? mine.show : mine.hide)();
  if (live) soon(live);
}), { rootMargin: "1500px" });

function part(items, make, id) {
  const body = h("tbody");
  let rows = null;
  const gap = (height) => {
    const one = h("tr", { class: "gap" }, h("td"));
    one.style.height = `${height}px`;
    body.replaceChildren(one);
  };
  const made = { body, items, isThere: false, rows: () => rows,
    show() { rows = rows || items.map(make); made.isThere = true; body.replaceChildren(...rows); },
    hide() { made.isThere = false; gap(body.offsetHeight); },
    renew(one) {
      const at = items.findIndex((each) => id(each) === id(one));
      if (at < 0) return;
      items[at] = one;
      if (rows) rows[at].replaceChildren(rows[at].firstChild, ...[...make(one).children].slice(1));
    },
    drop(gone) {
      const at = items.findIndex((each) => id(each) === gone);
      if (at < 0) return false;
      items.splice(at, 1);
      if (rows) rows.splice(at, 1)[0].remove();
      return true;
    } };
  gap(items.length * ROW_PX);
  shownParts.set(body, made);
  near.observe(body);
  return made;
}

// Live: rows that the log tells of are asked for again, few at a time; those out of sight when they come near.
const AT_ONCE = 25;
let live = null;

export function heardOf({ resource, event_type: what }) {
  const mine = live;
  if (!mine || (resource.type === "instance" ? "server" : resource.type) !== mine.kind) return;
  if (/\.delete\.end$/.test(what)) { mine.gone(resource.id); return; }
  if (/\.create\.start$/.test(what)) mine.made(resource.id);
  mine.sought.add(resource.id);
  soon(mine);
}

export const howFar = () => (live ? live.parts : []).reduce((sum, { items }) => sum + items.length, 0);

const inSight = (mine) => new Set(mine.parts.filter((each) => each.isThere).flatMap((each) => each.items.map(mine.way.id)));

function soon(mine) {
  if (mine === live && mine.sought.size) mine.timer = mine.timer || setTimeout(() => renew(mine), 400);
}

async function renew(mine) {
  const there = inSight(mine);
  const known = new Set(mine.parts.flatMap((each) => each.items.map(mine.way.id)));
  // What is being fetched may be older than what was heard of it.
  if (!mine.isFetching) [...mine.sought].filter((id) => !known.has(id)).forEach((id) => mine.sought.delete(id));
  const ids = [...mine.sought].filter((id) => there.has(id)).slice(0, AT_ONCE);
  ids.forEach((id) => mine.sought.delete(id));
  const found = await Promise.all(ids.map((id) => whole(mine.kind, id)));
  found.forEach((one, at) => (one === GONE ? mine.gone(ids[at]) : one && mine.parts.forEach((each) => each.renew(one))));
  mine.timer = null;
  if ([...mine.sought].some((id) => there.has(id))) soon(mine);
}

const GONE = {};
function whole(kind, id) {
  return get(kind === "node" ? `/baremetal/v1/nodes/${id}?fields=${FIELDS.join()}` : `/compute/v2.1/servers/${id}`).then((found) => found.server || found, ({ status }) => (status === 404 ? GONE : null));
}

function facets({ kind, way, asked, sought, states }) {
  const form = h("form", { class: "bar", "aria-label": "Filters" },
    h("input", { name: "q", type: "search", placeholder: "any words", "aria-label": `Search ${way.noun}`, size: 14, value: sought || "" }), way.facets(asked, states),
    h("button", { type: "submit" }, "Filter"), [...asked].length || sought ? h("a", { href: `#/fleet/${kind}` }, "Clear") : null);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const kept = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    location.hash = `#/fleet/${kind}${String(kept) ? "?" + kept : ""}`;
  });
  form.querySelectorAll("select").forEach((one) => one.addEventListener("change", () => form.requestSubmit()));
  return form;
}

function row(way, one, chosen, counted) {
  const id = way.id(one);
  const box = h("input", { type: "checkbox", "aria-label": `Choose ${one.name || id}`, checked: chosen.has(id) });
  box.addEventListener("change", () => { if (box.checked) chosen.add(id); else chosen.delete(id); counted(); });
  return h("tr", {}, h("td", { class: "tick" }, box), way.cells(one).map((cell, at) => h("td", { "data-label": way.columns[at] }, cell)));
}

// The page after the rows that are there. The last of them may be deleted by now, unheard as yet: then after the last that is not.
async function paged(way, kind, asked, known) {
  const after = (marker) => get(way.address(asked, marker, marker ? PAGE : FIRST));
  let found;
  try { found = await after(known[known.length - 1]); } catch (problem) {
    if (!known.length || ![400, 404].includes(problem.status)) throw problem;
    const last = await lastOf(kind, known);
    if (!last) throw problem;
    found = await after(last);
  }
  const shown = new Set(known);
  // A page may be shorter than was asked for: the service has a limit of its own.
  return { items: way.items(found).filter((one) => !shown.has(way.id(one))), end: !found.next && !found.servers_links };
}

async function lastOf(kind, known) {
  for (let end = known.length; end > 0; end -= AT_ONCE) {
    const some = known.slice(Math.max(0, end - AT_ONCE), end);
    const found = await Promise.all(some.map((id) => whole(kind, id)));
    found.forEach((one, at) => { if (one === GONE) live.gone(some[at]); });
    const last = some.filter((_, at) => found[at] && found[at] !== GONE).pop();
    if (last) return last;
  }
  return null;
}

// Page after page of what the index finds. Of a page, none may fit the filters; the next may have some.
function searched(way, kind, sought) {
  let after = 0;
  return async (asked) => {
    const { results, next } = await get(`/events/v1/search?${new URLSearchParams({ q: sought, type: kind, limit: FIRST, after })}`);
    const found = await Promise.all(results.map((one) => whole(kind, one.id)));
    // As the API's own filters: a name is a regular expression, all else must be the same.
    const matches = (name, has, value) => (name === "name" ? new RegExp(value).test(has) : has === value);
    const fits = (one) => [...asked].every(([name, value]) => matches(name, String(way.value(one, name) ?? ""), value));
    const items = found.filter((one) => one && one !== GONE && fits(one));
    after = next;
    return { items, end: next === null };
  };
}

// What `deleted` does to a node is not what the word says.
const explained = (way, word) => (way === KINDS.node && MEANS[word] ? `${word} (${MEANS[word]})` : words_(word));

function bulk({ way, chosen, go, choose }, many) {
  const verb = h("select", { "aria-label": `What to do with the chosen ${way.noun}` }, way.verbs.map((word) => h("option", { value: word }, explained(way, word))));
  go.addEventListener("click", async () => {
    if (go.hasAttribute("aria-busy") || (DISTURBS.test(verb.value) && !window.confirm(`${explained(way, verb.value)}: ${howMany(way, chosen.size)}?`))) return;
    const more = await needed(verb.value);
    if (more === null) return;
    go.setAttribute("aria-busy", "true");
    const refused = new Map();
    const waiting = [...chosen];
    const all = waiting.length;
    const work = async () => {
      while (waiting.length) { const id = waiting.pop(); try { await way.act(id, verb.value, more); } catch (problem) { refused.set(id, problem.message); } }
    };
    await Promise.all([work(), work(), work(), work()]);
    go.removeAttribute("aria-busy");
    if (!refused.size) { toast(`${words_(verb.value)}: ${number(all)} taken.`); return; }
    // Those that were refused are the ones to look at, or to try again.
    choose(refused);
    toast(`${words_(verb.value)}: ${number(all - refused.size)} taken, ${number(refused.size)} refused, which stay chosen. ${[...refused.values()][0]}`, true);
  });
  return h("div", { class: "bar", role: "group", "aria-label": "Many at once" }, verb, go, many);
}
