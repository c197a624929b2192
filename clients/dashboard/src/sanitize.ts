// Transcripts contain untrusted text. Control characters (terminal escapes, bidirectional overrides) and invisible ones are replaced by visible
// ones when a frame arrives, so that a text can neither imitate another one nor affect the layout outside its element. The command line escapes
// the same characters: daemon/base/display_text.cpp.
import { platformSocket, type Connect, type JsonValue } from "../../sdk/src/index.js";

// Fast check of a frame's JSON for such characters, literal or escaped. Tab, line feed and carriage return are allowed.
const may_have_controls = /\\u(?:00[0189]|00ad|061c|180e|20[026]|fe0|feff|fff|db4)|\\[bf]|[\u007f-\u009f\u00ad\u061c\u180e\u200b\u200d-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/iu;
const hidden = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufe00-\\ufe0d\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}";
// Joiners and the other variation selectors are part of emoji: 👩‍🚀, ❤️, 1️⃣. Elsewhere they are hidden, too.
const control = new RegExp(`[${hidden}]|(?<!\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)\\u200d|\\u200d(?!\\p{Extended_Pictographic})|(?<!\\p{Extended_Pictographic}|[0-9#*](?=\\ufe0f\\u20e3))[\\ufe0e\\ufe0f]`, "gu");
const identifiers = new Set(["type", "id", "host", "session", "stream", "streams", "cursor", "cursors", "call", "agent", "subagent"]); // sent back to the daemon or compared: left unchanged

const control_pictures = 0x2400; // Unicode block of symbols such as ␛

export function escapeControls(text: string): string {
  return text.replace(control, (character) => {
    const code = character.codePointAt(0)!;
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
