// The plain page: signs this browser in with the one-time code of `earshot open`, then shows the sessions and their status.
// Texts of a session are only ever inserted as text nodes.
"use strict";

const sessions = new Map();
const list = document.getElementById("sessions");
const help = document.getElementById("help");
const sign_in_form = document.getElementById("sign-in");
const state_order = ["waiting", "working", "idle", "unknown", "ended"];
const delay_ms = { first: 300, last: 10_000 }; // between connection attempts
const silence_ms_max = 75_000; // the daemon sends a heartbeat every 30 s
let delay = delay_ms.first;

const connection_states = {
  signed_out: ["Not signed in.", "trouble", "Run this in a terminal on the machine that earshot runs on:\n\n    earshot open"],
  code_used: ["This link was already used.", "trouble", "Run `earshot open` again."],
  code_expired: ["This link is older than a minute.", "trouble", "Run `earshot open` again."],
  code_unknown: ["This link is not of the daemon that runs now.", "trouble", "Run `earshot open` again."],
  limit: ["Too many browsers are signed in.", "trouble", "Revoke some: earshot browsers"],
  wrong_origin: ["Browsers cannot sign in at this address.", "trouble", "Open the address that `earshot open` prints."],
  impostor: ["What answers here did not prove that it is your daemon.", "trouble", "Run `earshot doctor`."],
  other_daemon: ["This is another daemon than the one that this browser signed in to.", "trouble", "If you know why, run `earshot open` again."],
  refused: ["This browser was signed out.", "trouble", "Run `earshot open` again."],
  unsupported: ["This browser cannot sign in here.", "trouble", "It has no WebCrypto, or not at this address: open the address that `earshot open` prints."],
  connecting: ["Connecting…", "", ""],
  live: ["Live.", "live", ""],
  live_here: ["Live. Signed in for this tab only: another tab or a reload needs a new link.", "live", ""],
  lost: ["The daemon does not respond. Retrying…", "trouble", "The sessions below may be out of date."],
};

/** States that another code ends. */
const needs_code = new Set(["signed_out", "code_used", "code_expired", "code_unknown", "other_daemon", "refused"]);

function show(name) {
  const [text, kind, advice] = connection_states[name];
  const state = document.getElementById("state");
  state.textContent = text;
  state.dataset.kind = kind;
  help.textContent = advice;
  help.hidden = advice === "";
  sign_in_form.hidden = !needs_code.has(name);
}

/** Takes the one-time code out of the address, and so out of the browser's history. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname);
  return code;
}

// Signing in: see "Signing in" of the protocol. The dashboard does the same in clients/dashboard/src/signin.ts.

let kept_in_memory; // where the browser stores nothing
let is_temporary = false;

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function inDatabase(mode, use) {
  const opened = await new Promise((resolve, reject) => {
    const request = indexedDB.open("earshot", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("sign_in");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  try {
    return await new Promise((resolve, reject) => {
      const transaction = opened.transaction("sign_in", mode);
      const request = use(transaction.objectStore("sign_in"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    opened.close();
  }
}

const load = async () => kept_in_memory ?? (await inDatabase("readonly", (store) => store.get("registered")).catch(() => undefined));

async function canStore(keys) {
  try {
    await inDatabase("readwrite", (store) => store.put(keys, "test"));
    const stored = await inDatabase("readonly", (store) => store.get("test"));
    await inDatabase("readwrite", (store) => store.delete("test"));
    return stored?.privateKey instanceof CryptoKey;
  } catch {
    return false;
  }
}

async function challenge(query = "") {
  const response = await fetch(`/v1/challenge${query}`, { cache: "no-store" });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

const hmac = async (key, lines) => hex(await crypto.subtle.sign("HMAC", key, bytes(lines.join("\n"))));
const hmacKey = (text) => crypto.subtle.importKey("raw", bytes(text), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const sign = async (keys, message) => hex(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, keys.privateKey, bytes(message)));

/** Registers this browser's key. The code is not sent: an HMAC proves that the page has it, and that the daemon made it. */
async function register(code) {
  const keys = (await load())?.keys ?? (await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]));
  is_temporary = !(await canStore(keys));
  const code_key = await hmacKey(code);
  const { daemon_id, nonce } = await challenge();
  const key = hex(await crypto.subtle.exportKey("raw", keys.publicKey));
  const name = "A browser with the plain page";
  const lines = ["earshot registration 1", daemon_id, location.origin, nonce, key, is_temporary ? "temporary" : "kept", name];
  const response = await fetch("/v1/browsers/register", {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ nonce, key, name, temporary: is_temporary, proof: await hmac(code_key, lines), signature: await sign(keys, lines.join("\n")) }),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) return answer.code in connection_states ? answer.code : "lost";
  if (answer.proof !== (await hmac(code_key, ["earshot registered 1", daemon_id, location.origin, answer.browser, nonce]))) return "impostor";
  const secret = await hmacKey(await hmac(code_key, ["earshot secret 1", daemon_id, location.origin, answer.browser, nonce]));
  const registered = { browser: answer.browser, daemon_id, keys, secret };
  if (is_temporary) kept_in_memory = registered;
  else await inDatabase("readwrite", (store) => store.put(registered, "registered"));
  return "connecting";
}

