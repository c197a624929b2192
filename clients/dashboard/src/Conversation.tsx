import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EarshotEvent } from "../../sdk/src/index.js";
import { CopyButton } from "./CopyButton.js";
import { Dialog } from "./Dialog.js";
import { clock, duration, ms } from "./format.js";
import { onMoveFocus, scrollToEnd } from "./keyboard.js";
import { LongText } from "./LongText.js";
import type { Entry } from "./model.js";
import { PictureView, type Media } from "./Pictures.js";
import { placeText, parsePlace } from "./place.js";
import { chunks } from "./PlainText.js";
import { address, go, openPlace } from "./route.js";
import type { OpenSession } from "./session.js";
import { escapeControls } from "./sanitize.js";
import { ToolEntry, type EntryView } from "./ToolEntry.js";
import { VariableList, type ListHandle } from "./VariableList.js";
import { readWhole } from "./wholeTexts.js";

export const whole_entries_max = 3_000; // the newest, on paper and in a file

const roles: Record<string, string> = { user: "You", assistant: "Agent", system: "System", summary: "Summary" };
const keyOf = (entry: Entry) => `${placeText(entry.event)} ${entry.kind}`;

/** Guesses of heights, corrected when an entry is rendered. */
function estimate(entry: Entry): number {
  switch (entry.kind) {
    case "turn": return 90 + Math.min(400, entry.turn.prompt.length / 5);
    case "message": return 60 + Math.min(800, (entry.event.text?.length ?? 0) / 4);
    case "tool": return 28;
    case "notice": return 32;
  }
}

function Byline({ entry, view, name, kind, field }: { entry: Entry; view: EntryView; name: string; kind?: string | null; field: string }) {
  const { event } = entry;
  const at = ms(event.time);
  return (
    <div class="byline" tabIndex={-1} data-item={event.cursor}>
      <b>{name}</b>{kind ? <span>{kind}</span> : null}{at === undefined ? null : <time dateTime={event.time}>{clock(at)}</time>}
      {entry.kind === "turn" && entry.turn.waited_ms ? <span class="waited">waited {duration(entry.turn.waited_ms)} for you</span> : null}
      <span class="actions">
        <CopyButton text={() => readWhole(view.session, event, field)} label={field === "prompt" ? "Copy prompt" : "Copy text"} short="copy" />
        <CopyButton text={() => view.linkTo(event)} label="Copy link to this place" short="link" />
        <button type="button" class="raw" onClick={() => view.showRecord("Record", event)}>raw</button>
      </span>
    </div>
  );
}

/** `outcome`, `opened`: of what is updated in place: a changed prop causes a render. */
function ConversationEntry({ entry, view, marked, outcome, opened }: { entry: Entry; view: EntryView; marked: boolean; outcome: string | undefined; opened: boolean | undefined }) {
  const agent = entry.event.agent ? "" : undefined;
  const at = marked ? "" : undefined;
  switch (entry.kind) {
    case "turn":
      return (
        <div class="entry begin" data-agent={agent} data-at={at} data-origin={entry.event.origin}>
          <Byline entry={entry} view={view} name={`Turn ${entry.turn.number}`} kind={entry.event.origin === "human" ? null : entry.event.origin} field="prompt" />
          {entry.event.prompt ? <div class="prompt"><LongText session={view.session} event={entry.event} field="prompt" as="text" /></div> : null}
        </div>
      );
    case "message": {
      const { role, kind } = entry.event;
      const thinking = kind === "thinking";
      const text = entry.event.text ?? "";
      if (thinking && !text) return null;
      const name = kind === "agent" ? "Another agent" : (roles[role] ?? role);
      const media = entry.event.media as Media | undefined;
      const content = <LongText session={view.session} event={entry.event} field="text" as={role === "assistant" || role === "summary" || kind === "plan" || kind === "agent" ? "markdown" : "text"} />;
      const key = keyOf(entry);
      return (
        <div class="entry" data-role={role} data-kind={kind} data-agent={agent} data-at={at}>
          <Byline entry={entry} view={view} name={name} kind={kind === "text" || kind === "agent" ? null : kind} field="text" />
          {thinking ? <details open={view.isOpen(key, view.whole)} onToggle={(event) => view.setOpen(key, event.currentTarget.open)}><summary>{text.slice(0, 160)}</summary>{content}</details> : text ? content : null}
          {media ? <PictureView session={view.session} event={entry.event} media={media} nth={0} /> : null}
        </div>
      );
    }
    case "tool": return <div class="entry tools" data-agent={agent} data-at={at}><ToolEntry tool={entry.tool} event={entry.event} view={view} entryKey={keyOf(entry)} outcome={outcome} opened={opened} /></div>;
    case "notice": {
      const time = ms(entry.event.time);
      return <div class="entry notice" data-agent={agent} data-at={at} data-type={entry.event.type}><span>{entry.text}</span>{time === undefined ? null : <time dateTime={entry.event.time}>{clock(time)}</time>}<button type="button" class="raw" onClick={() => view.showRecord("Record", entry.event)}>raw</button></div>;
    }
  }
}

