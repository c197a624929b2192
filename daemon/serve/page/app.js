// The plain page: exchanges the one-time code of `earshot open` for the token, then shows the sessions and their status.
// Texts of a session are only ever inserted as text nodes.
"use strict";

const sessions = new Map();
const list = document.getElementById("sessions");
const help = document.getElementById("help");
const token_key = "earshot token"; // in sessionStorage: deleted with the tab, and never sent by the browser itself
const state_order = ["waiting", "working", "idle", "unknown", "ended"];
const delay_ms = { first: 300, last: 10_000 }; // between connection attempts
const silence_ms_max = 75_000; // the daemon sends a heartbeat every 30 s
let delay = delay_ms.first;

const connection_states = {
  signed_out: ["Not signed in.", "trouble", "Run this in a terminal on the machine that earshot runs on:\n\n    earshot open"],
  used: ["This link was already used, or is older than a minute.", "trouble", "Run `earshot open` again."],
  wrong: ["The token is no longer valid.", "trouble", "Run `earshot open` again."],
  connecting: ["Connecting…", "", ""],
  live: ["Live.", "live", ""],
  lost: ["The daemon does not respond. Retrying…", "trouble", "The sessions below may be out of date."],
};

function show(name) {
  const [text, kind, advice] = connection_states[name];
  const state = document.getElementById("state");
  state.textContent = text;
  state.dataset.kind = kind;
  help.textContent = advice;
  help.hidden = advice === "";
}

/** Takes the one-time code out of the address, and so out of the browser's history. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname);
  return code;
}

async function signIn(code) {
  const response = await fetch("/v1/token", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
  });
  if (response.status === 401) return show("used");
  if (!response.ok) return show("lost");
  sessionStorage.setItem(token_key, (await response.json()).token);
  connect();
}

function connect() {
  const token = sessionStorage.getItem(token_key);
  if (!token) return show("signed_out");
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
  socket.onopen = () => socket.send(JSON.stringify({ type: "hello", token, client: "page/1" }));
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
      show("live");
      scheduleRender();
    }
  };
  socket.onclose = ({ code }) => {
    clearTimeout(silence_timer);
    if (code === 4501) {
      sessionStorage.removeItem(token_key);
      return show("wrong");
    }
    reconnect();
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

const code = takeCode();
if (code) {
  show("connecting");
  signIn(code).catch(() => show("lost"));
} else {
  connect();
}
addEventListener("hashchange", () => location.hash && location.reload());
