import { useEffect, useMemo } from "preact/hooks";
import { isOffline, type SessionFrame } from "../../sdk/src/index.js";
import { Conversation } from "./Conversation.js";
import { programName, shortModel, tokens } from "./format.js";
import { openSession, type OpenSession } from "./session.js";
import { projectOf, titleOf } from "./rows.js";
import { follow, address } from "./route.js";
import { Elapsed, TodoProgress } from "./SessionParts.js";
import { Timeline } from "./Timeline.js";
import { UsageChart } from "./UsageChart.js";

const files_max = 200; // the newest

function Head({ frame }: { frame: SessionFrame }) {
  const { status, usage, turn } = frame;
  return (
    <header class="head" data-state={status.state}>
      <h2>{titleOf(frame)}</h2>
      <p class="facts">
        {isOffline(frame) ? <span class="offline">host offline{status.since ? <>, last seen <Elapsed since={status.since} /> ago</> : ""}</span> : (
          <>
            <span class="status" data-state={status.state}>{status.state}{status.reason ? `: ${status.reason}` : ""}</span>
            <Elapsed since={status.since ?? turn.started} />
          </>
        )}
        <span>{projectOf(frame)}</span>
        {frame.git_branch ? <span>{frame.git_branch}</span> : null}
        <span>{frame.host}</span>
        {frame.program ? <span>{programName(frame.program)}</span> : null}
        <span title={frame.model}>{shortModel(frame.model)}</span>
        {frame.permission_mode ? <span>{frame.permission_mode}</span> : null}
        <span>turn {turn.number}</span>
        <span title="output tokens, and tokens in the context">{tokens(usage.output)} out{usage.context === undefined ? "" : `, ${tokens(usage.context)} context`}</span>
        {usage.cost_usd === undefined ? null : <span>${usage.cost_usd.toFixed(2)}</span>}
      </p>
      {status.state === "waiting" ? <p class="request">{status.detail ?? status.reason}</p> : null}
    </header>
  );
}

function TodoList({ frame }: { frame: SessionFrame }) {
  if (frame.todos.length === 0) return null;
  return (
    <section>
      <h3>To do <TodoProgress frame={frame} /></h3>
      <ul class="todo">
        {frame.todos.map((todo) => <li data-status={todo.status}><span class="visually-hidden">{todo.status}: </span>{todo.status === "in_progress" ? (todo.active_form ?? todo.content) : todo.content}</li>)}
      </ul>
    </section>
  );
}

function Files({ session, frame }: { session: OpenSession; frame: SessionFrame; version: number }) {
  const files = [...session.model.files.values()].sort((a, b) => Number(b.changed > 0) - Number(a.changed > 0) || b.last - a.last).slice(0, files_max);
  if (files.length === 0) return null;
  const base = (frame.project ?? "") + "/";
  return (
    <section>
      <h3>Files</h3>
      <ul class="files">
        {files.map(({ path, changed, read }) => (
          <li data-changed={changed > 0 ? "" : undefined} title={path}><span class="path">{path.startsWith(base) ? path.slice(base.length) : path}</span><span class="count">{changed > 0 ? `${changed} changed` : `${read} read`}</span></li>
        ))}
      </ul>
    </section>
  );
}

export function SessionPage(props: { session: string; host: string }) {
  const session = useMemo(() => openSession(props.session, props.host), []);
  useEffect(() => () => session.close(), []);
  void session.version.value;
  const frame = session.frame.value;
  const back = { session: "", host: "" };
  return (
    <div class="session" data-offline={frame && isOffline(frame) ? "" : undefined}>
      <p class="back"><a href={address(back)} onClick={follow(back)}>← All sessions</a></p>
      {frame ? (
        <>
          <Head frame={frame} />
          <Timeline model={session.model} base={frame.project ?? ""} version={session.version.value} open={frame.status.state === "working" || frame.status.state === "waiting"} />
          <div class="columns">
            <Conversation session={session} version={session.version.value} />
            <aside>
              <TodoList frame={frame} />
              <UsageChart model={session.model} version={session.version.value} />
              <Files session={session} frame={frame} version={session.version.value} />
            </aside>
          </div>
        </>
      ) : session.missing.value ? <div class="empty"><p>This session does not exist. Its transcript may have been removed.</p></div> : null}
    </div>
  );
}
