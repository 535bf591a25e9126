// The pages that watch over everything. Each gets the words of its address and gives back what is shown.

import { ask, can, everyImage, get, projects } from "./api.js";
import { ago, h, labelled, moment, number, owner, power, provision, quietly, short, table, tag, toast, why } from "./ui.js";

const FAILED = ["deploy failed", "clean failed", "inspect failed", "rescue failed", "unrescue failed", "adopt failed", "service failed", "error"];
const LOST = ["baremetal.node.power_unknown", "baremetal.node.power_conflict"];

const node = (one, text) => h("a", { class: "name", href: `#/node/${one.uuid}` }, text || one.name || one.uuid);
const server = (one, text) => h("a", { class: "name", href: `#/server/${one.id}` }, text || one.name || one.id);
const everybody = () => (can("admin") ? "all_tenants=1&" : "");

// Attention: what is stuck, and why

export async function attention() {
  const nodes = new Map();
  const add = (found) => found.nodes.forEach((one) => nodes.set(one.uuid, one));
  const detail = (query) => get(`/baremetal/v1/nodes/detail?${query}`);
  const open = (query) => (can("admin") ? quietly(get(`/events/v1/monitor/open?${query}`), { open: [] }) : { open: [] });
  const [own, maintained, failing, enrolled, late, unknown, conflicts, errors, pendings, ...found] = await Promise.all([
    can("admin") ? [] : inDoubt(), detail(`maintenance=true&limit=${MOST}`), detail(`fault=power%20failure&limit=${MOST}`), detail(`provision_state=enroll&sort_key=provision_updated_at&sort_dir=desc&limit=${MOST}`), open(`overdue=true&limit=${MOST}`), ...LOST.map((name) => open(`operation=${name}&limit=${MOST}`)),
    ...["ERROR", "PENDING"].map((word) => quietly(get(`/compute/v2.1/servers/detail?${everybody()}status=${word}&limit=${MOST}`), { servers: [] })),
    ...FAILED.map((word) => detail(`provision_state=${encodeURIComponent(word)}&limit=${MOST}`))]);
  const unverified = { nodes: enrolled.nodes.filter(wasRefused) };
  [maintained, failing, unverified, ...found].forEach(add);
  const watched = [...late.open, ...unknown.open, ...conflicts.open, ...own].filter(({ resource }) => resource.type === "node" && !nodes.has(resource.id));
  const others = await Promise.all([...new Set(watched.map(({ resource }) => resource.id))].slice(0, 200).map((id) => quietly(get(`/baremetal/v1/nodes/${id}`), null)));
  // What is open in the log may be over by now: the node itself has the last word.
  add({ nodes: others.filter((one) => one && (one.power_state_reason || late.open.some(({ resource }) => resource.id === one.uuid))) });
  const servers = [...errors.servers, ...pendings.servers];
  const overdue = new Set(late.open.map(({ resource }) => resource.id));
  const isDisputed = (one) => one && one.power_state_reason && one.power_state !== "unknown";
  const disputed = new Set([...conflicts.open, ...own].map(({ resource }) => resource.id).filter((id) => isDisputed(nodes.get(id))));
  const all = [...nodes.values()];
  const lost = (one) => one.fault === "power failure" || (one.power_state === "unknown" && one.provision_state !== "enroll");
  const rank = (one) => (/failed|error/.test(one.provision_state) || wasRefused(one) ? 0 : lost(one) ? 1 : overdue.has(one.uuid) ? 2 : disputed.has(one.uuid) ? 3 : 4);
  const began = new Map();
  for (const { resource, since: at } of [...late.open, ...unknown.open, ...conflicts.open]) if (!began.has(resource.id) || began.get(resource.id) > at) began.set(resource.id, at);
  const waits = all.filter((one) => rank(one) > 0 && !began.has(one.uuid));
  await Promise.all(waits.filter((one) => !held.has(one.uuid)).slice(0, HELD_AT_ONCE).map(findHeld));
  const since = (one) => (rank(one) === 0 ? one.provision_updated_at : began.get(one.uuid) || held.get(one.uuid));
  const rows = [
    ...together(all.sort((a, b) => rank(a) - rank(b)).map((one) => ({ one, why: h("td", { class: "long" }, overdue.has(one.uuid) ? h("div", {}, "over its deadline") : null,
      disputed.has(one.uuid) ? h("div", {}, "machine and record differ about the power") : null, explained(one)), since: since(one) }))),
    ...servers.map((one) => h("tr", {}, h("td", {}, server(one)), h("td", {}, tag(one.status)), h("td", {}, "–"),
      h("td", { class: "long" }, one.wait_reason || (one.fault && one.fault.message) || "–"), h("td", { class: "fit" }, ago(one.updated)))),
  ];
  return [
    h("h1", {}, "Attention"),
    h("div", { class: "grid" },
      failures(found, unverified.nodes),
      // The list behind it knows only those that were given up: a link that shows fewer would lie.
      card(atLeast(all.filter(lost).length, failing.nodes), "BMCs that cannot be read", "bad", all.filter(lost).length === failing.nodes.length ? "#/fleet/node?fault=power+failure" : null),
      card(disputed.size, "power conflicts", "bad"),
      can("admin") ? card(atLeast(overdue.size, late.open), "over their deadline", "warn") : null,
      card(atLeast(all.filter((one) => one.maintenance).length, maintained.nodes), "nodes in maintenance", "warn", "#/fleet/node?maintenance=true"),
      card(atLeast(errors.servers.length, errors.servers), "servers in error", "bad", "#/fleet/server?status=ERROR"),
      card(atLeast(pendings.servers.length, pendings.servers), "servers without room", "warn", "#/pending")),
    h("h2", {}, "What needs somebody"),
    table(["Machine", "State", "Power", "Why", "For"], rows, "All is well: nothing waits for anybody."),
  ];
}

