// The line of figures above the overview: how many sessions need the user, work, and finished unseen; what they used; how full the limits are.
import { clock, cost, hourMinute, plural, stale } from "./format.js";
import { tokens } from "./quantities.js";
import { go, onlyState } from "./route.js";
import { counts, limits, phaseLabels, snoozed, today, unseenCount, type Phase } from "./rows.js";
import { LimitList } from "./SessionParts.js";

const toggleState = (state: string) => go({ state: onlyState.value === state ? "" : state });

function Figure({ state, count, label, note, title }: { state: string; count: number; label: string; note?: string | undefined; title?: string }) {
  return (
    <button type="button" class="figure chip" data-state={state} data-none={count === 0 ? "" : undefined} title={title} aria-pressed={onlyState.value === state} onClick={() => toggleState(state)}>
      <b>{count.toLocaleString()}</b> <span>{label}{note ? <small> {note}</small> : null}</span>
    </button>
  );
}

const others: Phase[] = ["done", "idle", "unknown", "offline", "ended"];

function Used() {
  const { sessions, cost_usd, is_estimated, without_cost, partial, midnight, tokens: all, output } = today.value;
  if (sessions === 0) return null;
  const known = without_cost < sessions;
  const since = midnight === undefined ? "midnight" : `${clock(midnight)}, midnight of the daemon's time zone`;
  const gaps = [midnight !== undefined && `since ${hourMinute(midnight)}`, known && without_cost > 0 && `${without_cost} without a known cost`, partial > 0 && `${partial} with a part of earlier days`].filter(Boolean).join(", ");
  const title = [
    `What ${plural(sessions, "session")} used since ${since}: ${all.toLocaleString()} tokens, cached ones included; ${output.toLocaleString()} of them written.`,
    is_estimated && "The cost is at least partly estimated.",
    partial > 0 && "Copilot CLI before 1.0.102 records most of its tokens when it ends: of sessions that began earlier, a part may be of an earlier day.",
  ].filter(Boolean).join(" ");
  return (
    <div class="used" title={title}>
      <b>{known ? cost(cost_usd, is_estimated) : tokens(all)}</b>
      <span>{known ? `${tokens(all)} tokens today` : "tokens today"}{gaps ? <small>{gaps}</small> : null}</span>
    </div>
  );
}

export function Summary() {
  const counted = counts.value;
  const away = snoozed.value.length;
  return (
    <div class="summary" data-stale={stale.value ? "" : undefined}>
      <div class="figures" role="group" aria-label="Show only">
        <Figure state="waiting" count={counted.waiting} label={counted.waiting === 1 ? "needs you" : "need you"} note={away > 0 ? `+${away} snoozed` : undefined} />
        <Figure state="working" count={counted.working} label="working" />
        <Figure state="unseen" count={unseenCount.value} label="unseen" title="Finished since you last looked" />
        <span class="chips">
          {others.map((phase) => counted[phase] > 0 || onlyState.value === phase ? (
            <button type="button" class="chip small" data-state={phase} aria-pressed={onlyState.value === phase} onClick={() => toggleState(phase)}>{phaseLabels[phase]} <b>{counted[phase].toLocaleString()}</b></button>
          ) : null)}
        </span>
      </div>
      <Used />
      <LimitList limits={limits.value} />
    </div>
  );
}
