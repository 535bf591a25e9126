// The pages. Each gets the words of its address and gives back what is shown.

import { ask, can, get, session } from "./api.js";
import { ago, copy, h, meter, table, tag, toast } from "./ui.js";

const PAGE = 100;
const FAILED = ["deploy failed", "clean failed", "inspect failed", "rescue failed", "unrescue failed", "adopt failed", "service failed", "error"];
const WAYS = { node: "nodes", server: "servers" };

const shown = (item) => item.name || item.uuid || item.id;
const node = (one, text) => h("a", { href: `#/node/${one.uuid}` }, text || shown(one));
const server = (one, text) => h("a", { href: `#/server/${one.id}` }, text || shown(one));

function power(one) {
  const word = one.power_state || "UNKNOWN";
  const target = one.target_power_state ? ` → ${one.target_power_state}` : "";
  return h("span", { title: one.power_state_reason || "" }, tag(word), target);
}

function state(one) {
  const target = one.target_provision_state;
  return [tag(one.provision_state), target && target !== one.provision_state ? h("span", { class: "soft" }, ` → ${target}`) : null];
}

async function quietly(promise, otherwise) {
  try { return await promise; } catch (why) { return otherwise; }
}

// Attention: what is stuck, and why

export async function attention() {
  const nodes = [];
  const seen = new Set();
  const add = (found) => found.nodes.forEach((one) => { if (!seen.has(one.uuid)) { seen.add(one.uuid); nodes.push(one); } });
  add(await get("/baremetal/v1/nodes/detail?maintenance=true&limit=200"));
  add(await quietly(get("/baremetal/v1/nodes/detail?fault=power%20failure&limit=200"), { nodes: [] }));
  const failed = await Promise.all(FAILED.map((word) =>
    get(`/baremetal/v1/nodes/detail?provision_state=${encodeURIComponent(word)}&limit=100`)));
  failed.forEach(add);
  const servers = [];
  for (const word of ["ERROR", "PENDING"]) {
    const found = await quietly(get(`/compute/v2.1/servers/detail?${can("admin") ? "all_tenants=1&" : ""}status=${word}&limit=200`), { servers: [] });
    servers.push(...found.servers);
  }
  const overdue = can("admin") ? await quietly(get("/events/v1/monitor/open?overdue=true"), { operations: [], open: [] }) : {};
  const late = overdue.operations || overdue.open || [];
  const unknown = nodes.filter((one) => one.fault === "power failure" || (one.power_state === "unknown" && one.provision_state !== "enroll"));
  const rows = [
    ...nodes.map((one) => h("tr", {}, h("td", {}, node(one)), h("td", {}, state(one)), h("td", {}, power(one)),
      h("td", {}, why(one)), h("td", {}, ago(one.provision_updated_at)))),
    ...servers.map((one) => h("tr", {}, h("td", {}, server(one)), h("td", {}, tag(one.status)), h("td", {}, "–"),
      h("td", {}, one.wait_reason || (one.fault && one.fault.message) || "–"), h("td", {}, ago(one.updated)))),
  ];
  return [
    h("h1", {}, "Attention"),
    h("div", { class: "grid" },
      card(nodes.filter((one) => /failed|error/.test(one.provision_state)).length, "nodes failed", "bad"),
      card(nodes.filter((one) => one.maintenance).length, "nodes in maintenance", "warn"),
      card(unknown.length, "BMCs that cannot be read", "bad"),
      card(servers.filter((one) => one.status === "ERROR").length, "servers in error", "bad"),
      card(servers.filter((one) => one.status === "PENDING").length, "servers without room", "warn"),
      card(late.length, "operations over their time", "warn")),
    h("h2", {}, "What needs somebody"),
    table(["Machine", "State", "Power", "Why", "For"], rows, "All is well: nothing waits for anybody."),
  ];
}

function why(one) {
  const reasons = [one.last_error, one.maintenance_reason, one.fault && `fault: ${one.fault}`, one.power_state_reason, one.wait_reason];
  return [...new Set(reasons.filter(Boolean))].map((text) => h("div", {}, text));
}

function card(count, words, kind) {
  return h("div", { class: `card ${count ? kind : ""}` }, h("b", {}, count), words);
}

// Fleet: all machines, page after page

