// The command that continues a session in a terminal. Ids and paths are untrusted: what a shell could misread is quoted, what a terminal could is refused.
import type { SessionFrame } from "../../sdk/src/index.js";

type Named = Pick<SessionFrame, "session" | "host" | "project">;

/** Characters that a terminal or a reader could misread, and what the page shows instead of them: the text is then not the original. */
const doubtful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u2400-\u2421]|‹U\+/u;

/** As one word of a POSIX shell. */
export const shellQuote = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** The session's working directory; empty if it is not known, or not a path that can be copied. */
export const pathOf = ({ project = "" }: Pick<SessionFrame, "project">) => (project.startsWith("/") && !doubtful.test(project) ? project : "");

/** `cd DIRECTORY && PROGRAM … ID`. `words`: of the program, as the daemon states them. Empty without words, and if the id or the directory is doubtful. */
export function resumeLine(words: readonly string[] | undefined, frame: Named): string {
  const suffix = `@${frame.host}`; // that a hub adds
  const id = frame.session.endsWith(suffix) ? frame.session.slice(0, -suffix.length) : frame.session;
  if (!words || !id || id.startsWith("-") || doubtful.test(id)) return "";
  const command = [...words, id].map(shellQuote).join(" ");
  const path = pathOf(frame);
  return path ? `cd ${shellQuote(path)} && ${command}` : frame.project ? "" : command;
}
