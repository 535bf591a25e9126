// One machine: where it is, what can be done, what happened, and why it is stuck.

import { can, get, machines, nameOf } from "./api.js";
import { consoleOf, wish } from "./guest.js";
import { runs } from "./fleet.js";
import { ago, copy, h, moment, power, quietly, raw, table, tag, toast } from "./ui.js";
import { DISTURBS, MEANS, MORE, SERVER_VERBS, needed, nodeVerb, serverVerb, words_ } from "./verbs.js";

// What was pressed and is not answered yet: pressed once more, it is not asked for twice, though the page be drawn anew.
const busy = new Set();
function verbs(label, words, legal, act, { sure = () => null, means = {}, otherwise = "Not possible in this state." } = {}) {
  return h("div", { class: "bar", role: "group", tabindex: -1, "aria-label": label }, words.map((word) => {
    const key = `${location.hash} ${word}`;
    return h("button", { type: "button", disabled: !can("member") || !legal.includes(word), "aria-busy": busy.has(key) ? "true" : null, "data-key": key,
      title: !can("member") ? "Your role may look, not act." : legal.includes(word) ? means[word] : otherwise,
      onclick: async ({ currentTarget: pressed }) => {
        if (busy.has(key) || (sure(word) && !window.confirm(sure(word)))) return;
        busy.add(key);
        pressed.setAttribute("aria-busy", "true");
        try { if (await act(word) !== null) toast(`${words_(word)}: taken.`); } catch (problem) { toast(`${words_(word)}: ${problem.message}`, true); }
        busy.delete(key);
        document.querySelectorAll("button[aria-busy]").forEach((one) => { if (one.getAttribute("data-key") === key) one.removeAttribute("aria-busy"); });
      } }, words_(word));
  }));
}

function sureOfNode(one, word) {
  const name = one.name || one.uuid;
  if (word === "deleted") return `Undeploy ${name}? What runs on it ends, and its disks are cleaned.`;
  if (word === "rebuild") return `Deploy ${name} again? Its disk is written anew.`;
  const carries = ["active", "rescue", "service wait", "servicing"].includes(one.provision_state);
  return carries && word !== "power on" && POWER_VERBS.includes(word) ? `${word}: ${name} carries a workload. Go on?` : null;
}

const POWER_VERBS = ["power on", "power off", "rebooting", "soft power off", "soft rebooting"];

// While work is under way, or a ramdisk cleans, power is the work's own; a node may also be one that is never switched off.
function powerVerbs(one) {
  if (one.target_power_state !== null || /ing$|^clean wait$/.test(one.provision_state)) return [];
  return POWER_VERBS.filter((word) => !(one.disable_power_off && word.endsWith("power off")));
}

const STEPS = [["clean_steps", "clean_step_index"], ["deploy_steps", "deploy_step_index"], ["service_steps", "service_step_index"]];

export async function oneNode(ident) {
  const [one, machine, timeline] = await Promise.all([
    get(`/baremetal/v1/nodes/${ident}`), machines(), quietly(get(`/baremetal/v1/nodes/${ident}/timeline?sort_dir=desc&limit=200`), { timeline: [] })]);
  // By its name it is the same node; what the log tells of it goes by its UUID.
  if (location.hash === `#/node/${ident}`) history.replaceState(null, "", `#/node/${one.uuid}`);
  const legal = machine.node.verbs[one.provision_state] || [];
  const all = [...new Set(Object.values(machine.node.verbs).flat())].sort();
  const entries = timeline.timeline;
  const isFailed = /failed|^error/.test(one.provision_state);
  // A later request, such as one for power, takes the error away; the timeline still has it.
  const failure = entries.find((entry) => entry.status === "error" && entry.to === one.provision_state);
  const owner = await nameOf("project", one.owner);
  const act = async (word) => { const more = await needed(word); return more && nodeVerb(one.uuid, word, more).then(() => true); };
  // An outage is the reason of the maintenance, too: told once.
  const isOut = one.fault === "power failure" && one.maintenance;
  const trouble = one.last_error || (isFailed && failure && failure.reason);
  return [
    title(one.name || one.uuid, tag(one.provision_state), power(one), h("span", { class: "soft" }, "in this state for ", ago(one.provision_updated_at || one.created_at))),
    trouble || isFailed ? h("div", { class: "trouble" }, h("strong", {}, "Last error: "), trouble || "it is no longer known", remedy(one, legal)) : null,
    one.power_state_reason && !isOut ? h("div", { class: "note" }, "Power: ", one.power_state_reason) : null,
    one.maintenance && one.maintenance_reason !== one.last_error ? h("div", { class: "note" }, "In maintenance: ", one.maintenance_reason || "no reason was given", isOut ? " It ends by itself when the BMC answers again." : null) : null,
    one.wait_reason ? h("div", { class: "note" }, one.wait_reason, one.deadline ? [" – until ", moment(one.deadline)] : null) : null,
    verbs("What can be done", all, legal, act, { sure: (word) => sureOfNode(one, word), means: MEANS }),
    verbs("Power", POWER_VERBS, powerVerbs(one), act, { sure: (word) => sureOfNode(one, word) }),
    verbs("Maintenance", ["maintenance on", "maintenance off"], [one.maintenance ? "maintenance off" : "maintenance on"], act),
    steps(one),
    h("div", { class: "two" },
      h("section", {}, h("h2", {}, "About it"), facts({ ...one, owner: called(owner, one.owner), created_at: moment(one.created_at) }, ["uuid", "driver", "resource_class", "owner", "conductor_group", "traits", "power_policy", "instance_uuid", "created_at"]),
        raw(one), cli([`siderite node show ${one.name || one.uuid}`, `siderite node timeline ${one.name || one.uuid}`,
          ...legal.map((word) => `siderite node provision ${word} ${one.name || one.uuid}${MORE[word] || ""} --wait`)])),
      h("section", {}, h("h2", {}, "Timeline"), table(["When", "What", "From → to", "Who, why"], entries.map((entry) => h("tr", {},
        h("td", { class: "fit" }, ago(entry.time)), h("td", {}, `${entry.what} ${entry.status}`), h("td", { class: (entry.changed || []).length ? "long" : null }, moved(entry)),
        h("td", { class: "long" }, [entry.user, entry.cause, entry.reason].filter(Boolean).join(", ")))), "Nothing has happened yet."))),
    diagram("node", one.provision_state),
  ];
}