// Whose power is not known or disputed, of the project's own nodes: what is open in the log is for administrators to see.
async function inDoubt() {
  const path = "/baremetal/v1/nodes";
  const doubtful = [];
  for (let query = "?fields=uuid,power_state_reason&limit=1000"; query && doubtful.length < MOST;) {
    const page = await get(path + query);
    doubtful.push(...page.nodes.filter((one) => one.power_state_reason));
    query = page.next && new URL(page.next, location.href).search;
  }
  return doubtful.map(({ uuid }) => ({ resource: { type: "node", id: uuid } }));
}

// Since when a machine is held back: its record has no such time, its timeline does. It is looked for again when something happened to it.
const HELD_AT_ONCE = 50;
const held = new Map();
const isSet = (entry) => entry.to === true && entry.from !== true;
const begins = (entry) => entry.status === "start";
const BEGINS = { maintenance_set: isSet, create: isSet, update: isSet, power_failure: begins, power_unknown: begins, power_conflict: begins };
async function findHeld({ uuid }) {
  const found = await quietly(get(`/baremetal/v1/nodes/${uuid}/timeline?sort_dir=desc&limit=200`), null);
  const began = found && found.timeline.find((entry) => BEGINS[entry.what] && BEGINS[entry.what](entry));
  if (found) held.set(uuid, began ? began.time : null);
}

export const heardOf = ({ resource }) => held.delete(resource.id);

// A later request, such as one for power, takes the error away; the machine's page still finds it.
function explained(one) {
  const told = why(one);
  return told.length || !/failed|^error/.test(one.provision_state) ? told : h("div", { class: "soft" }, "its page says why");
}

