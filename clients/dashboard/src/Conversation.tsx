import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { truncatedBytes, type EarshotEvent, type JsonValue } from "../../sdk/src/index.js";
import { Dialog } from "./Dialog.js";
import { bytes, clock, duration, ms, now } from "./format.js";
import { scrollToEnd } from "./keyboard.js";
import type { Entry, ToolCall } from "./model.js";
import type { OpenSession } from "./session.js";
import { escapeControls } from "./sanitize.js";
import { inputSummary } from "./SessionParts.js";

const page_size = 200; // entries: the newest, and as many more on each request
const output_max = 20_000; // characters of an input on the page; `raw` shows the whole record

/** A note below a text that the daemon has cut. */
function TruncationNote({ event, path }: { event: EarshotEvent; path: string[] }) {
  const size = truncatedBytes(event, ...path);
  return size === undefined ? null : <p class="note">The beginning of {bytes(size)}: “raw” shows all of it.</p>;
}

function LongText({ event, field }: { event: EarshotEvent; field: string }) {
  return <><div class="text">{(event as unknown as Record<string, string | undefined>)[field]}</div><TruncationNote event={event} path={[field]} /></>;
}

/** A tool's input as a table of its fields. */
function ToolInput({ event, value }: { event: EarshotEvent; value: JsonValue }) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return <><pre>{typeof value === "string" ? value : JSON.stringify(value, null, 2).slice(0, output_max)}</pre><TruncationNote event={event} path={["input"]} /></>;
  return (
    <dl class="input">
      {Object.entries(value).map(([name, field]) => <><dt>{name}</dt><dd><pre>{typeof field === "string" ? field : JSON.stringify(field, null, 2)}</pre><TruncationNote event={event} path={["input", name]} /></dd></>)}
    </dl>
  );
}

function ToolDuration({ tool }: { tool: ToolCall }) {
  if (tool.end !== undefined) return <span class="duration">{tool.start > 0 ? duration(tool.end - tool.start) : ""}</span>;
  return <span class="duration running">{duration(Math.floor((now.value - tool.start) / 1000) * 1000)}</span>;
}

type ShowRecord = (title: string, event: EarshotEvent) => void;

/** `outcome`: of `tool`, which is updated in place: the changed prop causes a render. */
function ToolEntry({ tool, event, base, showRecord, outcome }: { tool: ToolCall; event: EarshotEvent; base: string; showRecord: ShowRecord; outcome: string | undefined }) {
  const [open, setOpen] = useState(false); // the content is only rendered when open
  const finished = tool.finished?.type === "tool.finished" ? tool.finished : undefined;
  return (
    <details class="call" data-outcome={outcome ?? "open"} onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
      <summary data-item={event.cursor}>
        <b>{tool.tool}</b> <span class="input-summary">{inputSummary(tool.input, base)}</span>
        {outcome && outcome !== "ok" ? <span class="outcome">{outcome}</span> : null}
        {tool.background ? <span class="outcome quiet">background</span> : null}
        <ToolDuration tool={tool} key={outcome} />
      </summary>
      {open ? (
        <div class="folded">
          {tool.input !== undefined ? <ToolInput event={event} value={tool.input} /> : null}
          {finished ? <div class="output"><LongText event={finished} field="output" /></div> : null}
          <p class="more"><button type="button" onClick={() => showRecord("Tool call", event)}>raw call</button> {finished ? <button type="button" onClick={() => showRecord("Tool result", finished)}>raw result</button> : null}</p>
        </div>
      ) : null}
    </details>
  );
}

const roles: Record<string, string> = { user: "You", assistant: "Agent", system: "System", summary: "Summary" };

function ConversationEntry({ entry, base, showRecord }: { entry: Entry; base: string; showRecord: ShowRecord; outcome: string | undefined }) {
  const at = ms(entry.event.time);
  const time = at === undefined ? null : <time dateTime={entry.event.time}>{clock(at)}</time>;
  const agent = entry.event.agent ? "" : undefined;
  const rawButton = <button type="button" class="raw" onClick={() => showRecord("Record", entry.event)}>raw</button>;
  switch (entry.kind) {
    case "turn":
      return (
        <li class="entry begin" data-agent={agent}>
          <div class="byline" tabIndex={-1} data-item={entry.event.cursor}><b>Turn {entry.turn.number}</b>{entry.event.origin === "human" ? null : <span>{entry.event.origin}</span>}{time}{entry.turn.waited_ms ? <span class="waited">waited {duration(entry.turn.waited_ms)} for you</span> : null}{rawButton}</div>
          <LongText event={entry.event} field="prompt" />
        </li>
      );
    case "message": {
      const { role, kind } = entry.event;
      const thinking = kind === "thinking";
      const text = entry.event.text ?? "";
      if (thinking && !text) return null;
      const { media } = entry.event;
      return (
        <li class="entry" data-role={role} data-kind={kind} data-agent={agent}>
          <div class="byline" tabIndex={-1} data-item={entry.event.cursor}><b>{kind === "agent" ? "Another agent" : (roles[role] ?? role)}</b>{kind === "text" || kind === "agent" ? null : <span>{kind}</span>}{time}{rawButton}</div>
          {thinking ? <details><summary>{text.slice(0, 120)}</summary><LongText event={entry.event} field="text" /></details> : <LongText event={entry.event} field="text" />}
          {media ? <span class="note">{media.kind}{media.media_type ? `, ${media.media_type}` : ""}{media.bytes ? `, ${bytes(media.bytes)}` : ""}</span> : null}
        </li>
      );
    }
    case "tool": return <li class="entry tools" data-agent={agent}><ToolEntry tool={entry.tool} event={entry.event} base={base} showRecord={showRecord} outcome={entry.tool.outcome} /></li>;
    case "notice": return <li class="entry notice" data-agent={agent}><span>{entry.text}</span>{time}{rawButton}</li>;
  }
}

