// The overview's lines: who needs somebody first, then by host and project. Order changes only when something did that a person would
// move a card for: not with every sign of life.
import { computed } from "@preact/signals";
import { isAway, whole, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { ownHost, sessions } from "./connection.js";
import { ms, now } from "./format.js";
import { onlyHost, onlyProject, onlyState, query } from "./route.js";

export const phases = ["waiting", "working", "done", "idle", "unknown", "away", "ended"] as const;
export type Phase = (typeof phases)[number];
export const phaseWords: Record<Phase, string> = { waiting: "needs you", working: "working", done: "done", idle: "idle", unknown: "unknown", away: "away", ended: "ended" };

const done_ms = 30 * 60_000; // a turn that ended so lately is news

export type Row = { kind: "group"; key: string; title: string; project?: string; host: string; count: number } | { kind: "session"; key: string; session: SessionState; phase: Phase; where: boolean };

export function phaseOf(frame: SessionFrame, at: number): Phase {
  const { state, reason } = frame.status;
  if (isAway(frame)) return "away";
  if (state !== "idle" || reason === "background") return state === "idle" ? "idle" : state;
  const finished = ms(frame.turn.finished);
  return finished !== undefined && at - finished < done_ms ? "done" : "idle";
}

export const titleOf = (frame: SessionFrame) => whole(frame.title) || whole(frame.turn.prompt) || frame.session;
export const projectOf = (frame: SessionFrame) => frame.project ?? frame.directory;
/** The last part of a path. */
export const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1) || path;

/** What is on screen of it: what a search looks through. */
function text(frame: SessionFrame): string {
  return [titleOf(frame), projectOf(frame), frame.host, frame.session, frame.model, frame.git_branch, whole(frame.last_text), frame.status.detail, ...frame.tools.map((tool) => tool.tool)]
    .join("\n").toLowerCase();
}

const minute = computed(() => Math.floor(now.value / 60_000));

const judged = computed(() => {
  const at = Math.max(minute.value * 60_000, Date.now());
  return sessions.value.map((session) => ({ session, phase: phaseOf(session.now, at) }));
});

export const counts = computed(() => {
  const found = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<Phase, number>;
  for (const { session, phase } of judged.value) if (!onlyHost.value || session.now.host === onlyHost.value) found[phase]++;
  return found;
});

export interface Host { name: string; count: number; away: boolean; heard: string | undefined }

/** Whose sessions these are, by name; the same object for as long as nothing about it changed. */
export const hosts = computed<Map<string, Host>>((() => {
  let last = new Map<string, Host>();
  let said = "";
  return () => {
    const found = new Map<string, Host>();
    for (const { now } of sessions.value) {
      let host = found.get(now.host);
      if (!host) found.set(now.host, (host = { name: now.host, count: 0, away: false, heard: undefined }));
      host.count++;
      if (isAway(now)) Object.assign(host, { away: true, heard: now.status.since ?? host.heard });
    }
    const sorted = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const saying = JSON.stringify(sorted);
    if (saying === said) return last;
    said = saying;
    return (last = new Map(sorted.map((host) => [host.name, host])));
  };
})());

/** A hub tells these, or several hosts do: each session shows whose it is. */
export const team = computed(() => hosts.value.size > 1 || [...hosts.value.keys()].some((name) => name !== ownHost.value));

export const waiting = computed(() => judged.value.filter(({ phase }) => phase === "waiting").map(({ session }) => session));

const since = (frame: SessionFrame) => frame.status.since ?? frame.turn.finished ?? frame.turn.started ?? "";

export const rows = computed<Row[]>(() => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = judged.value.filter(({ session, phase }) => {
    if (onlyState.value && phase !== onlyState.value) return false;
    if (onlyHost.value && session.now.host !== onlyHost.value) return false;
    if (onlyProject.value && projectOf(session.now) !== onlyProject.value) return false;
    if (words.length === 0) return true;
    const shown = text(session.now);
    return words.every((word) => shown.includes(word));
  });
  const groups = new Map<string, typeof chosen>();
  const first: typeof chosen = [];
  for (const one of chosen) {
    if (one.phase === "waiting") {
      first.push(one);
      continue;
    }
    const key = `${one.session.now.host}\u0000${projectOf(one.session.now)}`;
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  const out: Row[] = [];
  const add = (list: typeof chosen, where: boolean) => {
    for (const { session, phase } of list) out.push({ kind: "session", key: session.key, session, phase, where });
  };
  if (first.length > 0) {
    first.sort((a, b) => (since(a.session.now) < since(b.session.now) ? -1 : 1)); // who waits for longest
    out.push({ kind: "group", key: "waiting", title: "Needs you", host: "", count: first.length });
    add(first, true);
  }
  const rank = (list: typeof chosen) => Math.min(...list.map(({ phase }) => phases.indexOf(phase)));
  const quiet = (list: typeof chosen) => (phases[rank(list)] === "away" ? 3 : Math.min(2, rank(list))); // those at work before those that are not
  for (const [key, list] of [...groups].sort(([a, x], [b, y]) => quiet(x) - quiet(y) || (a < b ? -1 : 1))) {
    const [host, project] = key.split("\u0000") as [string, string];
    list.sort((a, b) => phases.indexOf(a.phase) - phases.indexOf(b.phase) || (since(a.session.now) < since(b.session.now) ? 1 : -1) || (a.session.key < b.session.key ? -1 : 1));
    out.push({ kind: "group", key, title: project, project, host: team.value ? host : "", count: list.length });
    add(list, false);
  }
  return out;
});
