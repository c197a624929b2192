import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { accountLimits, isOffline, sessionKey, type SessionFrame } from "../../sdk/src/index.js";
import { resumeCommand } from "./actions.js";
import { ContextChart, CostChart, TimeChart } from "./Charts.js";
import { loadHighlighter } from "./Code.js";
import { Conversation, type ConversationHandle } from "./Conversation.js";
import { currentFrame, post, sessions, visible } from "./connection.js";
import { CopyButton } from "./CopyButton.js";
import { htmlOf, saveFile } from "./exportPage.js";
import { Files } from "./Files.js";
import { dayTime, ms, now, programName, shortModel, tokens } from "./format.js";
import { Gauges } from "./Numbers.js";
import type { Entry } from "./model.js";
import { openSession } from "./session.js";
import { projectOf, titleOf, unseen, waiting } from "./rows.js";
import { follow, address, openPlace, openView } from "./route.js";
import { Elapsed, ProgramMark, TodoProgress, scrollable } from "./SessionParts.js";
import { Timeline } from "./Timeline.js";

/** `current`: the overview's frame, which states estimates and times anew while the session works. */
function Head({ frame, current }: { frame: SessionFrame; current: SessionFrame }) {
  const { status, usage, turn } = frame;
  return (
    <header class="head" data-state={status.state}>
      <h2 dir="auto" title={titleOf(frame)}><ProgramMark program={frame.program} />{titleOf(frame)}</h2>
      <p class="facts">
        {isOffline(frame) ? <span class="offline">host offline{status.since ? <>, last seen <Elapsed since={status.since} /> ago, {dayTime(ms(status.since)!, now.value)}</> : ""}</span> : (
          <>
            <span class="status" data-state={status.state}>{status.state}{status.reason ? `: ${status.reason}` : ""}</span>
            <Elapsed since={status.since ?? turn.started} offset_ms={frame.clock_offset_ms} />
          </>
        )}
        <span>{projectOf(frame)}</span>
        {frame.git_branch ? <span>{frame.git_branch}</span> : null}
        <span>{frame.host}</span>
        {frame.program ? <span title={[frame.version, frame.originator, frame.source].filter(Boolean).join(", ")}>{programName(frame.program)}</span> : null}
        <span title={frame.model}>{shortModel(frame.model)}</span>
        {frame.permission_mode ? <span title="permission mode">{frame.permission_mode}</span> : null}
        {frame.sandbox ? <span title="sandbox">{frame.sandbox}</span> : null}
        <span>turn {turn.number}</span>
        <span title={`${usage.output.toLocaleString()} output tokens`}>{tokens(usage.output)} out</span>
      </p>
      {status.state === "waiting" ? <p class="request">{status.detail ?? status.reason}</p> : null}
      {status.state === "working" && status.detail ? <p class="note">{status.detail}</p> : null}
      <Gauges frame={current} limits={limitsOf(frame)} />
    </header>
  );
}

/** The limits of the account that this session uses: another session may have stated them later. */
function limitsOf(frame: SessionFrame) {
  const others = sessions.value.map((session) => session.frame).filter(({ host, program }) => host === frame.host && program === frame.program);
  return accountLimits([frame, ...others], Date.now());
}

/** Reports each finished turn to the daemon as seen, once, while the page is visible. */
function useSeen(frame: SessionFrame | undefined) {
  const reported = useRef("");
  const is_visible = visible.value;
  useEffect(() => {
    if (!is_visible) reported.current = ""; // the user may have looked elsewhere meanwhile
    if (!is_visible || !frame?.unseen) return;
    const turn = `${frame.turn.number} ${frame.turn.finished}`;
    if (reported.current === turn) return;
    reported.current = turn;
    void post("/v1/seen", { session: frame.session }).then((status) => {
      if (status === 0) reported.current = ""; // repeated with the frame that follows a reconnect
    });
  }, [frame, is_visible]);
}

/** What the other sessions want of the user. */
function Others({ except }: { except: string }) {
  const [needs_you, finished] = [waiting.value, unseen.value].map((all) => all.filter(({ key }) => key !== except).length) as [number, number];
  const texts = [needs_you > 0 && `${needs_you} ${needs_you === 1 ? "needs" : "need"} you`, finished > 0 && `${finished} unseen`].filter(Boolean);
  return texts.length > 0 ? <span class="count">{texts.join(", ")}</span> : null;
}

