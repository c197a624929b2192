// A tool call: one line with its outcome; unfolded, what it changed, what it ran and printed, or its input and output.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { EarshotEvent, JsonValue } from "../../sdk/src/index.js";
import { CopyButton } from "./CopyButton.js";
import { Counts, DiffView } from "./DiffView.js";
import { countLines, editsOfInput, editsOfRecord, isEmpty, type FileEdit } from "./edits.js";
import { duration, now, running } from "./format.js";
import { ShowAll } from "./LongText.js";
import type { ToolCall } from "./model.js";
import { PictureView, type Media } from "./Pictures.js";
import { PlainText } from "./PlainText.js";
import type { OpenSession } from "./session.js";
import { Terminal } from "./Terminal.js";
import { inputSummary, questionsOf, type Question } from "./toolInput.js";
import { commandOf, toolKind } from "./toolKind.js";
import { cutBytes, hasCutInput, inputOf, readInput, readWhole, textOfField } from "./wholeTexts.js";

const json_max = 20_000; // characters of an input's field
const read_delay_ms = 400; // changes that only scroll past are not read from the record

export interface EntryView {
  session: OpenSession;
  base: string;
  whole: boolean;
  showRecord(title: string, event: EarshotEvent): void;
  linkTo(event: EarshotEvent): string;
  isOpen(key: string, otherwise: boolean): boolean;
  setOpen(key: string, open: boolean): void;
}

/** A tool's input as a table of its fields. */
function ToolInput({ value, except }: { value: JsonValue; except: string[] }) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return <pre><PlainText text={typeof value === "string" ? value : JSON.stringify(value, null, 2).slice(0, json_max)} /></pre>;
  const fields = Object.entries(value).filter(([name]) => !except.includes(name));
  if (fields.length === 0) return null;
  return <dl class="input">{fields.map(([name, field]) => <><dt>{name}</dt><dd><pre><PlainText text={typeof field === "string" ? field : JSON.stringify(field, null, 2)} /></pre></dd></>)}</dl>;
}

function ToolDuration({ tool }: { tool: ToolCall }) {
  if (tool.end !== undefined) return <span class="duration">{tool.start > 0 ? duration(tool.end - tool.start) : ""}</span>;
  return <span class="duration running">{running(now.value - tool.start)}</span>;
}

const numbered = new WeakMap<ToolCall, FileEdit[]>(); // read from the result's record

/** The call's changes: with line numbers once the result's record was read. */
function useEdits(tool: ToolCall, event: EarshotEvent, session: OpenSession, open: boolean, input: JsonValue | undefined) {
  const [, setRead] = useState(0);
  const { finished } = tool;
  const asked = useMemo(() => editsOfInput(tool.tool, input), [tool, input]);
  const is_patch = toolKind(tool.tool) === "edit";
  const may_read = open && finished?.type === "tool.finished" && finished.outcome === "ok" && (asked.length > 0 || is_patch) && !numbered.has(tool);
  useEffect(() => {
    if (!may_read) return;
    const timer = setTimeout(async () => {
      try {
        const path = asked.length === 1 ? asked[0]!.path : undefined;
        let edits = editsOfRecord(await session.read(finished.stream, finished.cursor), path);
        if (edits.length === 0 && asked.length === 0) edits = editsOfRecord(await session.read(event.stream, event.cursor));
        numbered.set(tool, edits);
        setRead((n) => n + 1);
      } catch { /* as the call asks for it, without line numbers */ }
    }, read_delay_ms);
    return () => clearTimeout(timer);
  }, [may_read]);
  const read = numbered.get(tool);
  return read && !isEmpty(read) ? read : asked;
}

/** The output of a finished call: what a command printed as in a terminal, else as text. */
function Output({ view, finished, command }: { view: EntryView; finished: EarshotEvent | undefined; command: string | undefined }) {
  const [, setLoaded] = useState(0);
  const text = finished ? textOfField(finished, "output") : "";
  const as_terminal = command !== undefined || text.includes("␛[");
  if (!as_terminal && !finished) return null;
  return (
    <div class="output">
      {as_terminal ? <Terminal command={command} output={text} whole={view.whole} /> : text ? <div class="plain"><PlainText text={text} /></div> : null}
      {finished ? <ShowAll size={cutBytes(finished, "output")} load={() => readWhole(view.session, finished, "output").then(() => setLoaded((n) => n + 1))} /> : null}
    </div>
  );
}

