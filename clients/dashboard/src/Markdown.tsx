// Markdown as elements. No HTML is made of a text: the parser's tokens become elements of the kinds below, HTML in the text is shown as text,
// pictures are not loaded, and links lead to http, https and mailto only.
import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Code } from "./Code.js";
import { PlainText } from "./PlainText.js";

const length_max = 16_000; // characters that are read as Markdown; the rest is shown as text
const nodes_max = 3_000; // elements of one text
const depth_max = 12; // of lists, quotes and emphasis in each other

class TooComplex extends Error {}

const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };
const decode = (text: string) => text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => entities[entity]!);

/** The address if a link may lead there. */
export function safeAddress(href: string): string | undefined {
  try {
    const url = new URL(href); // an address without a scheme is none: it would lead into this page
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  const address = safeAddress(href);
  return address ? <a href={address} title={address} target="_blank" rel="noopener noreferrer">{children}</a> : <span class="no-link" title={`not a link: ${href.slice(0, 200)}`}>{children}</span>;
}

/** `budget.nodes`: elements that may still be made. */
function render(tokens: readonly Token[] | undefined, budget: { nodes: number }, depth: number): ComponentChildren[] {
  if (depth > depth_max) throw new TooComplex();
  const children = (token: { tokens?: Token[] | undefined }) => render(token.tokens, budget, depth + 1);
  return (tokens ?? []).map((any_token): ComponentChildren => {
    if (--budget.nodes < 0) throw new TooComplex();
    const token = any_token as MarkedToken;
    switch (token.type) {
      case "space": case "def": return null;
      case "hr": return <hr />;
      case "br": return <br />;
      case "heading": return <h4 data-level={token.depth}>{children(token)}</h4>;
      case "paragraph": return <p>{children(token)}</p>;
      case "blockquote": return <blockquote>{children(token)}</blockquote>;
      case "code": return <Code text={token.text} language={token.lang?.split(/[\s,{]/, 1)[0] ?? ""} />;
      case "codespan": return <code>{token.text}</code>;
      case "strong": return <strong>{children(token)}</strong>;
      case "em": return <em>{children(token)}</em>;
      case "del": return <del>{children(token)}</del>;
      case "link": return <Link href={token.href}>{children(token)}</Link>;
      case "image": return <Link href={token.href}>[image: {token.text || token.href.slice(0, 80)}]</Link>;
      case "html": return token.block ? <p class="literal">{token.text.trimEnd()}</p> : token.text;
      case "escape": return token.text;
      case "checkbox": return <span class="checkbox" role="img" aria-label={token.checked ? "done" : "not done"}>{token.checked ? "☑" : "☐"} </span>;
      case "text": return "tokens" in token && token.tokens ? children(token) : decode(token.text);
      case "list": {
        const items = token.items.map((item) => <li data-task={item.task ? "" : undefined}>{children(item)}</li>);
        budget.nodes -= items.length;
        return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
      }
      case "table": return <Table token={token} cell={(cell) => { budget.nodes -= 1; return children(cell); }} />;
      default: return (any_token as { raw: string }).raw;
    }
  });
}

function Table({ token, cell }: { token: Tokens.Table; cell: (cell: Tokens.TableCell) => ComponentChildren }): VNode {
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead><tr>{token.header.map((header) => <th scope="col" data-align={header.align ?? undefined}>{cell(header)}</th>)}</tr></thead>
        <tbody>{token.rows.map((row) => <tr>{row.map((data) => <td data-align={data.align ?? undefined}>{cell(data)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** `undefined` if the text is too complex to be shown as Markdown. */
function elements(text: string): ComponentChildren[] | undefined {
  const budget = { nodes: nodes_max };
  try {
    // A table's cells are rendered here, so that their elements count.
    return render(lexer(text, { gfm: true }), budget, 0).map((child) => (isTable(child) ? Table((child as VNode<Parameters<typeof Table>[0]>).props) : child));
  } catch (error) {
    if (error instanceof TooComplex || error instanceof RangeError) return undefined; // RangeError: nested so deeply that the parser's stack is full
    throw error;
  }
}
const isTable = (child: ComponentChildren) => typeof child === "object" && child !== null && "type" in child && child.type === Table;

/** Cuts at the end of a paragraph or line, if there is one in the second half. */
function cut(text: string): number {
  if (text.length <= length_max) return text.length;
  for (const end of ["\n\n", "\n"]) {
    const at = text.lastIndexOf(end, length_max);
    if (at > length_max / 2) return at + end.length;
  }
  return length_max;
}

export function Markdown({ text }: { text: string }) {
  const [as_text, setAsText] = useState(false);
  const end = cut(text);
  const content = useMemo(() => elements(text.slice(0, end)), [text]);
  if (!content) return <><p class="note">This text is nested too deeply or too large to be shown as Markdown.</p><PlainText text={text} /></>;
  if (as_text) return <><PlainText text={text} /><p class="note"><button type="button" onClick={() => setAsText(false)}>Show as Markdown</button></p></>;
  return (
    <>
      <div class="markdown">{content}</div>
      {end < text.length ? <p class="note">{(text.length - end).toLocaleString()} more characters. <button type="button" onClick={() => setAsText(true)}>Show all as text</button></p> : null}
    </>
  );
}