// One outage is one line, however many machines it took: those that say the same are counted, and opened if wanted.
const MANY = 5;
function together(found) {
  const groups = new Map();
  for (const each of found) {
    const key = each.why.textContent;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return [...groups.values()].flatMap((some) => {
    if (some.length < MANY || !some[0].why.textContent) return some.map(({ one, why: reason, since }) => h("tr", {}, h("td", {}, node(one)), h("td", {}, provision(one)), h("td", {}, power(one)), reason, h("td", { class: "fit" }, ago(since))));
    const states = [...new Set(some.map(({ one }) => one.provision_state))];
    const powers = [...new Set(some.map(({ one }) => one.power_state))];
    const oldest = some.map(({ since }) => since).filter(Boolean).sort()[0];
    return h("tr", {}, h("td", {}, h("details", { class: "many" }, h("summary", {}, `${some.length < MOST ? some.length : `${MOST}+`} nodes`), some.map(({ one }) => h("div", {}, node(one))))),
      h("td", {}, states.length === 1 ? provision(some[0].one) : h("span", { class: "soft" }, `${states.length} states`)),
      h("td", {}, powers.length === 1 ? power(some[0].one) : h("span", { class: "soft" }, "various")), some[0].why, h("td", { class: "fit" }, ago(oldest)));
  });
}

function card(count, words, kind, href) {
  return h(href ? "a" : "div", { class: `card ${count ? kind : "zero"}`, href }, h("b", {}, number(count)), words);
}

// No more than so many of a kind are asked for: where there may be more, the number says so.
const MOST = 200;
const atLeast = (count, asked) => (asked.length < MOST ? count : `${number(count)}+`);

// Whose BMC could not be verified is in the state it began in.
const wasRefused = (one) => one.provision_state === "enroll" && one.last_error;

function failures(found, unverified) {
  const each = [...FAILED.map((word, at) => [word, found[at].nodes]), ["not verified", unverified]].filter(([, nodes]) => nodes.length);
  const all = each.reduce((sum, [, nodes]) => sum + nodes.length, 0);
  // No list is of those alone that were not verified.
  const links = each.map(([word, nodes]) => h(nodes === unverified ? "span" : "a", { href: nodes === unverified ? null : `#/fleet/node?${new URLSearchParams({ provision_state: word })}` },
    `${word} ${atLeast(nodes.length, nodes)}`));
  return h("div", { class: `card ${all ? "bad" : "zero"}` }, h("b", {}, each.some(([, nodes]) => nodes.length >= MOST) ? `${number(all)}+` : number(all)), "nodes failed", h("div", { class: "parts" }, links));
}

// Pending and reaper

const WEEK_MS = 7 * 86400e3;

async function evicted(known) {
  const since = new Date(Date.now() - WEEK_MS).toISOString().slice(0, 19);
  const query = `all_tenants=1&deleted=true&changes-since=${since}Z&sort_key=updated_at&sort_dir=desc&limit=1000`;
  const { servers } = await quietly(get(`/compute/v2.1/servers/detail?${query}`), { servers: [] });
  const gone = servers.filter((one) => one.metadata.preempted_for_server);
  const names = new Map(known.map((one) => [one.id, one]));
  const ids = [...new Set(gone.map((one) => one.metadata.preempted_for_server))].filter((id) => !names.has(id)).slice(0, 50);
  for (const found of await Promise.all(ids.map((id) => quietly(get(`/compute/v2.1/servers/${id}`), null)))) if (found) names.set(found.server.id, found.server);
  const forWhom = (id) => (names.has(id) ? server(names.get(id)) : [short(id), " (gone)"]);
  return gone.map((one) => ({ ...one, went: one["OS-SRV-USG:terminated_at"] ? `${one["OS-SRV-USG:terminated_at"]}Z`.replace("ZZ", "Z") : one.updated, forWhom: forWhom(one.metadata.preempted_for_server) }));
}

export async function pending() {
  const [{ servers, servers_links: more }, { servers: some, servers_links: others }] = await Promise.all([
    get(`/compute/v2.1/servers/detail?${everybody()}status=PENDING&limit=1000`),
    can("admin") ? get("/compute/v2.1/servers/detail?all_tenants=1&limit=1000") : { servers: [] }]);
  const [gone, owners] = can("admin") ? await Promise.all([evicted([...some, ...servers]), projects()]) : [[], new Map()];
  const yes = (word) => /^(true|yes|1)$/i.test(word || "");
  const preemptible = some.filter((one) => yes(one.metadata.preemptible) || yes((one.flavor.extra_specs || {}).preemptible));
  const wants = ({ flavor }) => `${flavor.vcpus} vCPU, ${number(flavor.ram)} MiB, ${number(flavor.disk)} GiB`;
  return [
    h("h1", {}, "Pending"),
    h("p", { class: "lead" }, "Servers for which no host has room: they wait here if the option ", h("code", {}, "use_pending_state"), " is on, and else are in error. A service outside frees some and has them built: ", h("code", {}, "siderite reaper"), "; ",
      h("code", {}, "siderite reaper --once --dry-run"), " says what it would do. With ", h("code", {}, "wake_pending"), ", those that nobody takes care of are built as soon as a host has room."),
    table(["Server", "Since", "Until", "Wants", "Why not"], servers.map((one) => h("tr", {}, h("td", {}, server(one)), h("td", { class: "fit" }, ago(one.created)),
      h("td", { class: "fit" }, one.deadline ? moment(one.deadline) : "–"), h("td", {}, wants(one)),
      h("td", { class: "long" }, Object.entries(one.refusals || {}).slice(0, 6).map(([host, reason]) => h("div", {}, `${host}: ${reason}`))))), "No server waits for room."),
    more ? h("p", { class: "soft" }, `These are the newest ${number(servers.length)}; more wait.`) : null,
    can("admin") ? [h("h2", {}, "What the reaper may delete"), table(["Server", "Host", "Holds", "For"], preemptible.map((one) => h("tr", {}, h("td", {}, server(one)),
      h("td", {}, one["OS-EXT-SRV-ATTR:host"] || "–"), h("td", {}, wants(one)), h("td", { class: "fit" }, ago(one.created)))), "No server is preemptible, as far as flavors and metadata say."),
      others ? h("p", { class: "soft" }, `Only the newest ${number(some.length)} servers were looked at for this; the reaper looks at all.`) : null,
      h("h2", {}, "Who went for others"), table(["Server", "Went", "Project", "Held", "For whom"], gone.map((one) => h("tr", {}, h("td", { class: "long" }, one.name), h("td", { class: "fit" }, ago(one.went), " ago"),
        h("td", {}, owner(one.tenant_id, owners)), h("td", {}, wants(one)), h("td", {}, one.forWhom))), "The reaper deleted no server in the last 7 days.")] : null,
  ];
}

// Events

const EVENT_COLUMNS = ["Number", "When", "What", "Machine", "Request"];

export async function events(query = "") {
  const asked = new URLSearchParams(query);
  const type = asked.get("type") || "";
  const resource = asked.get("resource") || "";
  const words = new URLSearchParams({ last: 200, ...(type ? { type } : {}), ...(resource ? { resource } : {}) });
  let found = { events: [] };
  let refused = null;
  // A filter that is refused is still there to be mended.
  try { found = await get(`/events/v1/events?${words}`); } catch (problem) { if (![400, 404].includes(problem.status)) throw problem; refused = problem.message; }
  // What comes is compared by id, which a name is not.
  const only = resource && found.events.length ? found.events[0].resource.id : resource;
  const body = h("tbody", { id: "tail" }, found.events.reverse().map((one) => eventRow(one)));
  const form = h("form", { class: "bar" }, h("input", { name: "type", placeholder: "type, such as baremetal.node.*.error", size: 36, value: type, "aria-label": "Event type" }),
    h("input", { name: "resource", placeholder: "name or UUID of a machine", size: 36, value: resource, "aria-label": "Name or UUID of a resource" }),
    h("button", {}, "Filter"), type || resource ? h("a", { href: "#/events" }, "Clear") : null);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `#/events?${new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value))}`;
  });
  const lead = type || resource ? "Those among the newest that match, newest first." : "The newest 200, newest first.";
  return [h("h1", {}, "Events"), form, refused ? h("div", { class: "trouble", role: "alert" }, refused) : null,
    h("p", { class: "soft" }, `${lead} After a break it goes on from the number at the top of the page; others can do the same: GET /events/v1/events?after=NUMBER.`),
    found.events.length || refused ? null : h("p", { class: "empty" }, "Nothing has happened yet that matches."),
    h("div", { class: "scroll" }, h("table", { class: "stacks", "data-type": type, "data-resource": only }, h("thead", {}, h("tr", {},
      EVENT_COLUMNS.map((name) => h("th", { scope: "col" }, name)))), body))];
}

