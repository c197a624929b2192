// What the overview shows: the waiting sessions, then groups of rows, then those that ended or went quiet. What the order depends on is kept for each session, so that
// a change of one of thousands is cheap, and the list is only sorted again when it changed.
import { batch, computed, effect, signal } from "@preact/signals";
import { accountLimits, isOffline, usageOfDay, type AccountLimit, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { daemonHost, isSent, pageArrives, rest, sessions, visible } from "./connection.js";
import { ms, now, programName, wallClock } from "./format.js";
import { grouping, onlyHost, onlyProgram, onlyProject, onlyState, openHost, openSession, query, showsQuiet, sorting } from "./route.js";
import { snoozeOf, snoozeVersion } from "./snooze.js";

export const phases = ["waiting", "working", "done", "idle", "unknown", "offline", "ended"] as const;
export type Phase = (typeof phases)[number];
export const phaseLabels: Record<Phase, string> = { waiting: "needs you", working: "working", done: "done", idle: "idle", unknown: "unknown", offline: "offline", ended: "ended" };

export const groupings = { project: "Project", host: "Host", program: "Program", none: "None" } as const;
export const sortings = { need: "Need", activity: "Activity", cost: "Cost", context: "Context", name: "Name" } as const;
type Grouping = keyof typeof groupings;
type Sorting = keyof typeof sortings;
export const chosenGrouping = computed<Grouping>(() => (grouping.value in groupings ? (grouping.value as Grouping) : "project"));
export const chosenSorting = computed<Sorting>(() => (sorting.value in sortings ? (sorting.value as Sorting) : "need"));

const done_ms = 30 * 60_000; // how long a completed turn that was seen is shown as done; one that failed or was interrupted never is
const cards_max = 12; // further waiting sessions are rows

/** What the overview needs of a session, as of its frame. */
interface Entry {
  session: SessionState;
  frame: SessionFrame;
  phase: Phase;
  until: number; // the phase changes then without a new frame
  project: string;
  title: string;
  since: number; // when the present state began
  activity: number;
  cost: number;
  share: number;
  search: string | undefined;
}

export type Row =
  | { kind: "group"; key: string; title: string; project?: string; host?: string; count: number; members: readonly SessionState[] }
  | { kind: "session"; key: string; session: SessionState; phase: Phase; show_project: boolean; show_host: boolean }
  | { kind: "quiet"; key: string; count: number; all_ended: boolean; open: boolean };

export function phaseOf(frame: SessionFrame, at: number): Phase {
  const { state, reason } = frame.status;
  if (isOffline(frame)) return "offline";
  if (state !== "idle" || reason === "background") return state;
  const finished = ms(frame.turn.finished);
  if (finished === undefined || frame.turn.outcome !== "completed") return "idle";
  return frame.unseen || at - finished - (frame.clock_offset_ms ?? 0) < done_ms ? "done" : "idle";
}

export const titleOf = (frame: SessionFrame) => frame.title || frame.turn.prompt || frame.session;
export const projectOf = (frame: SessionFrame) => frame.project ?? frame.directory;
/** The last part of a path. */
const windows_path = /^(?:\\\\|[A-Za-z]:[\\/])/;
export const nameOf = (path: string) => path.slice(Math.max(path.lastIndexOf("/"), windows_path.test(path) ? path.lastIndexOf("\\") : -1) + 1) || path;

/** When the session's present state began: the one age that the overview shows. */
export const sinceOf = ({ status, turn }: SessionFrame) => status.since ?? (status.state === "working" || status.state === "waiting" ? turn.started : (turn.finished ?? turn.started));

/** The text that a search matches. */
function searchText(frame: SessionFrame): string {
  return [titleOf(frame), projectOf(frame), frame.host, frame.session, frame.program, programName(frame.program), frame.model, frame.git_branch, frame.last_text, frame.status.detail, ...frame.tools.map((tool) => tool.tool)]
    .join("\n").toLowerCase();
}

function entryOf(session: SessionState, at: number): Entry {
  const { frame } = session;
  const phase = phaseOf(frame, at);
  const { context = 0, context_window, cost_usd = -1 } = frame.usage;
  const finished = (ms(frame.turn.finished) ?? 0) + (frame.clock_offset_ms ?? 0);
  return {
    session, frame, phase, until: phase === "done" && !frame.unseen ? finished + done_ms : Infinity, project: projectOf(frame), title: titleOf(frame),
    since: (ms(sinceOf(frame)) ?? 0) + (frame.clock_offset_ms ?? 0), activity: (ms(frame.last_activity) ?? 0) + (frame.clock_offset_ms ?? 0), cost: cost_usd, share: context_window ? context / context_window : -1, search: undefined,
  };
}

const isEnded = ({ phase, frame }: Entry) => !frame.unseen && phase === "ended";
/** Ended, or idle without anything to look at. Background work is not quiet. */
const isQuiet = ({ phase, frame }: Entry) => !frame.unseen && (phase === "ended" || phase === "unknown" || (phase === "idle" && frame.status.reason !== "background"));

/** True if the order of the rows is the same with either. */
const hasSamePlace = (a: Entry, b: Entry) =>
  a.phase === b.phase && a.since === b.since && a.project === b.project && a.title === b.title && a.frame.unseen === b.frame.unseen && a.frame.program === b.frame.program &&
  a.frame.status.reason === b.frame.status.reason && a.cost === b.cost && a.share === b.share && a.frame.last_activity === b.frame.last_activity;
/** The same, if the order does not depend on numbers that change all the time, such as the activity of those that work. */
const hasSameCalmPlace = (a: Entry, b: Entry) =>
  (a.phase === "working" || a.frame.last_activity === b.frame.last_activity) && a.phase === b.phase && a.since === b.since && a.project === b.project && a.title === b.title && a.frame.unseen === b.frame.unseen && a.frame.program === b.frame.program && a.frame.status.reason === b.frame.status.reason;

const entries = new Map<string, Entry>();
const minute = computed(() => Math.floor(now.value / 60_000));

/** All sessions. `structure` changes with the order of the rows. */
const classified = computed<{ all: Entry[]; structure: number }>((() => {
  let structure = 0;
  return () => {
    const at = Math.max(minute.value * 60_000, now.peek());
    const isSame = chosenSorting.value === "need" || chosenSorting.value === "name" ? hasSameCalmPlace : hasSamePlace;
    const all: Entry[] = [];
    let changed = sessions.value.length !== entries.size;
    for (const session of sessions.value) {
      let entry = entries.get(session.key);
      if (!entry || entry.frame !== session.frame || entry.session !== session || entry.until <= at) {
        const next = entryOf(session, at);
        if (!entry || entry.session !== session || !isSame(entry, next)) changed = true;
        entries.set(session.key, (entry = next));
      }
      all.push(entry);
    }
    if (entries.size > all.length) {
      const present = new Set(all.map(({ session }) => session.key));
      for (const key of entries.keys()) if (!present.has(key)) entries.delete(key);
      changed = true;
    }
    if (changed) structure++;
    return { all, structure };
  };
})());

/** By host and program: the filters that select a part of the team. */
const isChosen = (frame: SessionFrame) => (!onlyHost.value || frame.host === onlyHost.value) && (!onlyProgram.value || frame.program === onlyProgram.value);

const isOnScreen = ({ session, host }: SessionFrame) => visible.value && openSession.value === session && (!openHost.value || openHost.value === host);

/** All sessions that wait, and of those the ones that the user put off. */
const waits = computed(() => {
  void snoozeVersion.value;
  const at = wallClock.peek();
  const all = classified.value.all.filter(({ phase }) => phase === "waiting").map(({ session }) => session);
  return { all, snoozed: new Set(all.filter((session) => snoozeOf(session, at)).map(({ key }) => key)) };
});

/** Sessions that need the user now. */
export const waiting = computed(() => waits.value.all.filter(({ key }) => !waits.value.snoozed.has(key)));
export const snoozed = computed(() => waits.value.all.filter(({ key, frame }) => waits.value.snoozed.has(key) && isChosen(frame)));

/** A figure of all sessions, also those that have not arrived. While a page of them arrives, the figure stays: it would count some twice. */
function figure<T>(compute: () => T) {
  let last: T | undefined;
  return computed(() => {
    const next = compute();
    return (last = pageArrives.value && last !== undefined ? last : next);
  });
}

/** The daemon's figures of the sessions that have not arrived: of all hosts and programs. */
const uncounted = computed(() => (onlyHost.value || onlyProgram.value ? undefined : rest.value));
const isCounted = (key: string) => !rest.value || isSent(key);

export const counts = figure(() => {
  const counted = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<Phase, number>;
  for (const { session, frame, phase } of classified.value.all) if (isChosen(frame) && isCounted(session.key)) counted[phase]++;
  counted.waiting += (uncounted.value?.waiting ?? 0) - snoozed.value.length;
  counted.working += uncounted.value?.working ?? 0;
  return counted;
});

/** Sessions with a turn that finished since the user last looked. */
export const unseen = computed(() => classified.value.all.filter(({ frame }) => frame.unseen && !isOnScreen(frame)).map(({ session }) => session));
export const unseenCount = figure(() => unseen.value.filter(({ key, frame }) => isChosen(frame) && isCounted(key)).length + (uncounted.value?.unseen ?? 0));
/** Of all hosts and programs, without snoozed sessions: what the page's title and icon show. */
export const needingYou = figure(() => waiting.value.filter(({ key }) => isCounted(key)).length + (rest.value?.waiting ?? 0));
export const unseenOfAll = figure(() => unseen.value.filter(({ key }) => isCounted(key)).length + (rest.value?.unseen ?? 0));

/** By phase, or `unseen`. */
const hasState = ({ frame, phase }: Entry) => !onlyState.value || onlyState.value === phase || (onlyState.value === "unseen" && frame.unseen === true);

const many = 1_000; // sessions; above it sums, hosts and limits are up to a second old
const settle_ms = 1_000;
const settled = signal<SessionState[]>([]);
/** What was not counted by then, and which of the sessions were. */
const settledRest = signal<{ rest: typeof rest.value; counted: SessionState[] }>({ rest: undefined, counted: [] });
let settling = 0;

function settle() {
  const all = sessions.peek();
  batch(() => {
    settled.value = all;
    if (!pageArrives.peek()) settledRest.value = { rest: rest.peek(), counted: rest.peek() ? all.filter(({ key }) => isSent(key)) : all };
  });
}

effect(() => {
  if (sessions.value.length <= many || settled.peek().length === 0 || rest.value !== settledRest.peek().rest) settle();
  else settling ||= window.setTimeout(() => {
    settling = 0;
    settle();
  }, settle_ms);
});

/** `partial`: sessions of which a part may be of an earlier day. `midnight`: when the day began, if that is not this browser's midnight. */
export interface Today { sessions: number; cost_usd: number; is_estimated: boolean; without_cost: number; partial: number; midnight: number | undefined; tokens: number; output: number }

type RestOfDay = NonNullable<NonNullable<typeof rest.value>["day"]>;

/** What the sessions used since midnight, by the daemon's calendar. */
export const today = computed<Today>(() => {
  const at = Math.max(minute.value * 60_000, now.peek());
  const own_midnight = new Date(at).setHours(0, 0, 0, 0);
  const sum: Today = { sessions: 0, cost_usd: 0, is_estimated: false, without_cost: 0, partial: 0, midnight: undefined, tokens: 0, output: 0 };
  const add = (used: NonNullable<SessionFrame["day"]> | RestOfDay, sessions: number, partial: number, without_cost: number) => {
    sum.sessions += sessions;
    const midnight = ms(used.since)!;
    if (midnight !== own_midnight) sum.midnight = midnight;
    sum.partial += partial;
    sum.without_cost += without_cost;
    sum.cost_usd += used.cost_usd ?? 0;
    sum.is_estimated ||= used.cost_usd !== undefined && used.cost_source !== "recorded";
    sum.tokens += used.input + used.output + used.cache_read + used.cache_write;
    sum.output += used.output;
  };
  const { counted, rest } = settledRest.value;
  for (const { frame } of counted) {
    const used = usageOfDay(frame, at);
    if (used && isChosen(frame)) add(used, 1, Number(used.partial ?? false), Number(used.cost_usd === undefined));
  }
  const others = uncounted.value && rest?.day && Date.parse(rest.day.since) <= at && at < Date.parse(rest.day.until) ? rest.day : undefined;
  if (others) add(others, others.sessions, others.partial ?? 0, others.without_cost ?? 0);
  return sum;
});

export interface Host { name: string; offline: boolean; last_online: string | undefined }

/** The sessions' hosts by name. Returns the same object while nothing has changed. */
export const hosts = computed<Map<string, Host>>((() => {
  let last = new Map<string, Host>();
  const isSame = (found: Map<string, Host>) => {
    if (found.size !== last.size) return false;
    for (const [name, host] of found) {
      const old = last.get(name);
      if (!old || old.offline !== host.offline || old.last_online !== host.last_online) return false;
    }
    return true;
  };
  return () => {
    const found = new Map<string, Host>();
    for (const { frame } of settled.value) {
      let host = found.get(frame.host);
      if (!host) found.set(frame.host, (host = { name: frame.host, offline: false, last_online: undefined }));
      if (isOffline(frame)) Object.assign(host, { offline: true, last_online: frame.status.since ?? host.last_online });
    }
    return isSame(found) ? last : (last = new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1))));
  };
})());

