// Durations, ages, counts and prices as text, in the same form as the command line: tests/unit/base/displayed.json has cases for both. Pure.

const two = (number: number) => String(number).padStart(2, "0");

/** Rounded: `12ms`, `0.6s`, `31.9s`, `2m05s`, `1h02m`, `3d04h`. Negative durations are `0ms`. */
export function duration(millis: number): string {
  const ms = Math.max(0, Math.trunc(millis));
  if (ms < 100) return `${ms}ms`;
  if (ms < 59_950) return `${(Math.round(ms / 100) / 10).toFixed(1)}s`;
  const s = Math.floor((ms + 500) / 1000);
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86_400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

/** In one unit, rounded down: `5s`, `12m`, `3h`, `2d`. Negative ages are `0s`. */
export function span(millis: number): string {
  const s = Math.max(0, Math.floor(millis / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86_400)}d`;
}

/** A duration that is still running: in whole seconds. */
export const running = (millis: number) => (millis < 60_000 ? span(millis) : duration(Math.floor(millis / 1000) * 1000));

/** `999`, `1.0k`, `12.3k`, `123k`, `4.5M` */
export function tokens(count: number): string {
  if (count < 1000) return String(count);
  const units = ["k", "M", "G", "T"];
  let quotient = count / 1000;
  let power = 0;
  for (; quotient >= 999.5 && power + 1 < units.length; power++) quotient /= 1000;
  return (quotient < 99.95 ? quotient.toFixed(1) : quotient.toFixed(0)) + units[power];
}

const dollars = (fraction: number) => new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", minimumFractionDigits: fraction, maximumFractionDigits: fraction });
const [withCents, withoutCents] = [dollars(2), dollars(0)];
const cents_below = 10_000;

/** `<$0.01`, `$1.20`, `$1,234.50`, `$12,345`; `~$1.20` of which a part is estimated. */
export function cost(usd: number, is_estimate = false): string {
  const text = usd > 0 && usd < 0.01 ? "<$0.01" : (Math.round(usd * 100) < cents_below * 100 ? withCents : withoutCents).format(usd);
  return is_estimate ? `~${text}` : text;
}
