// The sessions that need the user, as cards: what is asked in full, since when, and what a page can do about it.
import { useEffect, useRef, useState } from "preact/hooks";
import { waitOf, type JsonValue, type SessionFrame, type SessionState } from "../../sdk/src/index.js";
import { copied, copy, loadWholeCall, resumeCommand } from "./actions.js";
import { plural, programMark, wallClock } from "./format.js";
import { RowContext, RowCost } from "./Numbers.js";
import { span } from "./quantities.js";
import { requestOf, type Request } from "./request.js";
import { pathOf } from "./resume.js";
import { address, follow } from "./route.js";
import { cards, isTeam, nameOf, projectOf, showsPrograms, sinceOf, snoozed, titleOf, waitingMatches } from "./rows.js";
import { Elapsed, ProgramMark, TodoProgress } from "./SessionParts.js";
import { snooze, snoozeChoices, snoozeOf, snoozing, wake } from "./snooze.js";

const reasons: Record<string, string> = { permission: "Permission", question: "Question", plan: "Plan to approve", auth: "Sign-in", dialog: "Dialog" };
export const reasonText = ({ status }: SessionFrame) => reasons[status.reason ?? ""] ?? status.reason ?? "Waiting";

const change_scrolls = 24; // lines: as command_scrolls

function Change({ change, change_rest }: Pick<Request, "change" | "change_rest">) {
  if (change.length === 0) return null;
  return (
    <div>
      <pre class="change" {...(change.length > change_scrolls && { tabIndex: 0, role: "group", "aria-label": "Change" })}>
        {change.map(({ kind, text }) => (kind === "-" ? <del>{`− ${text}\n`}</del> : kind === "+" ? <ins>{`+ ${text}\n`}</ins> : <span>{`  ${text}\n`}</span>))}
      </pre>
      {change_rest > 0 ? <p class="quiet">{plural(change_rest, "more line")}</p> : null}
    </div>
  );
}

const command_scrolls = 400; // characters: a longer command may need scrolling, also by keyboard

function RequestText({ request }: { request: Request }) {
  const { call, command, path, questions, plan, plan_rest, description, text } = request;
  return (
    <div class="asked">
      {description ? <p class="purpose">{description}</p> : null}
      {command ? <pre class="command" {...(command.length > command_scrolls && { tabIndex: 0, role: "group", "aria-label": "Command" })}><code>{command}</code></pre> : null}
      {path ? <p class="path"><b>{call?.tool}</b> <code>{path}</code></p> : null}
      <Change {...request} />
      {questions.map((question) => (
        <div class="question">
          <p>{question.text}</p>
          {question.options.length > 0 ? <ol>{question.options.map(({ label, description }) => <li><b>{label}</b>{description ? <span> {description}</span> : null}</li>)}</ol> : null}
        </div>
      ))}
      {plan.length > 0 ? <div class="plan"><p>{plan.join("\n")}</p>{plan_rest > 0 ? <p class="quiet">{plural(plan_rest, "more line")}</p> : null}</div> : null}
      {text ? <p class="detail">{text}</p> : null}
    </div>
  );
}

/** The buttons of a card. Without a command or a path the button is absent. */
function Actions({ session }: { session: SessionState }) {
  const { frame, key } = session;
  const target = { session: frame.session, host: frame.host };
  const open = snoozing.value === key;
  const choices = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (open) choices.current?.querySelector("button")?.focus();
  }, [open]);
  const label = (action: "resume" | "path", text: string) => (copied.value === `${action} ${key}` ? "Copied" : copied.value === `failed ${action} ${key}` ? "Not copied" : text);
  const command = resumeCommand(frame);
  return (
    <div class="actions">
      {command ? <button type="button" data-action="resume" class="primary" title={command} aria-label={label("resume", "Copy resume command")} onClick={() => void copy(frame, "resume")}>{label("resume", "Copy resume")}</button> : null}
      {pathOf(frame) ? <button type="button" data-action="path" title={pathOf(frame)} onClick={() => void copy(frame, "path")}>{label("path", "Copy path")}</button> : null}
      <a class="button" href={address(target)} onClick={follow(target)}>Open</a>
      <span class="snooze" ref={choices}>
        {open ? snoozeChoices.map((choice) => <button type="button" onClick={() => {
          snoozing.value = "";
          snooze(session, choice.minutes);
        }}>{choice.label}</button>) : null}
        <button type="button" data-action="snooze" aria-expanded={open} onClick={() => (snoozing.value = open ? "" : key)}>{open ? "Cancel" : "Snooze"}</button>
      </span>
    </div>
  );
}

