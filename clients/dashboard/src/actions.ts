// What a page can do for a session in a terminal: hand out the commands. Ids and paths are untrusted: what a shell could misread is quoted, what a terminal could is refused.
import { signal } from "@preact/signals";
import { sessionKey, type JsonValue, type SessionFrame } from "../../sdk/src/index.js";
import { earshot, resumeCommands } from "./connection.js";
import { exactPattern } from "./route.js";

const controls = /[\u0000-\u001f\u007f-\u009f]|‹U\+|[\u2400-\u2421]/; // also those that the page has made visible: the text is then not the original
const plain = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** One word for a POSIX shell. */
const quote = (word: string) => (plain.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The session's working directory; empty if it is not known, or not a path that can be copied. */
export const pathOf = ({ project = "" }: SessionFrame) => (project.startsWith("/") && !controls.test(project) ? project : "");

/** Continues the session in a terminal: `cd DIRECTORY && PROGRAM … ID`. Empty if the daemon knows no command for the program. */
export function resumeCommand(frame: SessionFrame): string {
  const words = resumeCommands.value[frame.program ?? ""];
  const suffix = `@${frame.host}`; // of the ids at a hub
  const id = frame.session.endsWith(suffix) ? frame.session.slice(0, -suffix.length) : frame.session;
  if (!words || !id || id.startsWith("-") || controls.test(id)) return "";
  const command = [...words, id].map(quote).join(" ");
  const path = pathOf(frame);
  return path ? `cd ${quote(path)} && ${command}` : frame.project ? "" : command;
}

/** What was copied last, for a confirmation: key of the session and name of the action. */
export const copied = signal("");
const copied_ms = 2_000;
let timer = 0;

export async function copy(frame: SessionFrame, action: "resume" | "path"): Promise<void> {
  const text = action === "resume" ? resumeCommand(frame) : pathOf(frame);
  if (!text) return;
  const done = await writeClipboard(text);
  copied.value = `${done ? "" : "failed "}${action} ${sessionKey(frame.host, frame.session)}`;
  clearTimeout(timer);
  timer = window.setTimeout(() => (copied.value = ""), copied_ms);
}

async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // a page without TLS on another host
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
  return done;
}

/** Loads the input of a call that the frame contains only in part: texts up to 4 KiB. Rejects if the call cannot be found. */
export function loadWholeCall(frame: SessionFrame, call: string): Promise<JsonValue> {
  return new Promise((resolve, reject) => {
    const end = (finish: () => void) => queueMicrotask(() => {
      subscription.close();
      finish();
    });
    const filter = { session: [exactPattern(frame.session)], host: [exactPattern(frame.host)], type: ["tool.invoked"] };
    const subscription = earshot.subscribe({ filter, history: true, on_lag: "catch_up" }, {
      frame: (received) => {
        if (received.type !== "tool.invoked" || received.call !== call) return;
        const { input = null } = received;
        end(() => resolve(input));
      },
      state: ({ state }) => {
        if (["live", "retrying", "unauthorized", "failed"].includes(state)) end(() => reject(new Error("not found")));
      },
    });
  });
}