export async function fleet(kind = "node", query = "") {
  const asked = new URLSearchParams(query);
  const facets = h("form", { class: "bar", "aria-label": "Filters" },
    h("label", {}, "Show ", h("select", { name: "kind", "aria-label": "Kind of machine" },
      h("option", { value: "node", selected: kind === "node" }, "nodes"), h("option", { value: "server", selected: kind === "server" }, "servers"))),
    kind === "node"
      ? [choice("provision_state", "state", ["", "enroll", "manageable", "available", "active", "cleaning", "clean wait", "deploying", "wait call-back", ...FAILED], asked),
        choice("maintenance", "maintenance", ["", "true", "false"], asked),
        h("input", { name: "resource_class", placeholder: "resource class", "aria-label": "Resource class", value: asked.get("resource_class") || "" })]
      : [choice("status", "status", ["", "ACTIVE", "BUILD", "PENDING", "SHUTOFF", "ERROR", "RESCUE", "SHELVED_OFFLOADED"], asked),
        h("input", { name: "name", placeholder: "name", "aria-label": "Name", value: asked.get("name") || "" })],
    h("button", { type: "submit" }, "Filter"));
  facets.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = new FormData(facets);
    const chosen = form.get("kind");
    form.delete("kind");
    const words = chosen === kind ? new URLSearchParams([...form].filter(([, value]) => value)) : "";
    location.hash = `#/fleet/${chosen}${String(words) ? "?" + words : ""}`;
  });
  facets.querySelector("select[name=kind]").addEventListener("change", () => facets.requestSubmit());
  const body = h("tbody");
  const more = h("button", { type: "button" }, "More");
  const count = h("span", { class: "soft", role: "status" });
  const chosen = new Set();
  const fetchPage = kind === "node" ? nodesPage : serversPage;
  let marker = null;
  let total = 0;
  async function next() {
    more.disabled = true;
    const found = await fetchPage(asked, marker, chosen);
    body.append(...found.rows);
    total += found.rows.length;
    marker = found.marker;
    count.textContent = `${total} ${WAYS[kind]}${marker ? " so far" : ""}`;
    more.hidden = !marker;
    more.disabled = false;
  }
  more.addEventListener("click", next);
  await next();
  const watcher = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && !more.disabled && !more.hidden) next(); });
  watcher.observe(more);
  const columns = kind === "node" ? ["", "Node", "State", "Power", "In state for", "Owner", "Class", "What"] : ["", "Server", "Status", "Task", "Power", "Host", "Flavor", "Changed"];
  return [
    h("h1", {}, "Fleet"), facets, kind === "node" && can("admin") ? bulk(chosen) : null, count,
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))), body)),
    more,
  ];
}

function choice(name, label, words, asked) {
  return h("select", { name, "aria-label": label }, words.map((word) =>
    h("option", { value: word, selected: (asked.get(name) || "") === word }, word || `any ${label}`)));
}

function tick(chosen, ident, label) {
  const box = h("input", { type: "checkbox", "aria-label": `Choose ${label}` });
  box.addEventListener("change", () => (box.checked ? chosen.add(ident) : chosen.delete(ident)));
  return box;
}

async function nodesPage(asked, marker, chosen) {
  const words = new URLSearchParams(asked);
  words.set("limit", PAGE);
  if (marker) words.set("marker", marker);
  const { nodes } = await get(`/baremetal/v1/nodes/detail?${words}`);
  const rows = nodes.map((one) => h("tr", {}, h("td", {}, tick(chosen, one.uuid, shown(one))), h("td", {}, node(one)), h("td", {}, state(one)),
    h("td", {}, power(one)), h("td", {}, ago(one.provision_updated_at || one.created_at)), h("td", { class: "mono" }, (one.owner || "–").slice(0, 8)),
    h("td", {}, one.resource_class || "–"), h("td", {}, why(one))));
  return { rows, marker: nodes.length === PAGE ? nodes[nodes.length - 1].uuid : null };
}

const POWER = { 0: "unknown", 1: "running", 3: "paused", 4: "off", 6: "crashed", 7: "suspended" };

