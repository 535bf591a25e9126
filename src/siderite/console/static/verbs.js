// What may be asked of machines: how it is sent, what it needs, and what is asked about first.

import { ask, session } from "./api.js";
import { h, question } from "./ui.js";

// What takes something away from whoever uses the machine, and is asked about first.
export const DISTURBS = /^(delete|rebuild|power off|rebooting|soft|stop|reboot|pause|suspend|shelve|rescue|revert)/;
// What Ironic's words for nodes mean.
export const MEANS = { manage: "try its BMC and bring it under control", provide: "clean it and offer it", active: "deploy it", deleted: "undeploy it, then clean it", rebuild: "deploy it again",
  inspect: "find out what it is made of", clean: "run cleaning steps", service: "run steps on it while it is in use", adopt: "take it over as it runs", abort: "stop what is under way",
  rescue: "boot a rescue system", unrescue: "boot its own system again", unhold: "go on with what is held" };
export const words_ = (verb) => verb.replaceAll("_", " ");

// What a verb needs beside the machine: asked for in a dialog. Null: it was called off.
const STEP = '[{"interface": "deploy", "step": "erase_devices_metadata"}]';
const STEPS = { clean: STEP, service: '[{"interface": "deploy", "step": "burnin_cpu"}]' };
// What somebody said last is there again for them: it may have been refused, or be wanted for another machine.
const lastSaid = new Map();
export const MORE = { clean: ` --steps '${STEP}'`, service: ` --steps '[…]'`, rescue: " --rescue-password -" };
export async function needed(word) {
  if (word === "maintenance on") {
    const said = await question("Maintenance on", "Why, for others to read", h("input", { autocomplete: "off", placeholder: `set in the console by ${session.name}` }));
    return said === null ? null : { reason: said.trim() || `set in the console by ${session.name}` };
  }
  if (word === "rescue") {
    const said = await question("Rescue", "A password to log in to the rescue system with", h("input", { type: "password", required: true, autocomplete: "new-password" }));
    return said === null ? null : { rescue_password: said };
  }
  if (word !== "clean" && word !== "service") return {};
  const field = h("textarea", { required: true, spellcheck: "false" });
  const mine = `${word} ${session.project} ${session.name}`;
  field.value = lastSaid.get(mine) || STEPS[word];
  let problem = null;
  for (;;) {
    const said = await question(`${word === "clean" ? "Clean" : "Service"} by steps`, "The steps, as JSON", field, problem);
    if (said === null) return null;
    lastSaid.set(mine, said);
    try { return { [`${word}_steps`]: JSON.parse(said) }; } catch (why) { problem = `The steps are not JSON: ${why.message}`; }
  }
}

export function nodeVerb(uuid, verb, more = {}) {
  const at = `/baremetal/v1/nodes/${uuid}`;
  if (verb.startsWith("power ") || verb === "rebooting" || verb.startsWith("soft ")) return ask("PUT", `${at}/states/power`, { target: verb });
  if (verb === "maintenance on") return ask("PUT", `${at}/maintenance`, more);
  if (verb === "maintenance off") return ask("DELETE", `${at}/maintenance`);
  return ask("PUT", `${at}/states/provision`, { target: verb, ...more });
}

export const SERVER_VERBS = { start: ["os-start", null], stop: ["os-stop", null], reboot: ["reboot", { type: "SOFT" }], reboot_hard: ["reboot", { type: "HARD" }],
  pause: ["pause", null], unpause: ["unpause", null], suspend: ["suspend", null], resume: ["resume", null], shelve: ["shelve", null], unshelve: ["unshelve", null],
  rescue: ["rescue", null], unrescue: ["unrescue", null], resize: ["resize", {}], confirm_resize: ["confirmResize", null], revert_resize: ["revertResize", null] };

export function serverVerb(id, verb, more = {}) {
  if (verb === "delete") return ask("DELETE", `/compute/v2.1/servers/${id}`);
  const [word, body] = SERVER_VERBS[verb];
  return ask("POST", `/compute/v2.1/servers/${id}/action`, { [word]: body && { ...body, ...more } });
}
