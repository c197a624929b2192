// Transcripts contain untrusted text. Control characters (terminal escapes, bidirectional overrides) are replaced by visible ones when a
// frame arrives, so that a text can neither imitate another one nor affect the layout outside its element.
import { platformSocket, type Connect, type JsonValue } from "../../sdk/src/index.js";

// Fast check of a frame's JSON for control characters, literal or escaped. Tab, line feed and carriage return are allowed.
const may_have_controls = /\\u00[01][0-9a-f]|\\u00[89][0-9a-f]|\\u(?:202[a-e]|206[6-9]|200[ef]|061c)|\\[bf]|[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/i;
const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const identifiers = new Set(["type", "id", "host", "session", "stream", "streams", "cursor", "cursors", "call", "agent", "subagent"]); // sent back to the daemon or compared: left unchanged

const control_pictures = 0x2400; // Unicode block of symbols such as ␛

export function escapeControls(text: string): string {
  return text.replace(control, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(control_pictures + code);
    return code === 0x7f ? "␡" : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

function sanitize(value: JsonValue, name = ""): JsonValue {
  if (typeof value === "string") return identifiers.has(name) ? value : escapeControls(value);
  if (Array.isArray(value)) return value.map((item) => sanitize(item, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [escapeControls(key), sanitize(item, key)]));
}

/** The platform's WebSocket with sanitized messages. */
export function sanitizingSocket(url: string): Connect {
  return (handlers) => platformSocket(url)({
    ...handlers,
    message: (text) => handlers.message(may_have_controls.test(text) ? JSON.stringify(sanitize(JSON.parse(text) as JsonValue)) : text),
  });
}