function TodoList({ frame }: { frame: SessionFrame }) {
  if (frame.todos.length === 0) return null;
  return (
    <section {...scrollable("To do", frame.todos.length)}>
      <h3>To do <TodoProgress frame={frame} /></h3>
      <ul class="todo">
        {frame.todos.map((todo) => <li data-status={todo.status}><span class="visually-hidden">{todo.status}: </span>{todo.status === "in_progress" ? (todo.active_form ?? todo.content) : todo.content}</li>)}
      </ul>
    </section>
  );
}

/** Copy, print and save. */
function Actions({ frame, print, save }: { frame: SessionFrame; print: () => void; save: () => Promise<void> }) {
  const [saving, setSaving] = useState(false);
  const resume = resumeCommand(frame);
  return (
    <div class="page-actions" role="group" aria-label="This session">
      {resume ? <CopyButton text={() => resume} label="Copy resume command" /> : null}
      <CopyButton text={() => new URL(address({ session: frame.session, host: frame.host, at: "" }), location.href).href} label="Copy link" />
      <button type="button" data-action="print" onClick={print}>Print</button>
      <button type="button" disabled={saving} onClick={() => (setSaving(true), void save().finally(() => setSaving(false)))}>{saving ? "Saving…" : "Save HTML"}</button>
    </div>
  );
}

const settle_ms_max = 5_000; // pictures that are not drawn by then are left out

const twoFrames = () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())));

/** Waits until all pictures are drawn. */
async function settled() {
  const end_ms = performance.now() + settle_ms_max;
  do await twoFrames();
  while (document.querySelector(".entries [data-loading]") && performance.now() < end_ms);
}

/** Renders the whole conversation while `action` runs. */
function useWhole(): [boolean, (action: () => void | Promise<void>) => Promise<void>] {
  const [whole, setWhole] = useState(false);
  const run = async (action: () => void | Promise<void>) => {
    const at = scrollY;
    await loadHighlighter();
    setWhole(true);
    await settled();
    try {
      await action();
    } finally {
      setWhole(false);
      await twoFrames();
      scrollTo(0, at);
    }
  };
  return [whole, run];
}

export function SessionPage(props: { session: string; host: string }) {
  const session = useMemo(() => openSession(props.session, props.host, openPlace.peek()), []);
  const page = useRef<HTMLDivElement>(null);
  const conversation = useRef<ConversationHandle | undefined>(undefined);
  const [whole, runWhole] = useWhole();
  useEffect(() => () => session.close(), []);
  useLayoutEffect(() => { // an attribute: with `:has()` each change of the overview's rows would restyle the whole page
    document.documentElement.dataset.view = "session";
    return () => void delete document.documentElement.dataset.view;
  }, []);
  void session.version.value;
  const { changes } = session.model; // a part is rendered again only when one of its properties is another
  const frame = session.frame.value;
  const key = frame ? sessionKey(frame.host, frame.session) : "";
  const current = currentFrame(key) ?? frame;
  useSeen(current);
  const print = () => void runWhole(() => window.print());
  const save = () => runWhole(async () => saveFile(`earshot-${frame!.session}.html`, await htmlOf(page.current!, titleOf(frame!))));
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => { // the browser would print only what is rendered
      if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      print();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const show = (entry: Entry) => conversation.current?.show(entry);
  const back = { session: "", host: "", at: "" };
  return (
    <div ref={page} class="session" data-offline={frame && isOffline(frame) ? "" : undefined}>
      <div class="page-bar"><p class="back"><a href={address(back)} onClick={follow(back)}>← {openView.value ? "History" : "All sessions"}</a><Others except={key} /></p>{frame ? <Actions frame={frame} print={print} save={save} /> : null}</div>
      {frame && current ? (
        <>
          <Head frame={frame} current={current} />
          <Timeline model={session.model} changes={changes} base={frame.project ?? ""} open={frame.status.state === "working" || frame.status.state === "waiting"} show={show} />
          <div class="columns">
            <Conversation session={session} changes={changes} whole={whole} handle={conversation} />
            <aside tabIndex={0} aria-label="Summary of the session">
              <TodoList frame={frame} />
              <TimeChart frame={current} />
              <ContextChart model={session.model} changes={changes} frame={current} />
              <CostChart model={session.model} changes={changes} frame={current} show={show} />
              <Files model={session.model} changes={changes} base={frame.project ?? ""} show={show} />
            </aside>
          </div>
        </>
      ) : session.missing.value ? <div class="empty"><p>This session does not exist. Its transcript may have been removed.</p></div> : null}
    </div>
  );
}
