// What a page can do for a waiting session: hand out what continues it in a terminal, and load what is asked in full.
import { batch, signal } from "@preact/signals";
import { sessionKey, type JsonValue, type SessionFrame } from "../../sdk/src/index.js";
import { writeClipboard } from "./clipboard.js";
import { earshot, resumeCommands } from "./connection.js";
import { announcement } from "./notifications.js";
import { pathOf, resumeLine } from "./resume.js";
import { exactPattern } from "./route.js";

/** Continues the session in a terminal. Empty if the daemon knows no command for the program. */
export function resumeCommand(frame: SessionFrame): string {
  const program = frame.program ?? ""; // untrusted: not a property that every object has
  return resumeLine(Object.hasOwn(resumeCommands.value, program) ? resumeCommands.value[program] : undefined, frame);
}

/** What was copied last, for a confirmation: key of the session and name of the action. */
export const copied = signal("");
/** What that did, in words. */
export const copiedText = signal("");
const copied_ms = 2_000;
let timer = 0;

export async function copy(frame: SessionFrame, action: "resume" | "path"): Promise<void> {
  const text = action === "resume" ? resumeCommand(frame) : pathOf(frame);
  const done = text !== "" && (await writeClipboard(text));
  const what = action === "resume" ? "resume command" : "path";
  const said = text === "" ? `No ${what} to copy` : `${done ? "Copied" : "Not copied"}: ${what}`;
  batch(() => {
    if (text) copied.value = `${done ? "" : "failed "}${action} ${sessionKey(frame.host, frame.session)}`;
    copiedText.value = announcement.value = said;
  });
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    copied.value = copiedText.value = "";
    if (announcement.peek() === said) announcement.value = ""; // so that the next one is announced
  }, copied_ms);
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
