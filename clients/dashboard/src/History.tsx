// The history: all sessions by day, and the search in their text. A click opens the session at the place.
import { untracked } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { sessionKey } from "../../sdk/src/index.js";
import { connection, currentFrame, daemonHost } from "./connection.js";
import { ConnectionHelp } from "./ConnectionStatus.js";
import { hourMinute, ms, plural, programName, shortModel, stale, tokens } from "./format.js";
import { byDay, isRefusedForNow, load, pieces, type Page, type PastSession, type Result, type Wanted } from "./history.js";
import { focusedItem, keepHistory, restorePosition, takeHistory } from "./historyReturn.js";
import { costText } from "./Numbers.js";
import { placeText, type Place } from "./place.js";
import { address, exactPattern, findText, follow, go, historyDay, historyKind, historyProject, onlyHost } from "./route.js";
import { hosts, isTeam, titleOf } from "./rows.js";
import { escapeControls } from "./sanitize.js";
import { HostFilter } from "./Top.js";

const typing_ms = 200; // a search begins when nothing was typed for so long
const building_ms = 2000; // the pages are loaded again while the index is being built
const retry_ms = 2000; // after a response that refuses for now
const pages_max = 50; // more are not kept: the filters narrow the list

const kinds: Array<[string, string]> = [["", "Everything"], ["prompt", "Prompts"], ["answer", "Answers"], ["tool", "Tool inputs"], ["title", "Titles"]];
const kind_names: Record<string, string> = { prompt: "You", answer: "Agent", tool: "Tool", title: "Title" };

/** `key`: of the filters that the pages belong to. */
interface Loaded { key: string; pages: Page[]; error: string; loading: boolean; is_refused_for_now?: boolean }

/** These pages and those after them, until there are `count` or no more. */
async function loadPages(wanted: Wanted, pages: Page[], count: number): Promise<Page[]> {
  do pages = [...pages, await load(wanted, exactPattern, pages.at(-1)?.next)];
  while (pages.length < count && pages.at(-1)!.next);
  return pages;
}

/** The pages for these filters, loaded again when they change. `more` adds a page. On the way back from a session they are those from before, at the same place. */
function usePages(wanted: Wanted): Loaded & { more: () => void; not_searched: boolean } {
  const key = JSON.stringify(wanted);
  const [back] = useState(() => takeHistory(key));
  const [state, setState] = useState<Loaded>({ key, pages: back?.pages ?? [], error: "", loading: !back });
  const restored = useRef(back?.key); // of the pages that need not be loaded
  const shown = useRef(state);
  shown.current = state;
  useLayoutEffect(() => {
    if (back) restorePosition(back);
    let scroll = back?.scroll ?? 0;
    const onScroll = () => void (scroll = scrollY); // at the end the page is scrolled for the next view already
    addEventListener("scroll", onScroll, { passive: true });
    return () => {
      removeEventListener("scroll", onScroll);
      keepHistory({ key: shown.current.key, pages: shown.current.pages, scroll, item: focusedItem() });
    };
  }, []);
  const request = useRef(0); // responses to earlier ones are dropped
  const last_find = useRef(wanted.find);
  const live = connection.value.state === "live";
  /** Adds a page to these. `error`: shown meanwhile. */
  const fetchPage = (before: Page[], error = "") => {
    const number = ++request.current;
    setState({ key, pages: before, error, loading: true });
    loadPages(wanted, before, before.length + 1).then(
      (pages) => number === request.current && setState({ key, pages, error: "", loading: false }),
      (error: Error) => number === request.current && setState({ key, pages: before, error: error.message, loading: false, is_refused_for_now: isRefusedForNow(error) }));
  };
  /** Loads as many pages as are shown again; these stay meanwhile, and if that fails. */
  const refresh = () => {
    const number = ++request.current;
    const is_current = () => number === request.current;
    loadPages(wanted, [], shown.current.pages.length).then(
      (pages) => is_current() && setState({ key, pages, error: "", loading: false }),
      (error: Error) => {
        if (isRefusedForNow(error)) setTimeout(() => is_current() && refresh(), retry_ms);
        else if (is_current()) setState({ ...shown.current });
      });
  };
  useEffect(() => {
    if (!live) return;
    const is_restored = restored.current === key;
    restored.current = undefined;
    if (is_restored) return;
    const { key: shown_key, pages, error, loading } = shown.current;
    if (shown_key === key && pages.length > 0 && !error && !loading) return refresh(); // connected again
    const typed = last_find.current !== wanted.find;
    last_find.current = wanted.find;
    const timer = setTimeout(() => fetchPage([]), typed ? typing_ms : 0);
    return () => clearTimeout(timer);
  }, [key, live]);
  useEffect(() => {
    if (!state.is_refused_for_now || !live) return;
    const timer = setTimeout(() => fetchPage(state.pages, state.error), retry_ms);
    return () => clearTimeout(timer);
  }, [state, live, key]);
  useEffect(() => {
    if (state.loading || !state.pages.some((page) => page.index.building) || !live) return;
    const timer = setTimeout(refresh, building_ms);
    return () => clearTimeout(timer);
  }, [state, live, key]);
  useEffect(() => () => void request.current++, []);
  return { ...state, not_searched: stale.value && state.key !== key, more: () => fetchPage(state.pages) };
}

