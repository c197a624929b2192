import { isCut, whole, type OpenTool, type SessionFrame } from "../../sdk/src/index.js";
import type { Phase } from "./rows.js";
import { Ticking } from "./Ticking.js";

const gist_max = 200; // characters: more than a line shows

/** The part of a tool's input that tells most, on one line; a path below `base` without it. */
export function gist(input: unknown, base = ""): string {
  if (isCut(input)) return whole(input).slice(0, gist_max);
  if (typeof input !== "object" || input === null) return "";
  const fields = input as Record<string, unknown>;
  for (const name of ["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt", "skill"]) {
    const value = fields[name];
    if (typeof value !== "string" && !isCut(value)) continue;
    const text = whole(value).slice(0, 4 * gist_max).replaceAll(/\s+/g, " ");
    return (base && text.startsWith(base + "/") ? text.slice(base.length + 1) : text).slice(0, gist_max);
  }
  return "";
}

/** Of several open calls the one that tells most: a subagent's own rather than the call of the subagent. */
export function inHand(frame: SessionFrame): { tool: OpenTool; agents: number } | undefined {
  const inner = frame.agents.flatMap((agent) => agent.tools);
  const tool = frame.tools.find((one) => one.tool !== "Agent" && one.tool !== "Task") ?? inner.at(-1) ?? frame.tools.at(-1);
  return tool && { tool, agents: frame.agents.length };
}

function without(frame: SessionFrame, phase: Phase) {
  const { status, turn, last_activity } = frame;
  if (phase === "working") return <>{status.reason === "compaction" ? "compacting" : "thinking"} <Ticking since={last_activity} /></>;
  if (status.reason === "background") return "a shell still runs";
  return turn.outcome && turn.outcome !== "completed" ? turn.outcome : "";
}

/** The tool in hand, and for how long. */
export function Tool({ frame, phase, hidden }: { frame: SessionFrame; phase: Phase; hidden?: boolean }) {
  const hand = inHand(frame);
  if (!hand) return <span class="tool quiet" aria-hidden={hidden}>{without(frame, phase)}</span>;
  return (
    <span class="tool" aria-hidden={hidden} title={`${hand.tool.tool} ${gist(hand.tool.input)}`}>
      <b>{hand.tool.tool}</b> <span class="gist">{gist(hand.tool.input, frame.project)}</span>
      {hand.agents > 0 ? <span class="agents">{hand.agents} {hand.agents === 1 ? "agent" : "agents"}</span> : null}
      {phase === "away" ? null : <Ticking since={hand.tool.started} />}
    </span>
  );
}
