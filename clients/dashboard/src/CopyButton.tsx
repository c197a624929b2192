import { useEffect, useRef, useState } from "preact/hooks";

const done_ms = 2000;

/** Returns false if the browser did not allow it. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* http on another machine than this one has no clipboard */ }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  const focused = document.activeElement as HTMLElement | null;
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}

/** Copies a text; says so on the button and to screen readers. `short`: the visible part of the label. */
export function CopyButton({ text, label, short }: { text: () => string | Promise<string>; label: string; short?: string }) {
  const [result, setResult] = useState<"" | "Copied" | "Not copied">("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const run = async () => {
    let copied = false;
    try {
      copied = await copy(await text());
    } catch { /* the daemon could not read the text */ }
    setResult(copied ? "Copied" : "Not copied");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setResult(""), done_ms);
  };
  return <button type="button" class="copy" aria-label={short ? label : undefined} title={short ? label : undefined} data-result={result || undefined} onClick={() => void run()}>{result || (short ?? label)}<span class="visually-hidden" role="status">{result}</span></button>;
}