// From where to where, and what went wrong.
function inShort(one, said) {
  const moves = ["provision_state", "power_state"].filter((name) => said[`previous_${name}`] && said[`previous_${name}`] !== said[name])
    .map((name) => `${said[`previous_${name}`]} → ${said[name]}`);
  if ("from_power" in said) moves.push(`${said.from_power || "unknown"} → ${said.power_state || "unknown"}`);
  if ("from_policy" in said) moves.push(`${said.from_policy || "default"} → ${said.to_policy || "default"}`);
  if (said.to_power) moves.push(`→ ${said.to_power}`);
  const told = [said.fault, said.reason].map((each) => each && each["nova_object.data"]).find(Boolean);
  const refusals = Object.entries(said.refusals || {}).slice(0, 3).map(([host, reason]) => `${host}: ${reason}`);
  if (one.priority === "ERROR") moves.push(...(said.last_error ? [said.last_error] : told ? [told.exception_message] : refusals));
  return moves.filter(Boolean).map((text) => h("div", { class: "soft long" }, text));
}

export function eventRow(one, fresh) {
  const { type, id } = one.resource;
  const link = { node: `#/node/${id}`, server: `#/server/${id}`, instance: `#/server/${id}` }[type];
  const said = one.payload["ironic_object.data"] || one.payload["nova_object.data"] || one.payload;
  const name = said.name || said.display_name || said.host_name || id.slice(0, 8);
  const whole = h("details", {}, h("summary", {}, one.event_type));
  whole.addEventListener("toggle", () => { if (whole.children.length === 1) whole.append(h("pre", {}, JSON.stringify(one, null, 2))); });
  return labelled(h("tr", { class: fresh ? "new" : null }, h("td", { class: "mono" }, one.seq), h("td", { class: "fit" }, ago(one.time)),
    h("td", {}, one.priority === "ERROR" ? tag("error") : null, " ", whole, inShort(one, said)), h("td", {}, link ? h("a", { class: "name", href: link, title: id }, name) : h("span", { class: "name", title: id }, `${type} ${name}`)),
    h("td", { class: "mono long cut", title: one.request_id }, one.request_id || "–")), EVENT_COLUMNS);
}

