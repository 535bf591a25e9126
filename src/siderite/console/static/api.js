// The service's public APIs, with the token of whoever is logged in. Everything here is also what
// the command line and other clients call: each page shows the calls behind it.

const KEPT = "siderite-session";
export let session = JSON.parse(sessionStorage.getItem(KEPT) || "null");
export const calls = [];

class Refused extends Error {
  constructor(status, sentence) { super(sentence); this.status = status; }
}

export function can(role) {
  const roles = session ? session.roles : [];
  if (role === "member") return roles.includes("member") || roles.includes("admin");
  return roles.includes(role);
}

export async function login(name, password, project) {
  const domain = { id: "default" };
  const auth = {
    identity: { methods: ["password"], password: { user: { name, password, domain } } },
    scope: { project: { name: project, domain } },
  };
  const answer = await reach("/identity/v3/auth/tokens", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ auth }),
  });
  if (!answer.ok) throw new Refused(answer.status, await sentence(answer));
  const { token } = await answer.json();
  begin({
    token: answer.headers.get("X-Subject-Token"), name, project,
    roles: (token.roles || []).map((role) => role.name),
  });
}

function begin(made) {
  session = made;
  sessionStorage.setItem(KEPT, JSON.stringify(session));
}

function logout() {
  session = null;
  sessionStorage.removeItem(KEPT);
}

// Another tab goes on with the session of one that is open. It asks for it: nothing is kept where it would outlive the tabs.
const ANSWER_MS = 300;
const tabs = new BroadcastChannel("siderite");
tabs.addEventListener("message", ({ data }) => {
  if (data.asked && session) tabs.postMessage({ session });
  if (session && data.left === session.token) forget();
});

export function borrow() {
  return new Promise((done) => {
    if (session) { done(); return; }
    const hear = ({ data }) => { if (data.session && !session) begin(data.session); if (session) done(); };
    tabs.addEventListener("message", hear);
    tabs.postMessage({ asked: true });
    setTimeout(() => { tabs.removeEventListener("message", hear); done(); }, ANSWER_MS);
  });
}

function forget() {
  logout();
  sessionStorage.removeItem(BACK);
  location.hash = "#/login";
}

// Who leaves has left: in every tab, and at the service, where the token would else be good for a day.
export async function leave() {
  const { token } = session;
  tabs.postMessage({ left: token });
  forget();
  await reach("/identity/v3/auth/tokens", { method: "DELETE", headers: { "X-Auth-Token": token, "X-Subject-Token": token } }).catch(() => null);
}

// Whoever logs in again goes on where the session ended.
export const BACK = "siderite-back";

function ended() {
  sessionStorage.setItem(BACK, location.hash);
  logout();
  location.hash = "#/login";
  return new Refused(401, "Your session has ended: log in again.");
}

// While the service is away, a proxy in front of it answers in its place, with a page of its own.
const GATEWAY = [502, 503, 504];
const is = (kind, answer) => (answer.headers.get("Content-Type") || "").includes(kind);

// Without credentials of the browser's own: else it would ask for a password itself when a session ends. The APIs are beside
// the console, wherever a proxy has put both.
async function reach(path, sent) {
  let answer = null;
  try { answer = await fetch(path.startsWith("/") ? `..${path}` : path, { ...sent, credentials: "omit" }); } catch (why) { if (why.name === "AbortError") throw why; }
  if (answer && (is("json", answer) || !GATEWAY.includes(answer.status))) return answer;
  const told = answer && is("text/plain", answer) ? await answer.text() : "";
  throw new Refused(0, told || "The service does not answer: is it running, and can this browser reach it?");
}

const VERSIONS = [
  ["/baremetal/", { "X-OpenStack-Ironic-API-Version": "1.900" }],
  ["/compute/", { "OpenStack-API-Version": "compute 2.901" }],
];

function headers(path) {
  const found = VERSIONS.find(([prefix]) => path.startsWith(prefix));
  return { "X-Auth-Token": session ? session.token : "", ...(found ? found[1] : {}) };
}