function RecordDialog({ title, event, session, close }: { title: string; event: Pick<EarshotEvent, "stream" | "cursor">; session: OpenSession; close: () => void }) {
  const [result, setResult] = useState<{ text: string } | { error: string } | undefined>(undefined);
  useState(() => session.read(event.stream, event.cursor).then((record) => setResult({ text: escapeControls(typeof record === "string" ? record : JSON.stringify(record, null, 2)) }), (error: Error) => setResult({ error: error.message })));
  return (
    <Dialog title={title} close={close}>
      <p class="note">{event.stream} at {event.cursor}</p>
      {!result ? <p>Loading…</p> : "error" in result ? <p role="alert">Cannot read the record: {result.error}</p> : (
        <>
          <pre class="record" tabIndex={0}>{chunks(result.text).map((chunk) => <div>{chunk}</div>)}</pre>
          <p><CopyButton text={() => result.text} label="Copy record" /></p>
        </>
      )}
    </Dialog>
  );
}

function textOf(entry: Entry): string {
  switch (entry.kind) {
    case "turn": return entry.event.prompt ?? "";
    case "message": return entry.event.text ?? "";
    case "notice": return entry.text;
    case "tool": {
      const { tool, input, outcome, finished } = entry.tool;
      return `${tool} ${outcome ?? ""} ${JSON.stringify(input ?? "")} ${finished?.type === "tool.finished" ? (finished.output ?? "") : ""}`;
    }
  }
}

/** True if the entry's text contains every word. */
function matches(entry: Entry, words: string[]): boolean {
  if (words.length === 0) return true;
  const text = textOf(entry).toLowerCase();
  return words.every((word) => text.includes(word));
}

const near_end_px = 80; // closer to the end of the page, new entries are scrolled into view

/** Keeps the page scrolled to its end if it is there. Returns true if the end is out of sight. */
function useScrollToEnd(changes: number): boolean {
  const at_end = useRef(false);
  const last_y = useRef(0);
  const [below, setBelow] = useState(false);
  const measure = () => {
    const left = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (left < near_end_px) at_end.current = scrollY > near_end_px;
    else if (scrollY < last_y.current) at_end.current = false; // scrolled up; that the page grew below is no reason
    last_y.current = scrollY;
    setBelow(left > innerHeight / 2);
  };
  const stay = () => void (at_end.current = true);
  useLayoutEffect(() => {
    if (at_end.current) scrollTo(0, document.documentElement.scrollHeight);
    else measure();
  }, [changes]);
  useEffect(() => {
    const sizes = new ResizeObserver(() => { // entries grow after they were rendered: pictures, line numbers
      if (at_end.current) scrollTo(0, document.documentElement.scrollHeight);
      else measure();
    });
    sizes.observe(document.body);
    addEventListener("scroll", measure, { passive: true });
    addEventListener("scrolledtoend", stay);
    return () => {
      sizes.disconnect();
      removeEventListener("scroll", measure);
      removeEventListener("scrolledtoend", stay);
    };
  }, []);
  return below;
}

/** What other parts of the page ask of the conversation. */
export interface ConversationHandle {
  /** Scrolls to an entry, unfolds it and marks it. Filters that hide it are cleared. */
  show(entry: Entry): void;
}

