// Numbers and times as text. Relative times are rendered from `now`.
import { signal } from "@preact/signals";

/** The current time, updated every second. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);

export const ms = (time: string | undefined): number | undefined => {
  const parsed = time === undefined ? NaN : Date.parse(time);
  return Number.isNaN(parsed) ? undefined : parsed;
};

export function duration(millis: number): string {
  const s = Math.max(0, Math.floor(millis / 1000));
  if (millis < 1000 && millis > 0) return `${Math.round(millis)} ms`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, "0")} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** In one unit: `5 s`, `12 m`, `3 h`, `2 d`. */
export function span(millis: number): string {
  const s = Math.max(0, Math.floor(millis / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

/** Age in one unit; empty if it is not known. */
export function age(time: string | undefined, at: number): string {
  const then = ms(time);
  return then === undefined ? "" : span(at - then);
}

/** `<$0.01`, `$1.20`, `$1,234` */
export function cost(usd: number): string {
  if (usd > 0 && usd < 0.01) return "<$0.01";
  return usd < 1000 ? `$${usd.toFixed(2)}` : `$${Math.round(usd).toLocaleString()}`;
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

const with_seconds = new Intl.DateTimeFormat([], { hour: "numeric", minute: "2-digit", second: "2-digit" });
const without_seconds = new Intl.DateTimeFormat([], { hour: "numeric", minute: "2-digit" });
export const clock = (millis: number) => with_seconds.format(millis);

export const hourMinute = (millis: number) => without_seconds.format(millis);

const program_names: Record<string, string> = { "claude-code": "Claude Code", codex: "Codex CLI", copilot: "Copilot CLI", pi: "Pi" };

/** Display name of an agent program; empty if it is unknown. */
export const programName = (program: string | undefined) => (program === undefined ? "" : (program_names[program] ?? program));

/** The first word of the name: marks a session. */
export const programMark = (program: string | undefined) => programName(program).split(" ", 1)[0]!;

/** `5 h`, `7 d`, `90 m` */
export function period(minutes: number): string {
  if (minutes % 1440 === 0) return `${minutes / 1440} d`;
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${minutes} m`;
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
