import { useEffect, useRef, useState } from "preact/hooks";
import { writeClipboard } from "./clipboard.js";

const done_ms = 2000;

/** Copies a text; says so on the button and to screen readers. `short`: the visible part of the label. */
export function CopyButton({ text, label, short }: { text: () => string | Promise<string>; label: string; short?: string }) {
  const [result, setResult] = useState<"" | "Copied" | "Not copied">("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const run = async () => {
    let copied = false;
    try {
      copied = await writeClipboard(await text());
    } catch { /* the daemon could not read the text */ }
    setResult(copied ? "Copied" : "Not copied");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setResult(""), done_ms);
  };
  return <button type="button" class="copy" aria-label={short ? label : undefined} title={short ? label : undefined} data-result={result || undefined} onClick={() => void run()}>{result || (short ?? label)}<span class="visually-hidden" role="status">{result}</span></button>;
}
