// Rows of the overview: waiting sessions first, then groups by host and project. The order depends on phases and their start times only,
// so that activity does not reorder the list.
import { computed } from "@preact/signals";
import { accountLimits, isOffline, type AccountLimit, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { daemonHost, sessions, visible } from "./connection.js";
import { ms, now, programName } from "./format.js";
import { onlyHost, onlyProgram, onlyProject, onlyState, openHost, openSession, query } from "./route.js";

export const phases = ["waiting", "working", "done", "idle", "unknown", "offline", "ended"] as const;
export type Phase = (typeof phases)[number];
export const phaseLabels: Record<Phase, string> = { waiting: "needs you", working: "working", done: "done", idle: "idle", unknown: "unknown", offline: "offline", ended: "ended" };

const done_ms = 30 * 60_000; // how long a completed turn is shown as done; one that failed or was interrupted never is

export type Row = { kind: "group"; key: string; title: string; project?: string; host: string; count: number } | { kind: "session"; key: string; session: SessionState; phase: Phase; show_project: boolean };

export function phaseOf(frame: SessionFrame, at: number): Phase {
  const { state, reason } = frame.status;
  if (isOffline(frame)) return "offline";
  if (state !== "idle" || reason === "background") return state === "idle" ? "idle" : state;
  const finished = ms(frame.turn.finished);
  return finished !== undefined && frame.turn.outcome === "completed" && at - finished - (frame.clock_offset_ms ?? 0) < done_ms ? "done" : "idle";
}

export const titleOf = (frame: SessionFrame) => frame.title || frame.turn.prompt || frame.session;
export const projectOf = (frame: SessionFrame) => frame.project ?? frame.directory;
/** The last part of a path. */
export const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1) || path;

/** The text that a search matches. */
function searchText(frame: SessionFrame): string {
  return [titleOf(frame), projectOf(frame), frame.host, frame.session, frame.program, programName(frame.program), frame.model, frame.git_branch, frame.last_text, frame.status.detail, ...frame.tools.map((tool) => tool.tool)]
    .join("\n").toLowerCase();
}

const minute = computed(() => Math.floor(now.value / 60_000));

const classified = computed(() => {
  const at = Math.max(minute.value * 60_000, Date.now());
  return sessions.value.map((session) => ({ session, phase: phaseOf(session.frame, at) }));
});

/** By host and program: the filters that select a part of the team. */
const isChosen = (frame: SessionFrame) => (!onlyHost.value || frame.host === onlyHost.value) && (!onlyProgram.value || frame.program === onlyProgram.value);

export const counts = computed(() => {
  const counted = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<Phase, number>;
  for (const { session, phase } of classified.value) if (isChosen(session.frame)) counted[phase]++;
  return counted;
});

const isOnScreen = ({ session, host }: SessionFrame) => visible.value && openSession.value === session && (!openHost.value || openHost.value === host);

/** Sessions with a turn that finished since the user last looked. */
export const unseen = computed(() => sessions.value.filter(({ frame }) => frame.unseen && !isOnScreen(frame)));
export const unseenCount = computed(() => unseen.value.filter(({ frame }) => isChosen(frame)).length);

/** By phase, or `unseen`. */
const hasState = (frame: SessionFrame, phase: Phase) => !onlyState.value || onlyState.value === phase || (onlyState.value === "unseen" && frame.unseen === true);

export interface Host { name: string; sessions: number; offline: boolean; last_online: string | undefined }

/** The sessions' hosts by name. Returns the same object while nothing has changed. */
export const hosts = computed<Map<string, Host>>((() => {
  let last = new Map<string, Host>();
  let last_json = "";
  return () => {
    const found = new Map<string, Host>();
    for (const { frame } of sessions.value) {
      let host = found.get(frame.host);
      if (!host) found.set(frame.host, (host = { name: frame.host, sessions: 0, offline: false, last_online: undefined }));
      host.sessions++;
      if (isOffline(frame)) Object.assign(host, { offline: true, last_online: frame.status.since ?? host.last_online });
    }
    const sorted = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const json = JSON.stringify(sorted);
    if (json === last_json) return last;
    last_json = json;
    return (last = new Map(sorted.map((host) => [host.name, host])));
  };
})());

/** True if sessions come from other hosts than the daemon's: each row then shows its host. */
export const isTeam = computed(() => hosts.value.size > 1 || [...hosts.value.keys()].some((name) => name !== daemonHost.value));

/** The number of sessions of each agent program, by name. */
export const programs = computed(() => {
  const counted = new Map<string, number>();
  for (const { frame } of sessions.value) if (frame.program) counted.set(frame.program, (counted.get(frame.program) ?? 0) + 1);
  return new Map([...counted].sort(([a], [b]) => (a < b ? -1 : 1)));
});

/** True if not all sessions are Claude Code's: each session then shows its program. */
export const showsPrograms = computed(() => [...programs.value.keys()].some((program) => program !== "claude-code"));

/** The limits of the accounts whose sessions are shown. */
export const limits = computed<AccountLimit[]>(() => accountLimits(sessions.value.map(({ frame }) => frame).filter(isChosen), Math.max(minute.value * 60_000, Date.now())));

export const waiting = computed(() => classified.value.filter(({ phase }) => phase === "waiting").map(({ session }) => session));

const since = (frame: SessionFrame) => frame.status.since ?? frame.turn.finished ?? frame.turn.started ?? "";

export const rows = computed<Row[]>(() => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = classified.value.filter(({ session, phase }) => {
    if (!hasState(session.frame, phase)) return false;
    if (!isChosen(session.frame)) return false;
    if (onlyProject.value && projectOf(session.frame) !== onlyProject.value) return false;
    if (words.length === 0) return true;
    const text = searchText(session.frame);
    return words.every((word) => text.includes(word));
  });
  const groups = new Map<string, typeof chosen>();
  const waiting_rows: typeof chosen = [];
  for (const row of chosen) {
    if (row.phase === "waiting") {
      waiting_rows.push(row);
      continue;
    }
    const key = `${row.session.frame.host}\u0000${projectOf(row.session.frame)}`;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  const out: Row[] = [];
  const add = (list: typeof chosen, show_project: boolean) => {
    for (const { session, phase } of list) out.push({ kind: "session", key: session.key, session, phase, show_project });
  };
  if (waiting_rows.length > 0) {
    waiting_rows.sort((a, b) => (since(a.session.frame) < since(b.session.frame) ? -1 : 1)); // longest wait first
    out.push({ kind: "group", key: "waiting", title: "Needs you", host: "", count: waiting_rows.length });
    add(waiting_rows, true);
  }
  const firstPhase = (list: typeof chosen) => Math.min(...list.map(({ phase }) => phases.indexOf(phase)));
  const groupOrder = (list: typeof chosen) => (phases[firstPhase(list)] === "offline" ? 3 : Math.min(2, firstPhase(list))); // active groups first, offline hosts last
  for (const [key, list] of [...groups].sort(([a, x], [b, y]) => groupOrder(x) - groupOrder(y) || (a < b ? -1 : 1))) {
    const [host, project] = key.split("\u0000") as [string, string];
    list.sort((a, b) => phases.indexOf(a.phase) - phases.indexOf(b.phase) || (since(a.session.frame) < since(b.session.frame) ? 1 : -1) || (a.session.key < b.session.key ? -1 : 1));
    out.push({ kind: "group", key, title: project, project, host: isTeam.value ? host : "", count: list.length });
    add(list, false);
  }
  return out;
});