function Filters({ projects }: { projects: NonNullable<Page["projects"]> }) {
  const selected = historyProject.value;
  return (
    <div class="filters history-filters">
      <input id="search" type="search" placeholder="Search all sessions" aria-label="Search the text of all sessions" title="Press / to search" autocomplete="off" spellcheck={false} maxLength={400} value={findText.value}
        onInput={(event) => go({ find: event.currentTarget.value }, true)} />
      {findText.value ? (
        <select id="kind" aria-label="Kind" value={historyKind.value} data-selected={historyKind.value ? "" : undefined} onChange={(event) => go({ kind: event.currentTarget.value })}>
          {kinds.map(([kind, name]) => <option key={kind} value={kind}>{name}</option>)}
        </select>
      ) : null}
      <select id="in" aria-label="Project" value={selected} data-selected={selected ? "" : undefined} onChange={(event) => go({ in: event.currentTarget.value })}>
        <option value="">All projects</option>
        {selected && !projects.some(({ project }) => project === selected) ? <option value={selected} selected>{escapeControls(selected)}</option> : null}
        {projects.map(({ project, sessions }) => <option key={project} value={project} selected={project === selected}>{`${escapeControls(project)} (${sessions})`}</option>)}
      </select>
      <HostFilter />
      <input id="day" type="date" aria-label="Day" value={historyDay.value} onChange={(event) => go({ day: event.currentTarget.value })} />
      {historyDay.value || selected ? <button type="button" class="chip" onClick={() => go({ day: "", in: "" })}>All days and projects</button> : null}
    </div>
  );
}

const costOf = ({ usage, cost_usd, cost_source }: PastSession) => costText({ ...usage, ...(cost_usd !== undefined && { cost_usd }), ...(cost_source && { cost_source }) });

function Time({ of }: { of: string | undefined }) {
  const at = ms(of);
  return at === undefined ? <span /> : <time dateTime={of}>{hourMinute(at)}</time>;
}

/** The link that opens a session; `place`: of an event in it. */
function linkTo({ session, host }: { session?: string; host?: string }, place?: Place) {
  return { session: session ?? "", host: host ?? "", at: place ? placeText(place) : "" };
}

/** At a hub: the host, and whether it is offline. The daemon's own sessions have none. */
function HostMark({ name = daemonHost.value }: { name: string | undefined }) {
  if (!isTeam.value || !name) return null;
  const offline = hosts.value.get(name)?.offline;
  return <span class="host" data-offline={offline ? "" : undefined}>{escapeControls(name)}{offline ? ", offline" : ""}</span>;
}

/** As in the overview, if the session is there. Its titles change too often for a list to follow them. */
function titleOfPast({ session = "", host, title }: { session?: string; host?: string; title?: string }) {
  const frame = untracked(() => currentFrame(sessionKey(host ?? daemonHost.value, session)));
  return escapeControls(frame ? titleOf(frame) : title || session);
}