async function serversPage(asked, marker, chosen) {
  const words = new URLSearchParams(asked);
  words.set("limit", PAGE);
  if (can("admin")) words.set("all_tenants", "1");
  if (marker) words.set("marker", marker);
  const { servers } = await get(`/compute/v2.1/servers/detail?${words}`);
  const rows = servers.map((one) => h("tr", {}, h("td", {}, tick(chosen, one.id, shown(one))), h("td", {}, server(one)), h("td", {}, tag(one.status)),
    h("td", {}, tag(one["OS-EXT-STS:task_state"])), h("td", {}, POWER[one["OS-EXT-STS:power_state"]]), h("td", {}, one["OS-EXT-SRV-ATTR:host"] || "–"),
    h("td", {}, one.flavor.original_name), h("td", {}, ago(one.updated))));
  return { rows, marker: servers.length === PAGE ? servers[servers.length - 1].id : null };
}

function bulk(chosen) {
  const verb = h("select", { "aria-label": "What to do with the chosen nodes" },
    ["manage", "provide", "active", "deleted", "inspect", "abort", "power on", "power off", "maintenance on", "maintenance off"].map((word) => h("option", {}, word)));
  const go = h("button", { type: "button" }, "Do it to the chosen");
  go.addEventListener("click", async () => {
    if (!chosen.size) { toast("Choose some nodes first.", true); return; }
    let done = 0;
    const refused = [];
    for (const uuid of chosen) {
      try { await nodeVerb(uuid, verb.value); done += 1; } catch (why) { refused.push(why.message); }
    }
    toast(`${verb.value}: ${done} taken${refused.length ? `, ${refused.length} refused: ${refused[0]}` : ""}.`, refused.length > 0);
  });
  return h("div", { class: "bar" }, verb, go);
}

function nodeVerb(uuid, verb) {
  const at = `/baremetal/v1/nodes/${uuid}`;
  if (verb.startsWith("power ") || verb === "rebooting" || verb.startsWith("soft ")) return ask("PUT", `${at}/states/power`, { target: verb });
  if (verb === "maintenance on") return ask("PUT", `${at}/maintenance`, { reason: `set in the console by ${session.name}` });
  if (verb === "maintenance off") return ask("DELETE", `${at}/maintenance`);
  return ask("PUT", `${at}/states/provision`, { target: verb });
}

// One machine

let tables = null;
async function machines() {
  tables = tables || await (await fetch("machines.json")).json();
  return tables;
}

function verbs(words, legal, act) {
  return h("div", { class: "bar", role: "group", "aria-label": "What can be done" }, words.map((word) =>
    h("button", { type: "button", disabled: !can("member") || !legal.includes(word),
      title: !can("member") ? "Your role may look, not act." : legal.includes(word) ? "" : "Not possible in this state.",
      onclick: async () => {
        try { await act(word); toast(`${word}: taken.`); } catch (why) { toast(`${word}: ${why.message}`, true); }
      } }, word)));
}

export async function oneNode(ident) {
  const [one, machine, timeline] = await Promise.all([
    get(`/baremetal/v1/nodes/${ident}`), machines(), quietly(get(`/baremetal/v1/nodes/${ident}/timeline?limit=1000`), { timeline: [] })]);
  const legal = machine.node.verbs[one.provision_state] || [];
  const all = [...new Set(Object.values(machine.node.verbs).flat())].sort();
  const busy = one.target_power_state !== null;
  const switching = ["power on", "power off", "rebooting", "soft power off"];
  const entries = timeline.timeline.slice(-200).reverse();
  const steps = one.driver_internal_info.clean_steps || one.driver_internal_info.deploy_steps || one.driver_internal_info.service_steps;
  const at = one.driver_internal_info.clean_step_index ?? one.driver_internal_info.deploy_step_index ?? one.driver_internal_info.service_step_index ?? 0;
  return [
    h("h1", {}, shown(one), " ", tag(one.provision_state), " ", power(one)),
    one.last_error ? h("div", { class: "trouble" }, h("strong", {}, "Last error: "), one.last_error, remedy(one)) : null,
    one.maintenance ? h("div", { class: "note" }, "In maintenance: ", one.maintenance_reason || "no reason was given") : null,
    one.wait_reason ? h("div", { class: "note" }, one.wait_reason, one.deadline ? [" – until ", one.deadline] : null) : null,
    verbs(all, legal, (word) => nodeVerb(one.uuid, word)),
    verbs(switching, busy ? [] : switching, (word) => nodeVerb(one.uuid, word)),
    steps ? [h("h2", {}, "Steps"), h("progress", { max: steps.length, value: at, "aria-label": "Steps done" }),
      table(["", "Step", "Priority"], steps.map((step, number) => h("tr", {}, h("td", {}, number < at ? "✓" : number === at ? "▸" : ""),
        h("td", {}, `${step.interface}.${step.step}`), h("td", {}, step.priority))))] : null,
    h("div", { class: "two" },
      h("section", {}, h("h2", {}, "All of it"), facts(one, ["uuid", "driver", "resource_class", "owner", "conductor_group", "traits", "power_policy", "instance_uuid", "created_at"]),
        raw(one), cli([`openstack baremetal node show ${one.uuid}`, ...legal.map((word) => `openstack baremetal node ${cliVerb(word)} ${one.uuid}`)])),
      h("section", {}, h("h2", {}, "Timeline"), table(["When", "What", "From → to", "Who, why"], entries.map((entry) => h("tr", {},
        h("td", {}, ago(entry.time)), h("td", {}, `${entry.what} ${entry.status}`), h("td", {}, entry.to ? `${entry.from || "–"} → ${entry.to}` : "–"),
        h("td", {}, [entry.user, entry.cause, entry.reason].filter(Boolean).join(", ")))), "Nothing has happened yet."))),
    h("h2", {}, "You are here"), diagram("node", one.provision_state),
  ];
}

