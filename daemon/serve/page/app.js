// Trades the one-time code of `earshot open` for the token, then lists the sessions, live. Everything that comes
// from a session is put in as text.
"use strict";

const sessions = new Map();
const list = document.getElementById("sessions");
const help = document.getElementById("help");
const key = "earshot token"; // of sessionStorage: gone with this tab, and never sent by the browser itself
const order = ["waiting", "working", "idle", "unknown", "ended"];
const pause = { first: 300, last: 10000 };
let wait = pause.first;

const states = {
  signed_out: ["Not signed in.", "trouble", "Run this in a terminal on the machine that earshot runs on:\n\n    earshot open"],
  used: ["This link was used already, or is older than a minute.", "trouble", "Run `earshot open` again."],
  wrong: ["The token is not good any more.", "trouble", "Run `earshot open` again."],
  connecting: ["Connecting…", "", ""],
  live: ["Live.", "live", ""],
  gone: ["The daemon is gone. Trying again…", "trouble", "What is listed may have changed since."],
  busy: ["The daemon serves as many as it can. Trying again…", "trouble", ""],
};

function show(name) {
  const [text, kind, advice] = states[name];
  const state = document.getElementById("state");
  state.textContent = text;
  state.dataset.kind = kind;
  help.textContent = advice;
  help.hidden = advice === "";
}

/** The code leaves the address bar, and with it the history, before anything else is done. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname);
  return code;
}

async function signIn(code) {
  const answer = await fetch("/v1/token", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
  });
  if (answer.status === 401) return show("used");
  if (!answer.ok) return show("gone");
  sessionStorage.setItem(key, (await answer.json()).token);
  connect();
}

function connect() {
  const token = sessionStorage.getItem(key);
  if (!token) return show("signed_out");
  show("connecting");
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`, "earshot.v1");
  let fresh = null; // the names of a snapshot that is still coming
  socket.onopen = () => socket.send(JSON.stringify({ type: "hello", token, client: "page/1" }));
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.type === "welcome") {
      fresh = new Set();
      socket.send(JSON.stringify({ type: "subscribe", id: "page", deliver: "state" }));
    } else if (frame.type === "session") {
      fresh?.add(frame.session);
      sessions.set(frame.session, frame);
      soon();
    } else if (frame.type === "ready") {
      for (const name of sessions.keys()) if (!fresh.has(name)) sessions.delete(name);
      fresh = null;
      wait = pause.first;
      show("live");
      soon();
    }
  };
  socket.onclose = ({ code }) => {
    if (code === 4501) {
      sessionStorage.removeItem(key);
      return show("wrong");
    }
    show("gone");
    setTimeout(connect, wait * (0.5 + Math.random()));
    wait = Math.min(2 * wait, pause.last);
  };
}

let drawing = false;
function soon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

const whole = (text) => (text && typeof text === "object" ? text.text + "…" : text ?? "");

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function item(session) {
  const { state, reason, detail } = session.status;
  const line = element("div", "line", "");
  const status = element("span", "status", state);
  status.dataset.state = state;
  line.append(status);
  line.append(element("span", "title", whole(session.title) || whole(session.turn.prompt) || session.session));
  line.append(element("span", "project", session.project ?? session.directory));
  const made = document.createElement("li");
  made.append(line);
  const tools = session.tools.map((tool) => tool.tool).join(", ");
  const more = detail || (state === "waiting" && reason) || (tools && `runs ${tools}`) || whole(session.last_text);
  if (more) made.append(element("div", "more", more));
  return made;
}

function draw() {
  const rank = (session) => order.indexOf(session.status.state);
  const newest = (session) => session.last_activity ?? "";
  const sorted = [...sessions.values()].sort((a, b) => rank(a) - rank(b) || (newest(a) < newest(b) ? 1 : -1));
  list.replaceChildren(...sorted.map(item));
  if (sorted.length === 0) list.replaceChildren(element("li", "more", "No agent has been at work in the last day."));
}

const code = takeCode();
if (code) {
  show("connecting");
  signIn(code).catch(() => show("gone"));
} else {
  connect();
}
addEventListener("hashchange", () => location.hash && location.reload());
