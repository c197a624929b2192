// A block of code, coloured once the highlighter is loaded.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { CopyButton } from "./CopyButton.js";
import type { CodeSpan } from "./highlight.js";
import { PlainText } from "./PlainText.js";

const length_max = 20_000; // characters; longer code is not coloured

type Highlight = typeof import("./highlight.js").highlight;
/** `undefined`: not loaded. */
export const highlighter = signal<Highlight | undefined>(undefined);
let loading: Promise<void> | undefined;

/** Resolves when code is coloured, or cannot be. */
export function loadHighlighter(): Promise<void> {
  return (loading ??= import("./highlight.js").then(
    ({ highlight }) => void (highlighter.value = highlight),
    () => void (loading = undefined), // the daemon is away: code stays plain until the next block is shown
  ));
}

/** Coloured text, as elements: a scope is data, and no HTML is made. */
export const Spans = ({ spans }: { spans: readonly CodeSpan[] }) => <>{spans.map(({ text, scope }) => (scope ? <span data-scope={scope}>{text}</span> : text))}</>;

export function Code({ text, language }: { text: string; language: string }) {
  const highlight = highlighter.value;
  const can = language !== "" && text.length <= length_max;
  useEffect(() => {
    if (can) void loadHighlighter();
  }, [can]);
  const spans = useMemo(() => (can && highlight ? highlight(text, language.toLowerCase()) : undefined), [text, language, highlight]);
  return (
    <div class="code">
      <p class="code-head"><span>{language}</span><CopyButton text={() => text} label="Copy code" short="Copy" /></p>
      {spans ? <pre data-coloured=""><code><Spans spans={spans} /></code></pre> : <pre><PlainText text={text} /></pre>}
    </div>
  );
}