// Webhooks

const at = (one, more = "") => `/events/v1/webhooks/${one.id}${more}`;

const again = (said) => () => { window.dispatchEvent(new Event("renew")); return said; };
const CALLED_OFF = Symbol("called off");

function act(label, about, what, done) {
  return h("button", { type: "button", "aria-label": `${label}: ${about}`, disabled: !can("member"), title: can("member") ? null : "Your role may look, not act.",
    onclick: async () => { try { const told = await what(); if (told !== CALLED_OFF) toast(done(told)); } catch (problem) { toast(problem.message, true); } } }, label);
}

export async function webhooks() {
  const { webhooks: found } = await get("/events/v1/webhooks");
  const deliveries = await Promise.all(found.slice(0, 20).map((one) => quietly(get(at(one, "/deliveries?limit=10")), { deliveries: [] })));
  const make = h("form", { class: "bar", "aria-label": "New webhook" }, h("input", { name: "url", type: "url", required: true, size: 40, placeholder: "https://…", "aria-label": "Address" }),
    h("input", { name: "type", placeholder: "type, such as baremetal.node.*", size: 28, "aria-label": "Event type" }), h("button", { disabled: !can("member") }, "Add a webhook"));
  make.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = Object.fromEntries([...new FormData(make)].filter(([, value]) => value));
    try {
      const made = await ask("POST", "/events/v1/webhooks", said);
      make.reset();
      make.querySelector("button").focus();
      window.prompt("Its secret, which is shown only now:", made.secret);
      again()();
    } catch (problem) { toast(problem.message, true); }
  });
  const called = (one) => one.name || one.url;
  const state = (one) => (one.dead ? tag(`${one.dead} given up`, "dead letters") : tag(one.enabled === false ? "off" : "active"));
  return [
    h("h1", {}, "Webhooks"), make,
    table(["Address", "Wants", "State", "At number", "Waiting", "Lost", ""], found.map((one) => h("tr", {}, h("td", { class: "address" }, one.name ? h("div", { class: "long" }, one.name) : null, h("span", { class: one.name ? "long soft" : "long" }, one.url)), h("td", { class: "long" }, one.type || "everything"),
      h("td", {}, state(one)), h("td", { class: "num" }, number(one.at)), h("td", { class: "num" }, number(one.pending)), h("td", { class: "num" }, number(one.lost)),
      h("td", { class: "acts" }, act("Test", called(one), () => ask("POST", at(one, "/test"), {}), (told) => { if (!told.delivered) throw new Error(`It did not take the event: ${told.error}`); return `It took the event (${told.status}, ${told.ms} ms).`; }), " ",
        act(one.enabled === false ? "Turn on" : "Turn off", called(one), () => ask("PATCH", at(one), { enabled: one.enabled === false }), again("Done.")), " ",
        act("Delete", called(one), () => (window.confirm(`Delete the webhook ${called(one)}, and what it has not had yet?`) ? ask("DELETE", at(one)) : CALLED_OFF), again("Done."))))),
    "Nobody has subscribed yet. An address that is added here gets each event as it happens, signed with a secret that is shown once."),
    found.slice(0, 20).map((one, n) => (deliveries[n].deliveries || []).length ? [h("h2", {}, `Last deliveries: ${called(one)}`),
      table(["Number", "Event", "State", "Tries", "Last answer", ""], deliveries[n].deliveries.map((each) => h("tr", {}, h("td", { class: "num" }, number(each.seq)), h("td", {}, each.event_type),
        h("td", {}, tag(each.state)), h("td", { class: "num" }, each.attempts), h("td", { class: "long" }, each.error || each.status || "–"),
        h("td", { class: "fit" }, each.state === "dead" ? act("Try again", `number ${number(each.seq)}`, () => ask("POST", at(one, `/deliveries/${each.id}/retry`), {}), again("It is tried again.")) : null))))] : null),
  ];
}