const chunk_max = 4000; // characters: Chromium takes seconds to lay out a word of 1 MB; chunks out of sight are not laid out

/** Splits a text into chunks, at line ends where possible. */
function chunks(text: string): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length; ) {
    const line = text.length - at > chunk_max ? text.lastIndexOf("\n", at + chunk_max) : -1;
    let end = line >= at ? line + 1 : Math.min(at + chunk_max, text.length);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end--; // not inside a surrogate pair
    out.push(text.slice(at, end).replace(/\n$/, ""));
    at = end;
  }
  return out;
}

function RecordDialog({ title, event, session, close }: { title: string; event: EarshotEvent; session: OpenSession; close: () => void }) {
  const [result, setResult] = useState<{ text: string } | { error: string } | undefined>(undefined);
  useState(() => session.read(event.stream, event.cursor).then((record) => setResult({ text: escapeControls(typeof record === "string" ? record : JSON.stringify(record, null, 2)) }), (error: Error) => setResult({ error: error.message })));
  return (
    <Dialog title={title} close={close}>
      <p class="note">{event.stream} at {event.cursor}</p>
      {!result ? <p>Loading…</p> : "error" in result ? <p role="alert">Cannot read the record: {result.error}</p> : <pre class="record" tabIndex={0}>{chunks(result.text).map((chunk) => <div>{chunk}</div>)}</pre>}
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
function useScrollToEnd(version: number): boolean {
  const at_end = useRef(false);
  const [below, setBelow] = useState(false);
  const measure = () => {
    const left = document.documentElement.scrollHeight - innerHeight - scrollY;
    at_end.current = left < near_end_px && scrollY > near_end_px;
    setBelow(left > innerHeight / 2);
  };
  useLayoutEffect(() => {
    if (at_end.current) scrollTo(0, document.documentElement.scrollHeight);
    else measure();
  }, [version]);
  useEffect(() => {
    addEventListener("scroll", measure, { passive: true });
    return () => removeEventListener("scroll", measure);
  }, []);
  return below;
}

export function Conversation({ session, version }: { session: OpenSession; version: number }) {
  const end_hidden = useScrollToEnd(version);
  const [earlier, setEarlier] = useState(0);
  const [show_agents, setShowAgents] = useState(true);
  const [query, setQuery] = useState("");
  const [record, setRecord] = useState<{ title: string; event: EarshotEvent } | undefined>(undefined);
  const { entries, dropped } = session.model;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = entries.filter((entry) => (show_agents || !entry.event.agent) && matches(entry, words));
  const first = Math.max(0, matching.length - page_size - earlier);
  const has_agents = entries.some((entry) => entry.event.agent);
  const showRecord: ShowRecord = (title, event) => setRecord({ title, event });
  return (
    <section class="conversation">
      <h3>Conversation {has_agents ? <button type="button" class="toggle" aria-pressed={show_agents} onClick={() => setShowAgents(!show_agents)}>Subagents</button> : null}
        <input id="search" type="search" placeholder="Search" aria-label="Search the conversation" title="Press / to search" autocomplete="off" spellcheck={false} value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      </h3>
      {words.length > 0 ? <p class="note" role="status">{matching.length.toLocaleString()} of {entries.length.toLocaleString()} entries</p> : null}
      {first > 0 ? <p><button type="button" onClick={() => setEarlier(earlier + page_size)}>Show earlier ({first.toLocaleString()} more)</button></p> : null}
      {first === 0 && dropped > 0 ? <p class="note">{dropped.toLocaleString()} earlier entries are no longer in the page's memory.</p> : null}
      <ol class="entries">{matching.slice(first).map((entry) => <ConversationEntry key={entry.event.stream + entry.event.cursor + entry.kind} entry={entry} base={session.frame.value?.project ?? ""} showRecord={showRecord} outcome={entry.kind === "tool" ? entry.tool.outcome : entry.kind === "turn" ? entry.turn.outcome : undefined} />)}</ol>
      {end_hidden ? <p class="newest"><button type="button" onClick={() => scrollToEnd()}>Newest ↓</button></p> : null}
      {record ? <RecordDialog {...record} session={session} close={() => setRecord(undefined)} /> : null}
    </section>
  );
}
