// Capacity: how full hosts are, and how many more servers there is room for.

import { every } from "./api.js";
import { h, meter, number, table, tag } from "./ui.js";

const KINDS = ["vcpus", "ram_mib", "disk_gib"];
const NEEDS = { vcpus: "vcpus", ram_mib: "ram", disk_gib: "disk" };

// What is kept for servers that wait is nobody else's. While a service is upgraded, an older process may not tell of it.
function free(host, kind) {
  return host.room[kind].limit - host.room[kind].used - (host.kept || []).reduce((sum, one) => sum + one[kind], 0);
}

function fit(flavor, host) {
  if (host.state !== "up" || host.status !== "enabled" || !host.room) return 0;
  const each = KINDS.filter((kind) => flavor[NEEDS[kind]] > 0).map((kind) => Math.floor(free(host, kind) / flavor[NEEDS[kind]]));
  return each.length ? Math.max(0, Math.min(...each)) : Infinity;
}

function bar(one, what) {
  if (!one.room) return "–";
  const { used, limit } = one.room[what];
  return [meter(used, limit), h("span", { class: "soft" }, `${number(used)} / ${number(limit)}`)];
}

export async function capacity() {
  const [found, all] = await Promise.all([every("/compute/v2.1/os-hypervisors/detail?limit=1000", "hypervisors"), every("/compute/v2.1/flavors/detail?is_public=none&limit=1000", "flavors")]);
  // A node carries one server, of a flavor made for it: how much of it is free means nothing.
  const hosts = found.filter((one) => one.hypervisor_type !== "ironic");
  const metal = found.length - hosts.length;
  const flavors = all.filter((one) => !Object.keys(one.extra_specs || {}).some((key) => key.startsWith("resources:CUSTOM_")));
  const total = (what, how) => hosts.reduce((sum, one) => sum + (one.room ? one.room[what][how] : 0), 0);
  const whole = { room: Object.fromEntries(KINDS.map((kind) => [kind, { used: total(kind, "used"), limit: total(kind, "limit") }])) };
  const health = (one) => tag(one.status === "enabled" && one.state === "up" ? "active" : one.state === "up" ? "disabled" : "down");
  return [
    h("h1", {}, "Capacity"),
    table(["Host", "State", "vCPUs", "Memory, MiB", "Disk, GiB"], [
      ...(hosts.length > 1 ? [h("tr", { class: "total" }, h("td", {}, `all ${hosts.length} hosts`), h("td", {}), KINDS.map((kind) => h("td", {}, bar(whole, kind))))] : []),
      ...hosts.map((one) => h("tr", {}, h("td", {}, one.hypervisor_hostname), h("td", {}, health(one)), KINDS.map((kind) => h("td", {}, bar(one, kind)))))],
    metal ? "There are no hosts for virtual servers yet." : "There are no hosts yet. Add one: siderite host add NAME URI."),
    metal ? h("p", { class: "soft" }, `Beside these there ${metal === 1 ? "is 1 bare metal node" : `are ${number(metal)} bare metal nodes`}, for one server each. `,
      h("a", { href: "#/fleet/node?provision_state=available" }, "Which are available?")) : null,
    hosts.length ? [h("h2", {}, "What fits where"),
      h("p", { class: "soft" }, "How many more servers of a flavor there is room for, and on which hosts, those with the most room first."),
      table(["Flavor", "vCPUs", "Memory, MiB", "Disk, GiB", "Fit in all", "On hosts"], flavors.map((flavor) => h("tr", {}, h("td", {}, h("span", { class: "name", title: flavor.name }, flavor.name)),
        h("td", { class: "num" }, flavor.vcpus), h("td", { class: "num" }, number(flavor.ram)), h("td", { class: "num" }, number(flavor.disk)), room(flavor, hosts))), "There are no flavors.")] : null,
  ];
}

// Names of hosts are many and long: they stand below each other where there is no room beside, and most are opened if wanted.
const SHOWN = 4;
function room(flavor, hosts) {
  const found = hosts.map((one) => ({ name: one.hypervisor_hostname, count: fit(flavor, one) })).filter(({ count }) => count).sort((a, b) => b.count - a.count);
  const each = ({ name, count }) => h("span", { class: "part" }, name, " ", h("b", {}, number(count)));
  const rest = found.slice(SHOWN);
  return [
    h("td", { class: `num ${found.length ? "" : "none"}` }, h("b", {}, number(found.reduce((sum, { count }) => sum + count, 0)))),
    h("td", { class: found.length ? "" : "none" }, found.length ? h("div", { class: "parts" }, found.slice(0, SHOWN).map(each)) : "no host has room",
      rest.length ? h("details", {}, h("summary", { "aria-label": `${rest.length} more hosts for ${flavor.name}` }, `and ${rest.length} more`), h("div", { class: "parts" }, rest.map(each))) : null),
  ];
}