// Images

function bytes(size) {
  if (size === null || size === undefined) return "–";
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, size)) / 10));
  return `${(size / 1024 ** power).toFixed(power ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

export async function images() {
  const found = await everyImage();
  return [
    h("h1", {}, "Images"),
    table(["Image", "State", "Size", "Format", "For", "Age"], found.map((one) => h("tr", {}, h("td", {}, h("span", { class: "name", title: one.id }, one.name || one.id)), h("td", {}, tag(one.status)),
      h("td", { class: "num fit" }, bytes(one.size)), h("td", {}, one.disk_format || "–"), h("td", {}, one.visibility), h("td", { class: "fit" }, ago(one.created_at)))),
    "There are no images yet. Bring one in: siderite image import PATH --name NAME --public"),
  ];
}

// Health

// Why a compute service takes no servers: one may be down and disabled both.
function whyNot(one) {
  const closed = one.status === "enabled" ? null : `disabled: ${one.disabled_reason || "no reason was given"}`;
  return [one.down_reason, closed].filter(Boolean).map((text) => h("div", {}, text));
}

// What could not be asked for is not none: why it is not known stands in its place.
const listed = (promise, name) => promise.then((found) => [found[name]], (problem) => [[], problem.message]);

export async function health() {
  const [well, text, [conductors, noConductors], log, [services, noServices]] = await Promise.all([
    quietly(get("/healthz"), { status: "does not answer" }), quietly(get("/metrics"), ""),
    listed(get("/baremetal/v1/conductors?detail=true"), "conductors"), quietly(get("/events/v1/log"), null), listed(get("/compute/v2.1/os-services"), "services")]);
  const value = (name) => { const found = new RegExp(`^${name} ([0-9.e+-]+)$`, "m").exec(text); return found ? Number(found[1]) : "–"; };
  const behind = log ? Math.max(0, ...log.readers.map((one) => one.behind)) : "–";
  const note = (count, words, kind) => h("div", { class: `card ${kind || ""}` }, h("b", {}, number(count)), words);
  return [
    h("h1", {}, "Health"),
    h("div", { class: "grid" }, note(well.status, "database", well.status === "ok" ? "" : "bad"), note(value('siderite_work\\{leased="no"\\}'), "jobs waiting"),
      note(value("siderite_jobs_running"), "jobs under way"), note(behind, "events, the slowest reader behind", behind > 10000 ? "warn" : ""),
      note(log ? log.newest ?? 0 : "–", "newest event"), note(value("siderite_streams"), "open streams")),
    h("h2", {}, "Workers"), table(["Host", "Group", "Seen", "State"], conductors.map((one) => h("tr", {}, h("td", {}, one.hostname), h("td", {}, one.conductor_group || "–"),
      h("td", { class: "fit" }, ago(one.updated_at)), h("td", {}, tag(one.alive ? "active" : "down")))), noConductors || "No worker has ever been here."),
    h("h2", {}, "Compute services"), table(["Binary", "Host", "Zone", "Seen", "State", "Why"], services.map((one) => h("tr", {}, h("td", {}, one.binary), h("td", {}, one.host), h("td", {}, one.zone),
      h("td", { class: "fit" }, ago(one.updated_at && `${one.updated_at}Z`.replace("ZZ", "Z"))), h("td", {}, tag(one.state === "up" ? (one.status === "enabled" ? "active" : "disabled") : "down")), h("td", { class: "long" }, whyNot(one)))), noServices || "There are no hosts yet. Add one: siderite host add NAME URI."),
    log ? [h("h2", {}, "Readers of the log"), table(["Reader", "At", "Behind", "Lost", "Problem"], log.readers.map((one) => h("tr", {}, h("td", {}, one.name), h("td", { class: "num" }, number(one.at)),
      h("td", { class: "num" }, number(one.behind)), h("td", { class: "num" }, number(one.lost)), h("td", { class: "long" }, one.problem || "–"))), "Nobody reads it.")] : null,
    h("p", { class: "soft" }, "On the machine itself, ", h("code", {}, "siderite doctor"), " looks at ports, clock, database, hosts and BMCs, and says what to do."),
  ];
}
