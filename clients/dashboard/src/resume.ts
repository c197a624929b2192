// The command that continues a session in a terminal.
import type { SessionFrame } from "../../sdk/src/index.js";

const commands: Record<string, (id: string) => string> = {
  "claude-code": (id) => `claude --resume ${id}`,
  codex: (id) => `codex resume ${id}`,
  copilot: (id) => `copilot --resume ${id}`,
  pi: (id) => `pi --session ${id}`,
};

/** Characters that a terminal or a reader could misread, and what the page shows instead of them: the text is then not the original. */
const doubtful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u2400-\u2421]|‹U\+/u;

/** As one word of a POSIX shell. */
export const shellQuote = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** `undefined` if the program is unknown, or if its session's name could be taken for an option or for a control character. */
export function resumeCommand({ program, session, host }: Pick<SessionFrame, "program" | "session" | "host">): string | undefined {
  const suffix = `@${host}`; // that a hub adds
  const id = session.endsWith(suffix) ? session.slice(0, -suffix.length) : session;
  const command = program === undefined || !Object.hasOwn(commands, program) ? undefined : commands[program];
  if (!command || !id || id.startsWith("-") || doubtful.test(id)) return undefined;
  return command(shellQuote(id));
}

/** The same after a change to the session's directory: some programs find their sessions by it. */
export function resumeInDirectory(frame: Pick<SessionFrame, "program" | "session" | "host" | "project">): string | undefined {
  const command = resumeCommand(frame);
  const directory = frame.project;
  return command && directory?.startsWith("/") && !doubtful.test(directory) ? `cd ${shellQuote(directory)} && ${command}` : command;
}
