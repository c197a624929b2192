// What a transcript holds is anybody's text. Its control characters (a terminal's escapes; those that turn the direction of writing) are
// made visible where they come in, so that no text can pass itself off as another or reach beyond its own place.
import { platformSocket, type Connect, type JsonValue } from "../../sdk/src/index.js";

// As they are, and as JSON escapes them: is a closer look needed? Tab, line feed and carriage return are harmless.
const suspect = /\\u00[01][0-9a-f]|\\u00[89][0-9a-f]|\\u(?:202[a-e]|206[6-9]|200[ef]|061c)|\\[bf]|[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/i;
const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const names = new Set(["type", "id", "host", "session", "stream", "streams", "cursor", "cursors", "call", "agent", "subagent"]); // they are handed back as they came

const picture = 0x2400; // of the control characters below a space: ␛ for an escape

export function visible(text: string): string {
  return text.replace(control, (one) => {
    const code = one.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(picture + code);
    return code === 0x7f ? "␡" : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

function walk(value: JsonValue, name = ""): JsonValue {
  if (typeof value === "string") return names.has(name) ? value : visible(value);
  if (Array.isArray(value)) return value.map((one) => walk(one, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [visible(key), walk(one, key)]));
}

/** The platform's WebSocket, but what comes has no control character that works. */
export function harmlessSocket(url: string): Connect {
  return (handlers) => platformSocket(url)({
    ...handlers,
    message: (text) => handlers.message(suspect.test(text) ? JSON.stringify(walk(JSON.parse(text) as JsonValue)) : text),
  });
}