// What stays as it was did not move: a start and its end tell of one change.
function moved({ from, to, changed = [] }) {
  const lines = (to === null || from === to ? [] : [`${from ?? "–"} → ${to}`]).concat(changed.map((one) => `${one.field}: ${plain(one.from)} → ${plain(one.to)}`));
  return lines.length ? lines.map((line) => h("div", {}, line)) : "–";
}
const plain = (value) => (value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value));

function title(name, ...rest) {
  return h("h1", { class: "title" }, h("span", { class: "long" }, name), rest.map((one) => [" ", one]));
}

function steps(one) {
  const info = one.driver_internal_info;
  const found = STEPS.find(([list]) => Array.isArray(info[list]) && info[list].length);
  if (!found) return null;
  const [list, at] = [info[found[0]], info[found[1]] ?? 0];
  return [h("h2", {}, `Steps: ${at} of ${list.length} done`), h("progress", { max: list.length, value: at, "aria-label": "Steps done" }),
    table(["", "Step", "Priority"], list.map((step, number) => h("tr", { "aria-current": number === at ? "step" : null },
      h("td", { class: "fit tick" }, number < at ? "✓" : number === at ? "▸" : ""), h("td", {}, `${step.interface}.${step.step}`), h("td", { class: "num" }, step.priority))))];
}

function remedy(one, legal) {
  const next = legal.length ? `Then: ${legal.map((word) => (MEANS[word] ? `${word} (${MEANS[word]})` : word)).join(", ")}.` : "";
  if (one.fault === "power failure") return h("p", {}, "Check the BMC's address, credentials and network. When it answers again, maintenance ends by itself.");
  if (/failed/.test(one.provision_state)) return h("p", {}, `The timeline has the step and its error. Mend the cause${one.maintenance ? ", end maintenance" : ""}. ${next}`);
  return next ? h("p", {}, next) : null;
}

function diagram(kind, here) {
  return [h("h2", {}, "You are here"), h("div", { class: "diagram", tabindex: 0, role: "group", "aria-label": "State diagram" },
    h("img", { class: kind, src: `machines/${kind}.svg?here=${encodeURIComponent(here)}`, alt: `States of a ${kind}; this one is ${here}` }))];
}

function facts(one, names) {
  return h("dl", {}, names.map((name) => [h("dt", {}, name), h("dd", {}, one[name] instanceof Node ? one[name] : Array.isArray(one[name]) ? one[name].join(", ") || "–" : String(one[name] ?? "") || "–")]));
}

// By its name, where that is known; its id is what other tools want.
const called = (name, id) => (name ? `${name} (${id})` : id);

// Each by itself: one says to deploy, the next to undo it, and nobody wants both in a terminal.
function cli(lines) {
  return h("details", {}, h("summary", {}, "As commands"), lines.map((line) => h("div", { class: "command" }, h("code", {}, line), copy(line))));
}

