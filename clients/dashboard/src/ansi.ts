// A command's output as a terminal would show it: lines of coloured spans. Data only, no HTML. Colours are changed where they could not be read.
import Anser from "anser";
import { escapeControls } from "./sanitize.js";

export interface TerminalSpan { text: string; color?: string; background?: string; bold?: true; dim?: true; italic?: true; underline?: true; strike?: true }
export type TerminalLine = TerminalSpan[];

type Rgb = [number, number, number];
const ground: Rgb = [22, 24, 29]; // of the terminal, in both colour schemes: --terminal in session.css
const light: Rgb = [230, 232, 235];
const contrast_min = 4.5; // WCAG AA
const overwritten_max = 64; // colour changes kept of the part of a line that a carriage return has overwritten

const luminance = ([r, g, b]: Rgb) => {
  const linear = (value: number) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const contrast = (a: Rgb, b: Rgb) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
const css = (rgb: Rgb) => `rgb(${rgb.join(", ")})`;

function parseRgb(text: string | null): Rgb | undefined {
  const numbers = text?.split(",").map(Number) ?? [];
  return numbers.length === 3 && numbers.every((n) => n >= 0 && n <= 255) ? (numbers as Rgb) : undefined;
}

/** The nearest colour that can be read on `on`: hidden text is shown. */
function readable(rgb: Rgb, on: Rgb): Rgb {
  const target = luminance(on) > 0.3 ? 0 : 255;
  let out = rgb;
  for (let n = 0; n < 12 && contrast(out, on) < contrast_min; n++) out = out.map((value) => Math.round(value + (target - value) * 0.2)) as Rgb;
  return contrast(out, on) < contrast_min ? [target, target, target] : out;
}

// The socket has replaced control characters by their pictures (sanitize.ts); those that a terminal interprets are read again here.
const pictures: Record<string, string> = { "␛": "\u001b", "␇": "\u0007", "␈": "\b" };
const text_sequences = /\u001b[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?/g; // OSC (titles, links), DCS, SOS, PM, APC
const color_sequence = /\u001b\[[0-9;]*m/g;
const other_sequences = /\u001b\[(?![0-9;]*m)[0-?]*[ -/]*[@-~]?|\u001b(?!\[)[ -/]*[0-~]?/g; // cursor movement, clearing, modes, character sets

/** What is left of a line after its carriage returns: its last part, in the colours that were set before. */
function lastWritten(line: string): string {
  const parts = line.replace(/\r+$/, "").split("\r");
  if (parts.length === 1) return parts[0]!;
  const colors = parts.slice(0, -1).join("").match(color_sequence) ?? [];
  return colors.slice(-overwritten_max).join("") + parts.at(-1);
}

function applyBackspaces(text: string): string {
  if (!text.includes("\b")) return text;
  const out: string[] = [];
  for (const character of text) character === "\b" ? out.pop() : out.push(character);
  return out.join("");
}

function spanOf(text: string, entry: Anser.AnserJsonEntry): TerminalSpan {
  const span: TerminalSpan = { text };
  let [color, background] = [parseRgb(entry.fg), parseRgb(entry.bg)];
  const has = (name: Anser.DecorationName) => entry.decorations.includes(name);
  if (has("reverse")) [color, background] = [background ?? ground, color ?? light];
  if (background) span.background = css(background);
  if (color || background) span.color = css(readable(color ?? light, background ?? ground));
  if (has("bold")) span.bold = true;
  if (has("dim")) span.dim = true;
  if (has("italic")) span.italic = true;
  if (has("underline")) span.underline = true;
  if (has("strikethrough")) span.strike = true;
  return span;
}

/** Colours and decorations are kept; every other escape sequence is dropped, and so are lines that were overwritten. */
export function terminalLines(text: string): TerminalLine[] {
  const raw = text.replace(/[␛␇␈]/g, (picture) => pictures[picture]!);
  const plain = raw.replace(text_sequences, "").replace(other_sequences, "").replaceAll("\r\n", "\n");
  const written = applyBackspaces(plain.split("\n").map(lastWritten).join("\n"));
  const lines: TerminalLine[] = [[]];
  for (const entry of Anser.ansiToJson(written, { json: true, remove_empty: true })) {
    entry.content.split("\n").forEach((part, n) => {
      if (n > 0) lines.push([]);
      if (part) lines.at(-1)!.push(spanOf(escapeControls(part), entry));
    });
  }
  while (lines.length > 1 && lines.at(-1)!.length === 0) lines.pop();
  return lines;
}