function Questions({ questions }: { questions: Question[] }) {
  return <div class="questions">{questions.map(({ text, options }) => <div><p>{text}</p>{options.length > 0 ? <ul>{options.map(({ label, description }) => <li title={description || undefined}>{label}</li>)}</ul> : null}</div>)}</div>;
}

const marks: Record<string, string> = { ok: "✓", error: "✕", denied: "⊘", interrupted: "■", abandoned: "■", open: "▸" };

/** `outcome`: of `tool`, which is updated in place: the changed prop causes a render, as does `opened`, what `view` says. */
export function ToolEntry({ tool, event, view, entryKey, outcome }: { tool: ToolCall; event: EarshotEvent; view: EntryView; entryKey: string; outcome: string | undefined; opened: boolean | undefined }) {
  const input = inputOf(event, tool.input);
  const kind = toolKind(tool.tool);
  const asked = useMemo(() => editsOfInput(tool.tool, input), [tool, input]);
  const changes = !isEmpty(asked);
  const command = changes ? undefined : commandOf(tool.tool, input);
  const questions = useMemo(() => questionsOf(input), [input]);
  const by_default = changes || questions.length > 0 || (view.whole && command !== undefined);
  const [, setToggled] = useState(0);
  const open = view.isOpen(entryKey, by_default);
  const edits = useEdits(tool, event, view.session, open, input);
  const finished = tool.finished?.type === "tool.finished" ? tool.finished : undefined;
  const counts = edits.map(countLines).reduce((sum, { added, removed }) => ({ added: sum.added + added, removed: sum.removed + removed }), { added: 0, removed: 0 });
  const toggle = (now_open: boolean) => {
    if (now_open === open) return;
    view.setOpen(entryKey, now_open);
    setToggled((n) => n + 1);
  };
  return (
    <details class="call" data-outcome={outcome ?? "open"} data-kind={kind} open={open} onToggle={(toggled) => toggle(toggled.currentTarget.open)}>
      <summary data-item={event.cursor}>
        <span class="mark" aria-hidden="true">{marks[outcome ?? "open"] ?? "■"}</span>
        <b>{tool.tool}</b> <span class="input-summary">{inputSummary(tool.input, view.base) || questions[0]?.text}</span>
        {edits.length > 0 ? <Counts {...counts} least={hasCutInput(event) && !numbered.has(tool)} /> : null}
        {tool.background ? <span class="outcome quiet">background</span> : null}
        <span class="outcome">{outcome ?? "running"}</span>
        <ToolDuration tool={tool} key={outcome} />
      </summary>
      {open ? (
        <div class="folded">
          {edits.length > 0 ? <DiffView edits={edits} base={view.base} whole={view.whole} named={kind === "edit"} />
            : questions.length > 0 ? <Questions questions={questions} />
            : input !== undefined ? <ToolInput value={input} except={command !== undefined ? ["command", "cmd"] : []} /> : null}
          {hasCutInput(event) && input !== undefined ? <ShowAll size={cutBytes(event, "input") ?? 0} load={() => readInput(view.session, event, input).then(() => setToggled((n) => n + 1))} /> : null}
          {edits.length > 0 && outcome === "ok" ? null : <Output view={view} finished={finished} command={command} />}
          {(finished?.media as Media[] | undefined)?.map((media, n) => <PictureView session={view.session} event={finished!} media={media} nth={n} />)}
          <p class="more">
            {command !== undefined ? <CopyButton text={async () => commandOf(tool.tool, await readInput(view.session, event, tool.input!)) ?? command} label="Copy command" /> : null}
            {finished?.output && edits.length === 0 ? <CopyButton text={() => readWhole(view.session, finished, "output")} label="Copy output" /> : null}
            <CopyButton text={() => view.linkTo(event)} label="Copy link" />
            <button type="button" onClick={() => view.showRecord("Tool call", event)}>raw call</button>
            {finished ? <button type="button" onClick={() => view.showRecord("Tool result", finished)}>raw result</button> : null}
          </p>
        </div>
      ) : null}
    </details>
  );
}