const cliVerb = (word) => ({ active: "deploy", deleted: "undeploy" }[word] || word);

function remedy(one) {
  if (one.fault === "power failure") return h("p", {}, "Check the BMC's address, credentials and network; it recovers by itself when the BMC answers.");
  if (/failed/.test(one.provision_state)) return h("p", {}, "Look at the timeline, mend the cause, then use one of the verbs that are enabled.");
  return null;
}

function diagram(kind, here) {
  return h("div", { class: "diagram" }, h("img", { src: `machines/${kind}.svg?here=${encodeURIComponent(here)}`, alt: `States of a ${kind}; this one is ${here}` }));
}

function facts(one, names) {
  return h("dl", {}, names.map((name) => [h("dt", {}, name), h("dd", {}, Array.isArray(one[name]) ? one[name].join(", ") || "–" : String(one[name] ?? "–"))]));
}

function raw(one) {
  return h("details", {}, h("summary", {}, "Raw JSON"), h("pre", {}, JSON.stringify(one, null, 2)));
}

function cli(lines) {
  const text = lines.join("\n");
  return h("details", {}, h("summary", {}, "As commands"), h("pre", {}, text), copy(text, "Copy the commands"));
}

const SERVER_VERBS = { start: ["os-start", null], stop: ["os-stop", null], reboot: ["reboot", { type: "SOFT" }], reboot_hard: ["reboot", { type: "HARD" }],
  pause: ["pause", null], unpause: ["unpause", null], suspend: ["suspend", null], resume: ["resume", null], shelve: ["shelve", null], unshelve: ["unshelve", null],
  rescue: ["rescue", null], unrescue: ["unrescue", null], confirm_resize: ["confirmResize", null], revert_resize: ["revertResize", null] };

export async function oneServer(ident) {
  const [{ server: one }, machine, actions] = await Promise.all([
    get(`/compute/v2.1/servers/${ident}`), machines(), get(`/compute/v2.1/servers/${ident}/os-instance-actions`)]);
  const vm = one["OS-EXT-STS:vm_state"];
  const here = one["OS-EXT-STS:task_state"] ? `${vm}/${one["OS-EXT-STS:task_state"]}` : vm;
  const legal = machine.server.verbs[here] || [];
  const refusals = Object.entries(one.refusals || {});
  return [
    h("h1", {}, shown(one), " ", tag(one.status), " ", tag(one["OS-EXT-STS:task_state"])),
    one.fault ? h("div", { class: "trouble" }, h("strong", {}, "Fault: "), one.fault.message) : null,
    one.wait_reason ? h("div", { class: "note" }, one.wait_reason, one.deadline ? [" – until ", one.deadline] : null) : null,
    verbs([...Object.keys(SERVER_VERBS), "delete"], [...legal, "delete"], (word) => word === "delete"
      ? ask("DELETE", `/compute/v2.1/servers/${one.id}`)
      : ask("POST", `/compute/v2.1/servers/${one.id}/action`, { [SERVER_VERBS[word][0]]: SERVER_VERBS[word][1] })),
    refusals.length ? [h("h2", {}, "Why no host would take it"), table(["Host", "Reason"], refusals.map(([host, reason]) => h("tr", {}, h("td", {}, host), h("td", {}, reason))))] : null,
    h("h2", {}, "Actions"), table(["When", "Action", "Request", "Result"], actions.instanceActions.map((action) => h("tr", {}, h("td", {}, ago(action.start_time)),
      h("td", {}, action.action), h("td", { class: "mono" }, action.request_id), h("td", {}, action.message ? tag("error", action.message) : "–")))),
    h("h2", {}, "All of it"), facts({ ...one, host: one["OS-EXT-SRV-ATTR:host"], flavor: one.flavor.original_name, image: one.image && one.image.id,
      power: POWER[one["OS-EXT-STS:power_state"]], addresses: Object.values(one.addresses).flat().map((each) => each.addr) },
    ["id", "host", "flavor", "image", "power", "addresses", "tenant_id", "created"]),
    raw(one), cli([`openstack server show ${one.id}`, `openstack server event list ${one.id}`, ...legal.filter((word) => SERVER_VERBS[word]).map((word) => `openstack server ${word.replace("_", " ")} ${one.id}`)]),
  ];
}

