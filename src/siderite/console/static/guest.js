// A server from its first moment on: how it is asked for, and what its own console says.

import { ask, can, every, everyImage } from "./api.js";
import { h, questions, toast } from "./ui.js";

const LINES = 200;
const menu = (label, all) => h("select", { required: true, "aria-label": label }, all.map((one) => h("option", { value: one.id }, one.name || one.id)));

export function newServer() {
  if (!can("member")) return null;
  return h("button", { type: "button", onclick: async () => { try { await create(); } catch (problem) { toast(`new server: ${problem.message}`, true); } } }, "New server");
}

async function create() {
  const [flavors, images] = await Promise.all([every("/compute/v2.1/flavors/detail?limit=1000", "flavors"), everyImage("status=active")]);
  if (!flavors.length) throw new Error("there are no flavors yet. Make one: openstack flavor create NAME --ram MIB --vcpus N --disk GIB");
  if (!images.length) throw new Error("there are no images yet. Bring one in: siderite image import PATH --public");
  const said = await questions("New server", [["Name", h("input", { required: true, maxlength: 255, autocomplete: "off" })], ["Flavor", menu("Flavor", flavors)], ["Image", menu("Image", images)]]);
  if (said === null) return;
  const [name, flavorRef, imageRef] = said;
  const { server } = await ask("POST", "/compute/v2.1/servers", { server: { name, flavorRef, imageRef, networks: "auto" } });
  toast(`${name}: asked for.`);
  location.hash = `#/server/${server.id}`;
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