/** True if sessions come from other hosts than the daemon's: each row then shows its host. */
export const isTeam = computed(() => hosts.value.size > 1 || [...hosts.value.keys()].some((name) => name !== daemonHost.value));

/** The number of sessions of each agent program, by name. */
export const programs = computed(() => {
  const counted = new Map<string, number>();
  for (const { frame } of settled.value) if (frame.program) counted.set(frame.program, (counted.get(frame.program) ?? 0) + 1);
  return new Map([...counted].sort(([a], [b]) => (a < b ? -1 : 1)));
});

/** True if not all sessions are Claude Code's: each session then shows its program. */
export const showsPrograms = computed(() => [...programs.value.keys()].some((program) => program !== "claude-code"));

function* chosenFrames(all: SessionState[]) {
  for (const { frame } of all) if (isChosen(frame) && frame.limits) yield frame;
}

/** The limits of the accounts whose sessions are shown. */
export const limits = computed<AccountLimit[]>(() => accountLimits(chosenFrames(settled.value), Math.max(minute.value * 60_000, now.peek())));

/** The most important first: finished and not seen, working, done, … */
const need = ({ phase, frame }: Entry) => (frame.unseen ? 0 : 1 + phases.indexOf(phase));
const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const byKey = (a: Entry, b: Entry) => byText(a.session.key, b.session.key);
const byActivity = (a: Entry, b: Entry) => b.activity - a.activity;
const comparisons: Record<Sorting, (a: Entry, b: Entry) => number> = {
  need: (a, b) => need(a) - need(b) || b.since - a.since || byKey(a, b),
  activity: (a, b) => byActivity(a, b) || byKey(a, b),
  cost: (a, b) => b.cost - a.cost || byKey(a, b),
  context: (a, b) => b.share - a.share || byKey(a, b),
  name: (a, b) => byText(a.title.toLowerCase(), b.title.toLowerCase()) || byKey(a, b),
};