// Pending and reaper

export async function pending() {
  const { servers } = await get(`/compute/v2.1/servers/detail?${can("admin") ? "all_tenants=1&" : ""}status=PENDING&limit=1000`);
  return [
    h("h1", {}, "Pending"),
    h("p", { class: "lead" }, "Servers for which no host has room. A service outside frees some and has them built: ", h("code", {}, "siderite reaper"), "."),
    table(["Server", "Since", "Wants", "Why not"], servers.map((one) => h("tr", {}, h("td", {}, server(one)), h("td", {}, ago(one.updated)),
      h("td", {}, `${one.flavor.vcpus} vCPU, ${one.flavor.ram} MiB, ${one.flavor.disk} GiB`),
      h("td", {}, Object.entries(one.refusals || {}).slice(0, 6).map(([host, reason]) => h("div", {}, `${host}: ${reason}`))))), "No server waits for room."),
  ];
}

// Events

export async function events(query = "") {
  const asked = new URLSearchParams(query);
  const type = asked.get("type") || "";
  const { newest } = can("admin") ? await quietly(get("/events/v1/log"), { newest: 0 }) : { newest: 0 };
  const words = new URLSearchParams({ after: Math.max(0, (newest || 0) - 200), limit: 200, ...(type ? { type } : {}) });
  const found = await get(`/events/v1/events?${words}`);
  const body = h("tbody", { id: "tail" }, found.events.reverse().map((one) => eventRow(one)));
  const form = h("form", { class: "bar" }, h("input", { name: "type", placeholder: "type, such as baremetal.node.*.error", size: 36, value: type, "aria-label": "Event type" }),
    h("button", {}, "Filter"));
  form.addEventListener("submit", (event) => { event.preventDefault(); location.hash = `#/events?${new URLSearchParams(new FormData(form))}`; });
  return [h("h1", {}, "Events"), form, h("div", { class: "scroll" }, h("table", { "data-type": type }, h("thead", {}, h("tr", {},
    ["Number", "When", "What", "Machine", "Request"].map((name) => h("th", { scope: "col" }, name)))), body))];
}

export function eventRow(one, fresh) {
  const { type, id } = one.resource;
  const link = { node: `#/node/${id}`, server: `#/server/${id}`, instance: `#/server/${id}` }[type];
  return h("tr", { class: fresh ? "new" : null }, h("td", { class: "mono" }, one.seq), h("td", {}, ago(one.time)),
    h("td", {}, one.priority === "ERROR" ? tag("error") : null, " ", one.event_type), h("td", { class: "mono" }, link ? h("a", { href: link }, id.slice(0, 8)) : `${type} ${id.slice(0, 8)}`),
    h("td", { class: "mono" }, one.request_id || "–"));
}

// Webhooks

