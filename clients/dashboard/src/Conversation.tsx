import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isCut, whole, type EarshotEvent, type JsonValue, type Text } from "../../sdk/src/index.js";
import { Dialog } from "./Dialog.js";
import { bytes, clock, ms, now, span } from "./format.js";
import { toEnd } from "./keyboard.js";
import type { Entry, ToolCall } from "./model.js";
import type { OpenSession } from "./session.js";
import { gist } from "./Tool.js";
import { visible } from "./visible.js";

const shown_first = 200; // the newest; earlier ones on demand, so many at a time
const output_max = 20_000; // characters of an output on the page; `raw` has it all

function Long({ text }: { text: Text | undefined }) {
  return (
    <>
      <div class="text">{whole(text).slice(0, output_max)}</div>
      {isCut(text) ? <p class="cut">The beginning of {bytes(text.bytes)}: “raw” shows it all.</p> : null}
    </>
  );
}

function Json({ value }: { value: JsonValue }) {
  if (typeof value !== "object" || value === null || Array.isArray(value) || isCut(value)) return <pre>{isCut(value) ? whole(value) : JSON.stringify(value, null, 2).slice(0, output_max)}</pre>;
  return (
    <dl class="input">
      {Object.entries(value).map(([name, one]) => <><dt>{name}</dt><dd><pre>{typeof one === "string" ? one : isCut(one) ? whole(one) : JSON.stringify(one, null, 2)}</pre></dd></>)}
    </dl>
  );
}

function Duration({ tool }: { tool: ToolCall }) {
  if (tool.end !== undefined) return <span class="took">{tool.start > 0 ? span(tool.end - tool.start) : ""}</span>;
  return <span class="took running">{span(Math.floor((now.value - tool.start) / 1000) * 1000)}</span>;
}

type Show = (title: string, event: EarshotEvent) => void;

/** `outcome`: the call's own, which changes under it. */
function ToolEntry({ tool, event, base, raw, outcome }: { tool: ToolCall; event: EarshotEvent; base: string; raw: Show; outcome: string | undefined }) {
  const [open, setOpen] = useState(false); // what is folded is not on the page at all
  const finished = tool.finished?.type === "tool.finished" ? tool.finished : undefined;
  return (
    <details class="call" data-outcome={outcome ?? "open"} onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
      <summary data-item={event.cursor}>
        <b>{tool.tool}</b> <span class="gist">{gist(tool.input, base)}</span>
        {outcome && outcome !== "ok" ? <span class="outcome">{outcome}</span> : null}
        {tool.background ? <span class="outcome quiet">background</span> : null}
        <Duration tool={tool} key={outcome} />
      </summary>
      {open ? (
        <div class="folded">
          {tool.input !== undefined ? <Json value={tool.input} /> : null}
          {finished ? <div class="output"><Long text={finished.output} /></div> : null}
          <p class="more"><button type="button" onClick={() => raw("The call", event)}>raw call</button> {finished ? <button type="button" onClick={() => raw("The result", finished)}>raw result</button> : null}</p>
        </div>
      ) : null}
    </details>
  );
}

const roles: Record<string, string> = { user: "You", assistant: "Agent", system: "System", summary: "Summary" };

function One({ entry, base, raw }: { entry: Entry; base: string; raw: Show; outcome: string | undefined }) {
  const at = ms(entry.event.time);
  const time = at === undefined ? null : <time dateTime={entry.event.time}>{clock(at)}</time>;
  const agent = entry.event.agent ? "" : undefined;
  const rawButton = <button type="button" class="raw" onClick={() => raw("The record", entry.event)}>raw</button>;
  switch (entry.kind) {
    case "turn":
      return (
        <li class="entry begin" data-agent={agent}>
          <div class="who" tabIndex={-1} data-item={entry.event.cursor}><b>Turn {entry.turn.number}</b>{entry.event.origin === "human" ? null : <span>{entry.event.origin}</span>}{time}{rawButton}</div>
          <Long text={entry.event.prompt} />
        </li>
      );
    case "message": {
      const { role, kind } = entry.event;
      const thinking = kind === "thinking";
      const text = whole(entry.event.text);
      if (thinking && !text) return null;
      const one = entry.event.media;
      const media = one ? <span class="cut">{one.kind}, {one.media_type}{one.bytes ? `, ${bytes(one.bytes)}` : ""}</span> : null;
      return (
        <li class="entry" data-role={role} data-kind={kind} data-agent={agent}>
          <div class="who" tabIndex={-1} data-item={entry.event.cursor}><b>{roles[role] ?? role}</b>{kind === "text" ? null : <span>{kind}</span>}{time}{rawButton}</div>
          {thinking ? <details><summary>{text.slice(0, 120)}</summary><Long text={entry.event.text} /></details> : <Long text={entry.event.text} />}
          {media}
        </li>
      );
    }
    case "tool": return <li class="entry tools" data-agent={agent}><ToolEntry tool={entry.tool} event={entry.event} base={base} raw={raw} outcome={entry.tool.outcome} /></li>;
    case "mark": return <li class="entry mark" data-agent={agent}><span>{entry.text}</span>{time}{rawButton}</li>;
  }
}

