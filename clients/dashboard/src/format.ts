// Numbers and times as text. Relative times are rendered from `now`.
import { signal } from "@preact/signals";
import { span } from "./quantities.js";

export { duration, running, span, tokens } from "./quantities.js";

/** The clock, updated every second. */
export const wallClock = signal(Date.now());
/** What is shown is older than the clock: the connection is lost. */
export const stale = signal(false);
/** The time that running durations refer to, updated every second: it stands still while what is shown is stale. */
export const now = signal(Date.now());
setInterval(() => {
  wallClock.value = Date.now();
  if (!stale.peek()) now.value = wallClock.value;
}, 1000);

export const ms = (time: string | undefined): number | undefined => {
  const parsed = time === undefined ? NaN : Date.parse(time);
  return Number.isNaN(parsed) ? undefined : parsed;
};

/** Age in one unit; empty if it is not known. */
export function age(time: string | undefined, at: number): string {
  const then = ms(time);
  return then === undefined ? "" : span(at - then);
}

export { cost } from "./quantities.js";

const with_seconds = new Intl.DateTimeFormat([], { hour: "numeric", minute: "2-digit", second: "2-digit" });
const without_seconds = new Intl.DateTimeFormat([], { hour: "numeric", minute: "2-digit" });
export const clock = (millis: number) => with_seconds.format(millis);

export const hourMinute = (millis: number) => without_seconds.format(millis);

const program_names: Record<string, string> = { "claude-code": "Claude Code", codex: "Codex CLI", copilot: "Copilot CLI", pi: "Pi" };

/** Display name of an agent program; empty if it is unknown. */
export const programName = (program: string | undefined) => (program === undefined ? "" : (program_names[program] ?? program));

/** The first word of the name: marks a session. */
export const programMark = (program: string | undefined) => programName(program).split(" ", 1)[0]!;

/** `5h`, `7d`, `90m` */
export function period(minutes: number): string {
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

/** `14:05` today, `Thu, Nov 26, 14:05` on another day, in the user's language. */
export function dayTime(time: number, at: number): string {
  const day = (millis: number) => new Date(millis).toDateString();
  return day(time) === day(at) ? hourMinute(time) : `${new Date(time).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${hourMinute(time)}`;
}

/** Share of the context that is in use, in percent; `undefined` if its size is unknown. */
export const contextShare = ({ context, context_window }: { context?: number; context_window?: number }) =>
  context === undefined || !context_window ? undefined : Math.floor((context / context_window) * 100);

const high_share = 0.8;

/** Above 80 % of the context or of a limit: as an attribute's value. */
export const isHigh = (used: number, full: number | undefined) => (full && used > full * high_share ? "" : undefined);

export const shortModel = (model: string | undefined) => (model ?? "").replace(/^claude-/, "").replace(/-\d{8}$/, "");

export function bytes(count: number): string {
  return count < 1024 ? `${count} B` : count < 1 << 20 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / (1 << 20)).toFixed(1)} MiB`;
}

/** `1 turn`, `2 turns`. */
export const plural = (count: number, noun: string) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