function Session({ session }: { session: PastSession }) {
  const target = linkTo(session);
  return (
    <li class="past" onClick={follow(target)}>
      <Time of={session.last_time} />
      <a class="title" dir="auto" data-item={session.session} href={address(target)}>{titleOfPast(session)}</a>
      <span class="where"><HostMark name={session.host} />{escapeControls(session.project ?? "")}</span>
      <span class="facts">{[programName(session.program), shortModel(session.model), plural(session.prompts, "turn"), plural(session.tools, "call"), `${tokens(session.usage.output)} out`, costOf(session)].filter(Boolean).map((fact) => <span>{escapeControls(fact)}</span>)}</span>
    </li>
  );
}

function Found({ result }: { result: Result }) {
  const target = linkTo(result, result);
  const { snippet } = result;
  return (
    <li class="past found" onClick={follow(target)}>
      <Time of={result.time} />
      <a class="title" dir="auto" data-item={result.stream + result.cursor} href={address(target)}>{titleOfPast(result)}</a>
      <span class="where"><HostMark name={result.host} />{escapeControls(result.project ?? "")}</span>
      <p class="snippet"><b class="kind">{kind_names[result.kind] ?? ""}</b> {snippet.cut_before ? "… " : ""}{pieces(snippet).map(({ text, is_match }) => (is_match ? <mark>{text}</mark> : text))}{snippet.cut_after ? " …" : ""}</p>
    </li>
  );
}

function Progress({ page }: { page: Page }) {
  const { building, indexed, total } = page.index;
  if (!building) return null;
  return <p class="note" role="status">The index is being built{total ? `: ${(indexed ?? 0).toLocaleString()} of ${total.toLocaleString()} transcripts` : ""}. Older sessions may be missing.</p>;
}

export function History() {
  const wanted = { find: findText.value.trim(), project: historyProject.value, host: onlyHost.value, day: historyDay.value, kind: historyKind.value };
  const { pages, error, loading, not_searched, more } = usePages(wanted);
  const [projects, setProjects] = useState<NonNullable<Page["projects"]>>([]);
  const first = pages[0];
  useEffect(() => {
    if (first?.projects && !wanted.project) setProjects(first.projects);
  }, [first]);
  if (connection.value.state !== "live" && pages.length === 0) return <div class="history"><h2 class="visually-hidden">History</h2><ConnectionHelp place="empty" /></div>;
  if (not_searched) return <div class="history"><h2 class="visually-hidden">History</h2><Filters projects={projects} /><p class="note" role="status">Not searched: no connection.</p></div>;
  const sessions = pages.flatMap((page) => page.sessions ?? []);
  const results = pages.flatMap((page) => page.results ?? []);
  const last = pages.at(-1);
  return (
    <div class="history" aria-busy={loading}>
      <h2 class="visually-hidden">History</h2>
      <Filters projects={projects} />
      {first ? <Progress page={first} /> : null}
      {error ? <p class="note" role="alert">{escapeControls(error)}</p> : null}
      {byDay(results, (result) => result.time).map(({ day, items }) => (
        <section key={"found " + day}><h3>{day}</h3><ul>{items.map((result) => <Found key={result.stream + result.cursor} result={result} />)}</ul></section>
      ))}
      {byDay(sessions, (session) => session.last_time).map(({ day, items }) => (
        <section key={day}><h3>{day}</h3><ul>{items.map((session) => <Session key={session.session + (session.host ?? "")} session={session} />)}</ul></section>
      ))}
      {first && !error && results.length + sessions.length === 0 && !loading ? <div class="empty"><p>{wanted.find ? "Nothing was found." : "No sessions."}</p></div> : null}
      {last?.incomplete ? <p class="note">The search took too long: more words or a filter make it faster.</p> : null}
      {last?.next && pages.length < pages_max ? <p class="more"><button type="button" disabled={loading} onClick={more}>Show more</button></p> : null}
      {last?.next && pages.length >= pages_max ? <p class="note">Older ones are not listed: select a project or a day.</p> : null}
    </div>
  );
}