/** The session's place in words: project, host, program. */
const placeOf = (frame: SessionFrame) => `in ${projectOf(frame)}${isTeam.value ? ` on ${frame.host}` : ""}`;

function accessibleName(frame: SessionFrame): string {
  return [`needs you, ${frame.status.reason ?? "waiting"}`, `${showsPrograms.value && frame.program ? `${programMark(frame.program)} ` : ""}${titleOf(frame)}`, placeOf(frame), frame.status.detail].filter(Boolean).join(". ");
}

function Card({ session, frame }: { session: SessionState; frame: SessionFrame }) {
  const [whole, setWhole] = useState<{ call: string; input: JsonValue } | undefined>(undefined);
  const [failed, setFailed] = useState(false);
  const target = { session: frame.session, host: frame.host };
  const [unfolded, setUnfolded] = useState("");
  const wait = waitOf(frame); // the next one is folded again
  const request = requestOf(frame, whole, unfolded === wait);
  const showAll = () => {
    setUnfolded(wait);
    if (!request.is_cut) return;
    const call = request.call!.call;
    loadWholeCall(frame, call).then((input) => setWhole({ call, input }), () => setFailed(true));
  };
  return (
    <article class="card row" data-state="waiting" data-phase="waiting">
      <header>
        <span class="status" data-state="waiting" aria-hidden="true">{reasonText(frame)}</span>
        <span class="age">waiting <Elapsed since={sinceOf(frame)} offset_ms={frame.clock_offset_ms} /></span>
      </header>
      <h3 dir="auto"><a class="title" data-item={session.key} data-card="" href={address(target)} aria-label={accessibleName(frame)} onClick={follow(target)}><ProgramMark program={frame.program} />{titleOf(frame)}</a></h3>
      <p class="place"><span class="project" title={projectOf(frame)}>{nameOf(projectOf(frame))}</span>{isTeam.value ? <span class="host">{frame.host}</span> : null}<TodoProgress frame={frame} /><RowContext usage={frame.usage} /><RowCost usage={frame.usage} /></p>
      <RequestText request={request} />
      {unfolded !== wait && (request.change_rest > 0 || request.plan_rest > 0) || request.is_cut && !failed ? <button type="button" class="link" onClick={showAll}>Show all of it</button> : null}
      {failed ? <p class="quiet">The rest is on the session's page.</p> : null}
      <Actions session={session} />
    </article>
  );
}

function SnoozedLine() {
  const [open, setOpen] = useState(false);
  const all = snoozed.value;
  if (all.length === 0) return null;
  const at = wallClock.value;
  return (
    <div class="snoozed">
      <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>{all.length} snoozed</button>
      {open ? (
        <ul>
          {all.map((session) => {
            const until = snoozeOf(session, at)?.until;
            return (
              <li>
                <a dir="auto" href={address({ session: session.frame.session, host: session.frame.host })} onClick={follow({ session: session.frame.session, host: session.frame.host })}>{titleOf(session.frame)}</a>
                <span class="quiet">{until ? `for ${span(until - at + 999)}` : "until it changes"}</span>
                <button type="button" onClick={() => wake(session.key)}>Show now</button>
              </li>
            );
          })}
        </ul>
      ) : null}
    </div>
  );
}

export function Cards() {
  const all = cards.value;
  const total = waitingMatches.value;
  if (all.length === 0) return <SnoozedLine />;
  return (
    <section class="needs-you" aria-label="Needs you">
      <div class="group" data-waiting=""><h2>Needs you</h2> <span class="count">{total > all.length ? `the longest ${all.length} of ${total.toLocaleString()} waits` : total > 1 ? "the longest wait first" : ""}</span></div>
      <ul class="cards" data-count={Math.min(all.length, 3)}>{all.map((session) => <li key={session.key}><Card session={session} frame={session.frame} /></li>)}</ul>
      <SnoozedLine />
    </section>
  );
}