const SAID = { reboot_hard: "reboot --hard", resize: "resize --flavor FLAVOR", confirm_resize: "confirm", revert_resize: "revert" };

export async function oneServer(ident) {
  const [{ server: one }, machine, actions] = await Promise.all([
    get(`/compute/v2.1/servers/${ident}`), machines(), get(`/compute/v2.1/servers/${ident}/os-instance-actions`)]);
  const vm = one["OS-EXT-STS:vm_state"];
  const task = one["OS-EXT-STS:task_state"];
  const here = task ? `${vm}/${task}` : vm;
  const legal = machine.server.verbs[here] || [];
  const isShut = one.locked && !can("admin");
  const refusals = Object.entries(one.refusals || {});
  const known = [...Object.keys(SERVER_VERBS), "delete"];
  const act = async (word) => { const more = await wish(word, one); return more && serverVerb(one.id, word, more).then(() => true); };
  const [reasons, project, image] = await Promise.all([whyFailed(ident, actions.instanceActions), nameOf("project", one.tenant_id), nameOf("image", one.image && one.image.id)]);
  return [
    title(one.name || one.id, tag(one.status), task ? tag(task) : null, h("span", { class: "soft" }, "power: ", runs(one), ", in this state for ", ago(one.updated))),
    one.fault ? h("div", { class: "trouble" }, h("strong", {}, "Fault: "), one.fault.message, h("p", {}, faultRemedy(one))) : null,
    one.wait_reason && (!one.fault || one.deadline) ? h("div", { class: "note" }, one.wait_reason, one.deadline ? [" – until ", moment(one.deadline)] : null) : null,
    one.locked ? h("div", { class: "note" }, "Locked", one.locked_reason ? `: ${one.locked_reason}. ` : ". ", "Only administrators may ask anything of it until it is unlocked: ", h("code", {}, `openstack server unlock ${one.id}`)) : null,
    verbs("What can be done", known, isShut ? [] : [...legal, "delete"], act,
      { otherwise: isShut ? "It is locked." : undefined, sure: (word) => (word === "delete" ? `Delete ${one.name} for good?` : DISTURBS.test(word) ? `${words_(word)} ${one.name}? Whoever uses it is interrupted.` : null) }),
    refusals.length ? [h("h2", {}, "Why no host would take it"), table(["Host", "Reason"], refusals.map(([host, reason]) => h("tr", {}, h("td", {}, host), h("td", { class: "long" }, reason))))] : null,
    h("div", { class: "two" },
      h("section", {}, h("h2", {}, "About it"), facts({ ...one, host: one["OS-EXT-SRV-ATTR:host"], flavor: one.flavor.original_name, image: called(image, one.image && one.image.id),
        addresses: Object.values(one.addresses).flat().map((each) => each.addr), project: called(project, one.tenant_id), created: moment(one.created) },
      ["id", "host", "flavor", "image", "addresses", "project", "created"]),
      consoleOf(one), raw(one), cli([`siderite server show ${one.id}`, ...legal.filter((word) => SERVER_VERBS[word]).map((word) => `siderite server ${SAID[word] || word} ${one.id} --wait`)])),
      h("section", {}, h("h2", {}, "Timeline"), table(["When", "Action", "Request", "Result"], actions.instanceActions.map((action, at) => h("tr", {}, h("td", { class: "fit" }, ago(action.start_time)),
        h("td", {}, action.action), h("td", { class: "mono", title: action.request_id }, action.request_id.slice(0, 12)), h("td", {}, action.message ? [tag("error"), h("div", { class: "soft long" }, reasons.get(action.request_id))] : at === 0 && task ? "under way" : "done"))), "Nothing has happened yet."))),
    diagram("server", here),
  ];
}

// The list of actions says that one failed; each by itself says why. What failed long ago is of little interest.
const EXPLAINED = 5;
async function whyFailed(ident, actions) {
  const why = ({ instanceAction }) => instanceAction.events.map(({ details }) => details).filter(Boolean).pop();
  const failed = actions.filter(({ message }) => message).slice(0, EXPLAINED).map((one) => one.request_id);
  const told = await Promise.all(failed.map((id) => quietly(get(`/compute/v2.1/servers/${ident}/os-instance-actions/${id}`).then(why), null)));
  return new Map(failed.map((id, at) => [id, told[at]]));
}

function faultRemedy(one) {
  if (one.status === "PENDING") return "It waits until somebody makes room and has it built, as the reaper does, or, with wake_pending, until a host has room: see Pending. It can be deleted at any time.";
  if (/No valid host/.test(one.fault.message)) return "No host had room: see Capacity, then delete it and ask again.";
  return "Reset its state or rebuild it when the cause is mended; the timeline has the request.";
}