const piece_max = 4000; // characters: a browser takes seconds to lay out a word of a megabyte, so that only what is in sight is

/** In pieces that end with a line where they can. */
export function pieces(text: string): string[] {
  const out: string[] = [];
  for (let at = 0; at < text.length; ) {
    const line = text.length - at > piece_max ? text.lastIndexOf("\n", at + piece_max) : -1;
    let end = line >= at ? line + 1 : Math.min(at + piece_max, text.length);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end--; // not inside of a character
    out.push(text.slice(at, end).replace(/\n$/, ""));
    at = end;
  }
  return out;
}

function Raw({ title, event, session, close }: { title: string; event: EarshotEvent; session: OpenSession; close: () => void }) {
  const [got, set] = useState<{ text: string } | { error: string } | undefined>(undefined);
  useState(() => session.read(event.stream, event.cursor).then((record) => set({ text: visible(typeof record === "string" ? record : JSON.stringify(record, null, 2)) }), (error: Error) => set({ error: error.message })));
  return (
    <Dialog title={title} close={close}>
      <p class="cut">{event.stream} at {event.cursor}</p>
      {!got ? <p>Reading…</p> : "error" in got ? <p role="alert">The daemon says: {got.error}</p> : <pre class="record" tabIndex={0}>{pieces(got.text).map((piece) => <div>{piece}</div>)}</pre>}
    </Dialog>
  );
}

function textOf(entry: Entry): string {
  switch (entry.kind) {
    case "turn": return whole(entry.event.prompt);
    case "message": return whole(entry.event.text);
    case "mark": return entry.text;
    case "tool": {
      const { tool, input, outcome, finished } = entry.tool;
      return `${tool} ${outcome ?? ""} ${JSON.stringify(input ?? "")} ${finished?.type === "tool.finished" ? whole(finished.output) : ""}`;
    }
  }
}

/** Each word is somewhere in what the entry says. */
function fits(entry: Entry, words: string[]): boolean {
  if (words.length === 0) return true;
  const said = textOf(entry).toLowerCase();
  return words.every((word) => said.includes(word));
}

const near_px = 80; // from the end of the page: whoever is there wants to see what comes

/** Stays at the end of the page while somebody is there; says whether the end is out of sight. */
function useEnd(version: number): boolean {
  const there = useRef(false);
  const [below, setBelow] = useState(false);
  const look = () => {
    const left = document.documentElement.scrollHeight - innerHeight - scrollY;
    there.current = left < near_px && scrollY > near_px;
    setBelow(left > innerHeight / 2);
  };
  useLayoutEffect(() => {
    if (there.current) scrollTo(0, document.documentElement.scrollHeight);
    else look();
  }, [version]);
  useEffect(() => {
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  return below;
}

export function Conversation({ session, version }: { session: OpenSession; version: number }) {
  const below = useEnd(version);
  const [more, setMore] = useState(0);
  const [agents, setAgents] = useState(true);
  const [find, setFind] = useState("");
  const [raw, setRaw] = useState<{ title: string; event: EarshotEvent } | undefined>(undefined);
  const { entries, forgotten } = session.model;
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = entries.filter((entry) => (agents || !entry.event.agent) && fits(entry, words));
  const first = Math.max(0, chosen.length - shown_first - more);
  const inner = entries.some((entry) => entry.event.agent);
  const show: Show = (title, event) => setRaw({ title, event });
  return (
    <section class="conversation">
      <h3>Conversation {inner ? <button type="button" class="toggle" aria-pressed={agents} onClick={() => setAgents(!agents)}>Subagents</button> : null}
        <input id="search" type="search" placeholder="Search" aria-label="Search the conversation" title="Press / to search" autocomplete="off" spellcheck={false} value={find} onInput={(event) => setFind(event.currentTarget.value)} />
      </h3>
      {words.length > 0 ? <p class="cut" role="status">{chosen.length.toLocaleString()} of {entries.length.toLocaleString()} entries</p> : null}
      {first > 0 ? <p><button type="button" onClick={() => setMore(more + shown_first)}>Show earlier ({first.toLocaleString()} more)</button></p> : null}
      {first === 0 && forgotten > 0 ? <p class="cut">{forgotten.toLocaleString()} earlier entries are not kept by this page.</p> : null}
      <ol class="entries">{chosen.slice(first).map((entry) => <One key={entry.event.stream + entry.event.cursor + entry.kind} entry={entry} base={session.frame.value?.project ?? ""} raw={show} outcome={entry.kind === "tool" ? entry.tool.outcome : undefined} />)}</ol>
      {below ? <p class="newest"><button type="button" onClick={() => toEnd()}>Newest ↓</button></p> : null}
      {raw ? <Raw {...raw} session={session} close={() => setRaw(undefined)} /> : null}
    </section>
  );
}