const groupKeys: Record<Grouping, (entry: Entry) => string> = { project: ({ project }) => project, host: ({ frame }) => frame.host, program: ({ frame }) => frame.program ?? "", none: () => "" };

/** Appends the rows of these entries, in groups: by what they need or in the order of their first rows. */
function appendGroups(out: Row[], chosen: Entry[], suffix: string, order: Sorting) {
  const by = chosenGrouping.value;
  const groups = new Map<string, Entry[]>();
  for (const entry of chosen.sort(comparisons[order])) {
    const key = groupKeys[by](entry);
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  const all = [...groups];
  // By need: active groups first, those of offline hosts last, else by name, so that groups keep their places.
  const rank = (group: Entry[]) => (group.every(({ phase }) => phase === "offline") ? 2 : Number(need(group[0]!) > 2));
  if (order === "need") all.sort(([a, x], [b, y]) => rank(x) - rank(y) || byText(a, b));
  else if (order === "name") all.sort(([a], [b]) => byText(a, b));
  for (const [key, list] of all) {
    if (by !== "none") {
      const title = by === "program" ? programName(key) || "unknown program" : key || "unknown project";
      out.push({ kind: "group", key: `${by} ${key}${suffix}`, title, count: list.length, members: list.map(({ session }) => session), ...(by === "project" && { project: key }), ...(by === "host" && { host: key }) });
    }
    for (const { session, phase } of list) out.push({ kind: "session", key: session.key, session, phase, show_project: by !== "project", show_host: by !== "host" });
  }
}

interface View { cards: SessionState[]; rows: Row[]; matches: number; waits: number }

/** The cards of waiting sessions, the longest wait first, and the rows of the others. */
const layout = computed<View & { structure: string }>((() => {
  let last: (View & { structure: string }) | undefined;
  return () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { all, structure } = classified.value;
    const away = waits.value.snoozed;
    // Any frame may change whether it matches a search.
    const signature = words.length > 0 ? "" : [structure, [...away].join(), onlyState.value, onlyProject.value, onlyHost.value, onlyProgram.value, chosenGrouping.value, chosenSorting.value, showsQuiet.value].join("\n");
    if (signature && last?.structure === signature) return { ...last };
    const chosen = all.filter((entry) => {
      if (!hasState(entry) || !isChosen(entry.frame)) return false;
      if (onlyProject.value && entry.project !== onlyProject.value) return false;
      if (words.length === 0) return true;
      entry.search ??= searchText(entry.frame);
      return words.every((word) => entry.search!.includes(word));
    });
    const waiting_entries = chosen.filter(({ phase, session }) => phase === "waiting" && !away.has(session.key)).sort((a, b) => a.since - b.since || byKey(a, b));
    const others = chosen.filter(({ phase }) => phase !== "waiting");
    const folds = words.length === 0 && !onlyState.value;
    // While nothing waits or works, what was done last is on top, and only ended sessions are folded.
    const rests = chosenSorting.value === "need" && waiting_entries.length === 0 && !others.some(({ phase }) => phase === "working");
    const order = rests ? "activity" : chosenSorting.value;
    const isFolded = rests ? isEnded : isQuiet;
    const active = folds ? others.filter((entry) => !isFolded(entry)) : others;
    const quiet = folds ? others.filter(isFolded) : [];
    const rows: Row[] = [];
    const more = waiting_entries.slice(cards_max);
    if (more.length > 0) rows.push({ kind: "group", key: "more", title: "More that need you", count: more.length, members: [] });
    for (const { session, phase } of more) rows.push({ kind: "session", key: session.key, session, phase, show_project: true, show_host: true });
    appendGroups(rows, active, "", order);
    if (quiet.length > 0) {
      const alone = waiting_entries.length === 0 && active.length === 0; // nothing else is shown
      const open = alone || showsQuiet.value === "1";
      if (!alone) rows.push({ kind: "quiet", key: "quiet", count: quiet.length, all_ended: rests, open });
      if (open) appendGroups(rows, quiet, " quiet", order);
    }
    last = { cards: waiting_entries.slice(0, cards_max).map(({ session }) => session), rows, matches: chosen.length, waits: waiting_entries.length, structure: signature };
    return last;
  };
})());

export const cards = computed(() => layout.value.cards);
/** The waiting sessions that match the filters: as cards, and more as rows. */
export const waitingMatches = computed(() => layout.value.waits);
export const rows = computed(() => layout.value);
/** The sessions that match the filters. */
export const matches = computed(() => layout.value.matches);
