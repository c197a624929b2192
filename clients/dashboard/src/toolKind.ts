// What kind of work a tool does, by its name in any program.
import type { JsonValue } from "../../sdk/src/index.js";

const command_tools = new Set(["Bash", "bash", "shell", "shell_command", "exec_command", "local_shell", "user_shell", "powershell", "exec", "write_stdin", "BashOutput", "read_bash"]);
const texts = (value: unknown) => (Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : []);

/** The command line of a call that runs one. */
export function commandOf(tool: string, input: JsonValue | undefined): string | undefined {
  if (!command_tools.has(tool.slice(tool.lastIndexOf(".") + 1)) || input === undefined || input === null) return undefined;
  if (typeof input === "string") return input;
  if (typeof input !== "object" || Array.isArray(input)) return undefined;
  const words = texts(input.command);
  if (words.length > 0) return words.length === 3 && /^-l?c$/.test(words[1]!) ? words[2]! : words.join(" ");
  return [input.command, input.cmd].find((value): value is string => typeof value === "string");
}

export type ToolKind = "edit" | "command" | "read" | "agent" | "other";

/** What kind of work a call is: its colour in the timeline. */
export function toolKind(tool: string): ToolKind {
  const name = tool.slice(tool.lastIndexOf(".") + 1);
  if (command_tools.has(name)) return "command";
  if (/^(?:multi)?(?:edit|write|notebookedit|create|apply_patch|str_replace.*)$/i.test(name)) return "edit";
  if (/^(?:read|grep|glob|ls|find|view|view_image|websearch|webfetch|web_search|web_fetch|toolsearch|list_dir|read_file)/i.test(name)) return "read";
  return /^(?:agent|task|spawn_agent)$/i.test(name) ? "agent" : "other";
}
