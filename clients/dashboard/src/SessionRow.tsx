import { isCut, whole, type OpenTool, type SessionFrame } from "../../sdk/src/index.js";
import { contextSamples } from "./connection.js";
import { ago, ms, now, shortModel, span, tokens } from "./format.js";
import { follow, address } from "./route.js";
import { phaseWords, projectOf, titleOf, type Phase } from "./rows.js";
import { Spark } from "./Spark.js";

/** The part of a tool's input that tells most, on one line; a path below `base` without it. */
export function gist(input: unknown, base = ""): string {
  if (isCut(input)) return whole(input).slice(0, 200);
  if (typeof input !== "object" || input === null) return "";
  const fields = input as Record<string, unknown>;
  for (const name of ["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt", "skill"]) {
    const value = fields[name];
    if (typeof value !== "string" && !isCut(value)) continue;
    const text = whole(value).replaceAll(/\s+/g, " ");
    return (base && text.startsWith(base + "/") ? text.slice(base.length + 1) : text).slice(0, 200);
  }
  return "";
}

/** Since when: ticks by itself, so that the row does not. */
export function Ticking({ since, short }: { since: string | undefined; short?: boolean }) {
  const start = ms(since);
  if (start === undefined) return null;
  return <time dateTime={since} title={new Date(start).toLocaleString()}>{short ? ago(since, now.value) : span(Math.floor(Math.max(0, now.value - start) / 1000) * 1000)}</time>;
}

function inHand(frame: SessionFrame): { tool: OpenTool; agents: number } | undefined {
  const inner = frame.agents.flatMap((agent) => agent.tools);
  const tool = frame.tools.find((one) => one.tool !== "Agent" && one.tool !== "Task") ?? inner.at(-1) ?? frame.tools.at(-1);
  return tool && { tool, agents: frame.agents.length };
}

function Tool({ frame, phase }: { frame: SessionFrame; phase: Phase }) {
  const hand = inHand(frame);
  if (hand) {
    return (
      <span class="tool" title={`${hand.tool.tool} ${gist(hand.tool.input)}`}>
        <b>{hand.tool.tool}</b> <span class="gist">{gist(hand.tool.input, frame.project)}</span>
        {hand.agents > 0 ? <span class="agents">{hand.agents} {hand.agents === 1 ? "agent" : "agents"}</span> : null}
        <Ticking since={hand.tool.started} />
      </span>
    );
  }
  if (phase === "working") return <span class="tool quiet">{frame.status.reason === "compaction" ? "compacting" : "thinking"} <Ticking since={frame.last_activity} /></span>;
  return <span class="tool quiet">{frame.status.reason === "background" ? "a shell still runs" : frame.turn.outcome && frame.turn.outcome !== "completed" ? frame.turn.outcome : ""}</span>;
}

export function Todos({ frame }: { frame: Pick<SessionFrame, "todos"> }) {
  const all = frame.todos.length;
  if (all === 0) return <span class="todos" />;
  const done = frame.todos.filter((todo) => todo.status === "completed").length;
  return (
    <span class="todos" title={`${done} of ${all} things to do are done`}>
      <progress value={done} max={all} aria-label="things to do" /> {done}/{all}
    </span>
  );
}

/** Props are compared by the signals' integration: what changes must be another object. */
export function SessionRow({ frame, id, phase, where }: { frame: SessionFrame; id: string; phase: Phase; where: boolean }) {
  const target = { session: frame.session, host: frame.host };
  const said = phase === "waiting" ? (frame.status.detail ?? frame.status.reason ?? "") : whole(frame.last_text);
  const context = frame.usage.context;
  return (
    <a class="row" data-item={id} data-state={frame.status.state} data-phase={phase} href={address(target)} onClick={follow(target)}>
      <span class="status" data-state={frame.status.state}>{phase === "waiting" ? "waiting" : phaseWords[phase]}</span>
      <span class="title">{titleOf(frame)}</span>
      <Tool frame={frame} phase={phase} />
      <Todos frame={frame} />
      <span class="context" title={context === undefined ? "" : `${context.toLocaleString()} tokens in the context, ${frame.usage.output.toLocaleString()} written in all`}>
        <Spark samples={contextSamples(id)} /> {context === undefined ? "" : tokens(context)}
      </span>
      <span class="model">{shortModel(frame.model)}</span>
      <span class="turn" title={`turn ${frame.turn.number}`}>{frame.turn.number > 0 ? `#${frame.turn.number}` : ""}</span>
      <span class="age"><Ticking since={phase === "waiting" || phase === "working" ? (frame.status.since ?? frame.turn.started) : (frame.last_activity ?? frame.status.since)} short /></span>
      <span class="said">{where ? <span class="where">{projectOf(frame)}</span> : null}{said.replaceAll(/\s+/g, " ")}</span>
    </a>
  );
}
