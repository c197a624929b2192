// The session's page as one HTML file: no script, its style inside, and a policy of its own that allows nothing else. What is saved are copies of the
// elements below; everything of another kind becomes its text.
import { safeAddress } from "./Markdown.js";
import { svgOf } from "./Timeline.js";

const tags = new Set([
  "a", "article", "aside", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "figcaption", "figure", "h2", "h3", "h4", "header", "hr", "img", "li", "mark", "ol", "p", "pre",
  "section", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "time", "tr", "ul", "svg", "g", "path", "rect", "text",
]);
const attributes = new Set(["class", "style", "open", "title", "start", "scope", "dir", "datetime", "role", "alt", "src", "width", "height", "viewBox", "preserveAspectRatio", "d", "x", "y", "rx", "text-anchor", "href", "rel", "target"]);
const left_out = "button:not(.files button, .picture-button), input, textarea, dialog, .newest, .spacer, .cursor, .page-bar, .actions, .ranges, .more, .code-head .copy, progress, script, style, iframe";
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

const escapeHtml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

function cleaned(root: HTMLElement): HTMLElement {
  const inert = document.implementation.createHTMLDocument(""); // its images are not loaded
  const copy = inert.importNode(root, true);
  const canvases = [...root.querySelectorAll("canvas")];
  [...copy.querySelectorAll("canvas")].forEach((canvas, n) => {
    const drawn = canvases[n]!;
    if (drawn.width === 0 || drawn.height === 0) return canvas.remove();
    const svg = svgOf.get(drawn)?.();
    if (svg) {
      svg.setAttribute("aria-label", drawn.getAttribute("aria-label") ?? "");
      return canvas.replaceWith(inert.importNode(svg, true));
    }
    const image = inert.createElement("img");
    image.setAttribute("src", drawn.toDataURL("image/png"));
    image.setAttribute("alt", drawn.getAttribute("aria-label") ?? "");
    image.setAttribute("width", String(drawn.clientWidth || drawn.width));
    image.setAttribute("class", drawn.className);
    canvas.replaceWith(image);
  });
  for (const element of copy.querySelectorAll(left_out)) element.remove();
  for (const element of [...copy.querySelectorAll("*")].reverse()) { // children first
    if (!tags.has(element.localName)) {
      element.replaceWith(...element.childNodes);
      continue;
    }
    for (const { name, value } of [...element.attributes]) {
      const allowed = attributes.has(name) || name.startsWith("data-") || name.startsWith("aria-");
      const is_unsafe = (name === "href" && !safeAddress(value)) || (name === "src" && !value.startsWith("data:image/png;base64,")) || (name === "style" && /url|image|@|\\/i.test(value));
      if (!allowed || is_unsafe) element.removeAttribute(name);
    }
  }
  return copy;
}

/** `root`: the page with all entries rendered. */
export async function htmlOf(root: HTMLElement, title: string, now = new Date()): Promise<string> {
  const style = (await (await fetch("/style.css")).text()).replaceAll("</", "<\\/");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body class="saved">
<main>
<h1 class="visually-hidden">earshot</h1>
${cleaned(root).outerHTML}
<footer class="note">Saved with earshot, ${escapeHtml(now.toLocaleString())}.</footer>
</main>
</body>
</html>
`;
}

/** Lets the browser save a text as a file. */
export function saveFile(name: string, text: string) {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  link.href = url;
  link.download = name.replaceAll(/[^\w.-]+/g, "-").slice(0, 100);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