export async function webhooks() {
  const { webhooks: found } = await get("/events/v1/webhooks");
  const test = (one) => h("button", { type: "button", disabled: !can("member"), onclick: async () => {
    try { const told = await ask("POST", `/events/v1/webhooks/${one.uuid || one.id}/test`, {}); toast(`It answered: ${JSON.stringify(told)}`); }
    catch (why) { toast(why.message, true); } } }, "Test");
  return [
    h("h1", {}, "Webhooks"),
    table(["Address", "Wants", "State", "At number", ""], found.map((one) => h("tr", {}, h("td", {}, one.url), h("td", {}, one.type || one.event_type || "everything"),
      h("td", {}, tag(one.enabled === false ? "off" : one.state || "active")), h("td", { class: "mono" }, one.seq ?? one.at ?? "–"), h("td", {}, test(one)))),
    "Nobody has subscribed. POST to /events/v1/webhooks makes one; see the how-to."),
  ];
}

// Capacity

export async function capacity() {
  const { hypervisors } = await get("/compute/v2.1/os-hypervisors/detail?limit=1000");
  const { flavors } = await get("/compute/v2.1/flavors/detail?limit=100");
  const left = (one, what) => (one.room ? one.room[what].limit - one.room[what].used : 0);
  const fits = (flavor) => hypervisors.filter((one) => one.state === "up" && one.status === "enabled").reduce((sum, one) => sum + Math.max(0, Math.min(
    flavor.vcpus ? Math.floor(left(one, "vcpus") / flavor.vcpus) : Infinity, flavor.ram ? Math.floor(left(one, "ram_mib") / flavor.ram) : Infinity,
    flavor.disk ? Math.floor(left(one, "disk_gib") / flavor.disk) : Infinity)), 0);
  const bar = (one, what) => (one.room ? [meter(one.room[what].used, one.room[what].limit), h("span", { class: "soft" }, `${one.room[what].used} / ${one.room[what].limit}`)] : "–");
  return [
    h("h1", {}, "Capacity"),
    table(["Host", "State", "vCPUs", "Memory, MiB", "Disk, GiB"], hypervisors.map((one) => h("tr", {}, h("td", {}, one.hypervisor_hostname),
      h("td", {}, tag(one.status === "enabled" && one.state === "up" ? "active" : one.state === "up" ? "disabled" : "down")), h("td", {}, bar(one, "vcpus")), h("td", {}, bar(one, "ram_mib")), h("td", {}, bar(one, "disk_gib")))),
    "There are no hosts yet. Add one: siderite host add NAME URI."),
    h("h2", {}, "How many more fit"),
    table(["Flavor", "vCPUs", "Memory, MiB", "Disk, GiB", "More"], flavors.map((one) => h("tr", {}, h("td", {}, one.name), h("td", {}, one.vcpus), h("td", {}, one.ram), h("td", {}, one.disk), h("td", {}, h("b", {}, fits(one)))))),
  ];
}

// Health

export async function health() {
  const [well, text, conductors, log, services] = await Promise.all([
    quietly(get("/healthz"), { status: "the database does not answer" }), quietly(get("/metrics"), ""),
    quietly(get("/baremetal/v1/conductors?detail=true"), { conductors: [] }), quietly(get("/events/v1/log"), null), quietly(get("/compute/v2.1/os-services"), { services: [] })]);
  const value = (name) => { const found = new RegExp(`^${name} ([0-9.e+-]+)$`, "m").exec(text); return found ? Number(found[1]) : "–"; };
  return [
    h("h1", {}, "Health"),
    h("div", { class: "grid" }, h("div", { class: "card" }, h("b", {}, well.status), "database"),
      h("div", { class: "card" }, h("b", {}, value('siderite_work\\{leased="no"\\}')), "jobs waiting"), h("div", { class: "card" }, h("b", {}, value("siderite_jobs_running")), "jobs under way"),
      h("div", { class: "card" }, h("b", {}, value("siderite_streams")), "open streams"), h("div", { class: "card" }, h("b", {}, log ? log.newest ?? "–" : "–"), "newest event")),
    h("h2", {}, "Workers"), table(["Host", "Group", "Alive"], conductors.conductors.map((one) => h("tr", {}, h("td", {}, one.hostname), h("td", {}, one.conductor_group || "–"), h("td", {}, tag(one.alive ? "active" : "error"))))),
    h("h2", {}, "Compute services"), table(["Binary", "Host", "State"], services.services.map((one) => h("tr", {}, h("td", {}, one.binary), h("td", {}, one.host), h("td", {}, tag(one.state === "up" ? "active" : "error")))), "No compute hosts."),
    log ? [h("h2", {}, "Readers of the log"), raw(log)] : null,
  ];
}