export async function ask(method, path, body) {
  calls.push({ method, path, body });
  const sent = { method, headers: { ...headers(path), Accept: "application/json" } };
  if (body !== undefined) {
    sent.headers["Content-Type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  const answer = await reach(path, sent);
  if (answer.status === 401 && session) throw ended();
  if (!answer.ok) throw new Refused(answer.status, await sentence(answer));
  const text = await answer.text();
  if (!text) return null;
  return is("json", answer) ? JSON.parse(text) : text;
}

export const get = (path) => ask("GET", path);

// What may be asked of nodes and servers in each of their states.
let tables = null;
export async function machines() {
  if (tables) return tables;
  const answer = await reach("machines.json", {});
  if (!answer.ok) throw new Refused(answer.status, await sentence(answer));
  tables = await answer.json();
  return tables;
}

// Projects by their ids, as far as one may know them: with a Keystone elsewhere they are there.
export async function projects() {
  const found = await get(`/identity/v3/${can("admin") ? "projects" : "auth/projects"}`).catch(() => ({ projects: [] }));
  return new Map(found.projects.map(({ id, name }) => [id, name]));
}

// What a project or an image is called; null if that is not known.
const NAMED = { project: ["/identity/v3/projects/", (found) => found.project.name], image: ["/image/v2/images/", (found) => found.name] };
const names = new Map();
export async function nameOf(kind, id) {
  const [path, pick] = NAMED[kind];
  if (id && !names.has(id)) await get(path + encodeURIComponent(id)).then((found) => names.set(id, pick(found)), ({ status }) => { if ([403, 404].includes(status)) names.set(id, null); });
  return names.get(id) || null;
}

// A list of the compute API, page after page, however long a page may be.
export async function every(path, name) {
  const all = [];
  for (let next = path; next;) {
    const found = await get(next);
    all.push(...found[name]);
    const link = (found[`${name}_links`] || []).find(({ rel }) => rel === "next");
    next = link && path.split("?")[0] + new URL(link.href).search;
  }
  return all;
}

// A list of images, page after page.
export async function everyImage(query = "") {
  const all = [];
  for (let next = `/v2/images?limit=1000&sort=name:asc${query}`; next;) {
    const found = await get(`/image${next}`);
    all.push(...found.images);
    next = found.next;
  }
  return all;
}

async function sentence(answer) {
  const text = is("html", answer) ? "" : await answer.text();
  try {
    const body = JSON.parse(text);
    if (body.error_message) {
      const inner = typeof body.error_message === "string" ? JSON.parse(body.error_message) : body.error_message;
      return inner.faultstring || text;
    }
    return Object.values(body)[0].message || text;
  } catch {
    return text || `the service answered ${answer.status}`;
  }
}

// The event log as it grows. Goes on from the last number after any break.
export async function follow(after, tell, state, signal) {
  let last = after;
  let pause = 200;
  while (!signal.aborted) {
    try {
      const answer = await reach(`/events/v1/events?after=${last}`, {
        headers: { ...headers("/events/"), Accept: "text/event-stream" }, signal,
      });
      if (!answer.ok) throw new Refused(answer.status, "no stream");
      state("on", last);
      pause = 200;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) {
          const id = /^id: ?(\d+)$/m.exec(part);
          const data = /^data: ?(.*)$/m.exec(part);
          if (id) last = Number(id[1]);
          if (data && data[1].startsWith("{")) tell(JSON.parse(data[1]));
          state("on", last);
        }
      }
    } catch (why) {
      if (signal.aborted) return;
      if (why.status === 401) { if (session) ended(); return; }
      // The log was made anew, or what came next is no longer kept: from its end on.
      if (why.status === 400 || why.status === 410) last = await get("/events/v1/events?last=1").then((found) => found.next, () => last);
    }
    state("off", last);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 5000);
  }
}
