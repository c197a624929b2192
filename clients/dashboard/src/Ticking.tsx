import { ago, ms, now, span } from "./format.js";

/** Since when: ticks by itself, so that what is around it does not. */
export function Ticking({ since, short }: { since: string | undefined; short?: boolean }) {
  const start = ms(since);
  if (start === undefined) return null;
  return <time dateTime={since} title={new Date(start).toLocaleString()}>{short ? ago(since, now.value) : span(Math.floor(Math.max(0, now.value - start) / 1000) * 1000)}</time>;
}