async function signIn(code) {
  const result = await register(code);
  show(result);
  if (result === "connecting") connect();
}

/** The `sign_in` of a hello, or the name of a state. */
async function answerChallenge() {
  const registered = await load();
  if (!registered) return "signed_out";
  const asked = hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
  const { daemon_id, nonce, proof } = await challenge(`?browser=${registered.browser}&nonce=${asked}`);
  if (daemon_id !== registered.daemon_id) return "other_daemon";
  if (proof === undefined) return "refused";
  if (proof !== (await hmac(registered.secret, ["earshot challenge 1", daemon_id, location.origin, asked, nonce]))) return "impostor";
  const message = ["earshot sign-in 1", "hello", daemon_id, location.origin, registered.browser, nonce].join("\n");
  return { browser: registered.browser, nonce, signature: await sign(registered.keys, message) };
}

let is_refused = false; // once: the challenge may have expired

async function connect() {
  if (!crypto.subtle) return show("unsupported");
  const sign_in = await answerChallenge().catch(() => "lost");
  if (sign_in === "lost") return reconnect();
  if (typeof sign_in === "string") return show(sign_in);
  show("connecting");
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`, "earshot.v1");
  let snapshot = null; // sessions in the snapshot that is being received
  let silence_timer = 0;
  const restartSilenceTimer = () => {
    clearTimeout(silence_timer);
    silence_timer = setTimeout(() => {
      socket.onmessage = socket.onclose = null; // the close event of a dead connection is delayed
      socket.close();
      reconnect();
    }, silence_ms_max);
  };
  restartSilenceTimer();
  socket.onopen = () => socket.send(JSON.stringify({ type: "hello", sign_in, client: "page/1" }));
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    restartSilenceTimer();
    if (frame.type === "welcome") {
      snapshot = new Set();
      socket.send(JSON.stringify({ type: "subscribe", id: "page", deliver: "state" }));
    } else if (frame.type === "session") {
      snapshot?.add(frame.session);
      sessions.set(frame.session, frame);
      scheduleRender();
    } else if (frame.type === "ready") {
      for (const name of sessions.keys()) if (!snapshot.has(name)) sessions.delete(name);
      snapshot = null;
      delay = delay_ms.first;
      is_refused = false;
      show(is_temporary ? "live_here" : "live");
      scheduleRender();
    }
  };
  socket.onclose = ({ code }) => {
    clearTimeout(silence_timer);
    if (code === 4501 && is_refused) return show("refused");
    is_refused = code === 4501;
    is_refused ? connect() : reconnect();
  };
}

function reconnect() {
  show("lost");
  setTimeout(connect, delay * (0.5 + 0.5 * Math.random()));
  delay = Math.min(2 * delay, delay_ms.last);
}

let render_scheduled = false;
function scheduleRender() {
  if (render_scheduled) return;
  render_scheduled = true;
  requestAnimationFrame(() => {
    render_scheduled = false;
    render();
  });
}

function element(name, className, text) {
  const created = document.createElement(name);
  created.className = className;
  created.textContent = text;
  return created;
}

function listItem(session) {
  const { state, reason, detail } = session.status;
  const line = element("div", "line", "");
  const status = element("span", "status", state);
  status.dataset.state = state;
  line.append(status);
  line.append(element("span", "title", session.title || session.turn.prompt || session.session));
  line.append(element("span", "project", session.project ?? session.directory));
  if (session.program) line.append(element("span", "program", session.program));
  const item = document.createElement("li");
  item.append(line);
  const tools = session.tools.map((tool) => tool.tool).join(", ");
  const details = detail || (state === "waiting" && reason) || (tools && `running ${tools}`) || session.last_text;
  if (details) item.append(element("div", "more", details));
  return item;
}

function render() {
  const rank = (session) => state_order.indexOf(session.status.state);
  const newest = (session) => session.last_activity ?? "";
  const sorted = [...sessions.values()].sort((a, b) => rank(a) - rank(b) || (newest(a) < newest(b) ? 1 : -1));
  list.replaceChildren(...sorted.map(listItem));
  if (sorted.length === 0) list.replaceChildren(element("li", "more", "No agent sessions in the last 24 hours."));
}

/** Without TLS browsers sign in at the listener's address: `localhost` may be another program's. */
async function start() {
  const proper = location.hostname === "localhost" && location.protocol === "http:" ? (await challenge().catch(() => ({}))).origin : undefined;
  if (proper === `http://127.0.0.1:${location.port}` || proper === `http://[::1]:${location.port}`)
    return location.replace(proper + location.pathname + location.hash);
  const code = takeCode();
  code ? useCode(code) : connect();
}

function useCode(code) {
  if (!crypto.subtle) return show("unsupported");
  show("connecting");
  signIn(code).catch(() => show("lost"));
}

/** A code may be pasted, or the link that contains it. */
sign_in_form.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = sign_in_form.elements.code;
  const code = /(?:^|#code=)([0-9a-f]{64})$/.exec(field.value.trim())?.[1];
  if (!code) {
    help.textContent = "A code has 64 digits, 0 to f. Paste it, or the whole link that `earshot open` prints.";
    return;
  }
  field.value = "";
  useCode(code);
});

start();
addEventListener("hashchange", () => location.hash && location.reload());
