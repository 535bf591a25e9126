// A server from its first moment on: how it is asked for, and what its own console says.

import { ask, can, every, everyImage, get } from "./api.js";
import { h, number, question, questions, toast } from "./ui.js";

const LINES = 200;
const menu = (label, all, required = true) => h("select", { required, "aria-label": label }, all.map((one) => h("option", { value: one.id }, one.name || one.id)));

const sized = ({ id, name, vcpus, ram, disk }) => ({ id, name: `${name}: ${vcpus} ${vcpus === 1 ? "vCPU" : "vCPUs"}, ${number(ram)} MiB, ${number(disk)} GiB` });

// Several projects may have an image of one name.
function apart(images) {
  const count = new Map();
  images.forEach(({ name }) => count.set(name, (count.get(name) || 0) + 1));
  return images.map((one) => (one.name && count.get(one.name) > 1 ? { id: one.id, name: `${one.name} (${one.id.slice(0, 8)}, ${one.visibility})` } : one));
}

export function newServer() {
  if (!can("member")) return null;
  return h("button", { type: "button", onclick: async () => { try { await create(); } catch (problem) { toast(`new server: ${problem.message}`, true); } } }, "New server");
}

// What a verb needs beside the server. Null: it was called off.
export async function wish(word, { flavor }) {
  if (word !== "resize") return {};
  const others = (await every("/compute/v2.1/flavors/detail?limit=1000", "flavors")).filter(({ name }) => name !== flavor.original_name);
  if (!others.length) throw new Error(`there is no flavor but ${flavor.original_name}. Make one: openstack flavor create NAME --ram MIB --vcpus N --disk GIB`);
  const flavorRef = await question("Resize", `Another flavor than ${flavor.original_name}. Whoever uses the server is interrupted`, menu("Flavor", others.map(sized)));
  return flavorRef === null ? null : { flavorRef };
}

async function create() {
  const [flavors, images, { keypairs }] = await Promise.all([every("/compute/v2.1/flavors/detail?limit=1000", "flavors"), everyImage("&status=active"), get("/compute/v2.1/os-keypairs")]);
  if (!flavors.length) throw new Error("there are no flavors yet. Make one: openstack flavor create NAME --ram MIB --vcpus N --disk GIB");
  if (!images.length) throw new Error("there are no images yet. Bring one in: siderite image import PATH --public");
  const keys = keypairs.map(({ keypair }) => ({ id: keypair.name, name: keypair.name }));
  const fields = [["Name", h("input", { required: true, maxlength: 255, autocomplete: "off" })], ["Flavor", menu("Flavor", flavors.map(sized))], ["Image", menu("Image", apart(images))]];
  if (keys.length) fields.push(["Key pair", menu("Key pair", [...keys, { id: "", name: "none" }], false)]);
  const here = location.hash;
  let problem = null;
  for (;;) {
    const said = await questions("New server", fields, problem);
    if (said === null) return;
    const [name, flavorRef, imageRef, key] = said;
    try {
      const { server } = await ask("POST", "/compute/v2.1/servers", { server: { name, flavorRef, imageRef, networks: "auto", ...(key ? { key_name: key } : {}) } });
      toast(`${name}: asked for.`);
      location.hash = `#/server/${server.id}`;
      return;
    } catch (why) {
      if (why.status === 401 || location.hash !== here) throw why;
      problem = why.message;
    }
  }
}

// What was read last stays on the page while it is read again.
let read = { id: null, text: "" };

export function consoleOf({ id }) {
  const shown = h("pre", {}, read.id === id ? read.text : "Loading …");
  const log = h("details", {}, h("summary", {}, "Console log"), shown);
  log.addEventListener("toggle", async () => {
    if (!log.open) return;
    try {
      const { output } = await ask("POST", `/compute/v2.1/servers/${id}/action`, { "os-getConsoleOutput": { length: LINES } });
      read = { id, text: output || "It has said nothing yet." };
    } catch (problem) { read = { id, text: problem.message }; }
    shown.textContent = read.text;
    shown.scrollTop = shown.scrollHeight;
  });
  return [log, can("member") ? h("p", {}, h("button", { type: "button", onclick: () => screen(id) }, "Open its screen")) : null];
}

// The window is opened at once: later, browsers take it for one that nobody asked for.
async function screen(id) {
  const shown = window.open("", "_blank");
  try {
    if (!shown) throw new Error("the browser opens no window for it; allow this address to.");
    const { remote_console: found } = await ask("POST", `/compute/v2.1/servers/${id}/remote-consoles`, { remote_console: { protocol: "vnc", type: "novnc" } });
    shown.opener = null;
    shown.location.replace(found.url);
  } catch (problem) {
    if (shown) shown.close();
    toast(`screen: ${problem.message}`, true);
  }
}
