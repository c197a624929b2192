// Colours code. Loaded when the first block of code is shown: a part of its own.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash, c, cpp, css, diff, go, ini, java, javascript, json, python, ruby, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
hljs.registerAliases(["shell", "console", "shell-session"], { languageName: "bash" });

export interface CodeSpan { text: string; scope: string }
interface Node { scope?: string; language?: string; children: Array<string | Node> }

const depth_max = 40; // of scopes in each other; deeper ones have the scope of their parent

function collect(node: Node, scope: string, depth: number, out: CodeSpan[]) {
  for (const child of node.children) {
    if (typeof child === "string") out.push({ text: child, scope });
    else if (depth < depth_max) collect(child, child.scope?.split(".", 1)[0] ?? scope, depth + 1, out);
  }
}

/** The code as spans, or `undefined` if the language is not one of the above. Uses the highlighter's tree: it makes no HTML. */
export function highlight(code: string, language: string): CodeSpan[] | undefined {
  if (!hljs.getLanguage(language)) return undefined;
  const { _emitter } = hljs.highlight(code, { language, ignoreIllegals: true }) as unknown as { _emitter?: { rootNode?: Node } };
  const out: CodeSpan[] = [];
  if (!_emitter?.rootNode) return undefined;
  collect(_emitter.rootNode, "", 0, out);
  return out.map(({ text }) => text).join("") === code ? out : undefined; // never another text than the code
}
