// A command's output as in a terminal.
import { useMemo, useState } from "preact/hooks";
import { terminalLines, type TerminalSpan } from "./ansi.js";
import { chunks } from "./PlainText.js";
import { plural } from "./format.js";

const shown_max = 40; // lines until the user asks for more: the last ones, where a failure is
const lines_max = 4_000;
const length_max = 400_000; // characters that are read; further ones only in the record
const spans_max = 4_000; // of what is shown; a text with more changes of colour is shown without
const span_max = 4_000; // characters; longer spans are divided

const styleOf = ({ color, background }: TerminalSpan) => ({ ...(color && { color }), ...(background && { background }) });
const classOf = (span: TerminalSpan) => [span.bold && "bold", span.dim && "dim", span.italic && "italic", span.underline && "underline", span.strike && "strike"].filter(Boolean).join(" ") || undefined;

function Span({ span, plain }: { span: TerminalSpan; plain: boolean }) {
  if (span.text.length > span_max) return <>{chunks(span.text).map((chunk) => <span class="part">{chunk}</span>)}</>;
  const name = classOf(span);
  return plain || (!name && !span.color && !span.background) ? <>{span.text}</> : <span class={name} style={styleOf(span)}>{span.text}</span>;
}

/** `command`: shown at the prompt. */
export function Terminal({ command, output, whole }: { command?: string | undefined; output: string; whole: boolean }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => terminalLines(output.slice(0, length_max)), [output]);
  const count = all || whole ? lines_max : shown_max;
  const shown = lines.slice(-count);
  const plain = shown.reduce((sum, line) => sum + line.length, 0) > spans_max;
  const is_empty = lines.every((line) => line.length === 0);
  return (
    <div class="terminal">
      {command ? <pre class="command">{command}</pre> : null}
      {shown.length < lines.length ? <p class="earlier"><button type="button" onClick={() => setAll(true)}>{all ? `only the last ${plural(shown.length, "line")} of ${lines.length.toLocaleString()}` : `Show ${plural(lines.length - shown.length, "earlier line")}`}</button></p> : null}
      {is_empty ? null : <pre class="screen">{shown.map((line) => <div>{line.length === 0 ? "\u200b" : line.map((span) => <Span span={span} plain={plain} />)}</div>)}</pre>}
    </div>
  );
}