/** `whole`: all entries, unfolded, as for printing. */
export function Conversation({ session, whole, handle }: { session: OpenSession; changes: number; whole: boolean; handle: { current: ConversationHandle | undefined } }) {
  const { entries, dropped, changes } = session.model;
  const end_hidden = useScrollToEnd(changes);
  const [show_agents, setShowAgents] = useState(true);
  const [query, setQuery] = useState("");
  const [record, setRecord] = useState<{ title: string; event: Pick<EarshotEvent, "stream" | "cursor"> } | undefined>(undefined);
  const [marked, setMarked] = useState<Entry | undefined>(undefined);
  const [missing_place, setMissingPlace] = useState("");
  const list = useRef<ListHandle<Entry> | undefined>(undefined);
  const opened = useRef(new Map<string, boolean>());
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = useMemo(() => (words.length === 0 && show_agents ? entries : entries.filter((entry) => (show_agents || !entry.event.agent) && matches(entry, words))), [entries, changes, query, show_agents]);
  const shown = whole ? matching.slice(-whole_entries_max) : matching;
  const has_agents = useMemo(() => entries.some((entry) => entry.event.agent), [entries, changes]);
  const base = session.frame.value?.project ?? "";
  const view = useMemo((): EntryView => ({
    session, base, whole,
    showRecord: (title, event) => setRecord({ title, event }),
    linkTo: (event) => new URL(address({ at: placeText(event) }), location.href).href,
    isOpen: (key, otherwise) => opened.current.get(key) ?? otherwise,
    setOpen: (key, open) => void opened.current.set(key, open),
  }), [session, base, whole]);

  const pending = useRef<Entry | undefined>(undefined);
  const show = (entry: Entry) => {
    setQuery("");
    if (entry.event.agent) setShowAgents(true);
    opened.current.set(keyOf(entry), true);
    setMarked(entry);
    pending.current = entry; // revealed once the list contains it
  };
  handle.current = { show };
  useLayoutEffect(() => {
    const entry = pending.current;
    if (!entry || !shown.includes(entry)) return;
    pending.current = undefined;
    list.current?.reveal(entry, (element) => element.querySelector<HTMLElement>("[data-item]")?.focus({ preventScroll: true }));
  });

  // The place in the address: known when its event arrives, and when the page is open already.
  const place = parsePlace(openPlace.value);
  const at_text = openPlace.value;
  const shown_place = useRef("");
  useEffect(() => {
    if (!place || shown_place.current === at_text) return;
    const { target } = session.model;
    const found = target && placeText(target.place) === placeText(place) ? target.found : session.model.find(place);
    if (found && (session.loaded.value || !target)) {
      shown_place.current = at_text;
      setMissingPlace("");
      show(found);
    } else if (session.loaded.value && !found) {
      shown_place.current = at_text;
      setMissingPlace(at_text);
    }
  }, [session.model, changes, at_text, session.loaded.value]);

  // j and k: the next entry may not be rendered yet.
  useEffect(() => onMoveFocus((step) => {
    const items = [...document.querySelectorAll<HTMLElement>(".entries [data-item]")];
    const at = items.indexOf(document.activeElement?.closest<HTMLElement>("[data-item]") ?? document.body);
    const on_screen = items.findIndex((item) => item.getBoundingClientRect().top > 60);
    const next = items[at < 0 ? Math.max(0, on_screen) : at + step];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest" });
  }), []);

  return (
    <section class="conversation">
      <h3>Conversation {has_agents ? <button type="button" class="toggle" aria-pressed={show_agents} onClick={() => setShowAgents(!show_agents)}>Subagents</button> : null}
        <input id="search" type="search" placeholder="Search" aria-label="Search the conversation" title="Press / to search" autocomplete="off" spellcheck={false} value={query} onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && setQuery("")} />
      </h3>
      {words.length > 0 ? <p class="note" role="status">{matching.length.toLocaleString()} of {entries.length.toLocaleString()} entries</p> : null}
      {missing_place && place ? (
        <p class="place-missing" role="status">The place in the address is not among the entries in memory.{" "}
          <button type="button" onClick={() => setRecord({ title: "Record", event: place })}>Show its record</button> <button type="button" onClick={() => (setMissingPlace(""), go({ at: "" }, true))}>Dismiss</button>
        </p>
      ) : null}
      {dropped > 0 ? <p class="note">{dropped.toLocaleString()} earlier entries are no longer in the page's memory.</p> : null}
      {shown.length < matching.length ? <p class="note">The newest {shown.length.toLocaleString()} of {matching.length.toLocaleString()} entries.</p> : null}
      <VariableList items={shown} keyOf={keyOf} estimate={estimate} whole={whole} handle={(given) => (list.current = given)}>
        {(entry) => <ConversationEntry entry={entry} view={view} marked={entry === marked} opened={opened.current.get(keyOf(entry))} outcome={entry.kind === "tool" ? entry.tool.outcome : entry.kind === "turn" ? entry.turn.outcome : undefined} />}
      </VariableList>
      {end_hidden ? <p class="newest"><button type="button" onClick={() => scrollToEnd()}>Newest ↓</button></p> : null}
      {record ? <RecordDialog {...record} session={session} close={() => setRecord(undefined)} /> : null}
    </section>
  );
}
