// What kind of work a tool does, by its name in any program.
import { commandIn, fieldsOf } from "./toolInput.js";

const command_tools = new Set(["Bash", "bash", "shell", "shell_command", "exec_command", "local_shell", "user_shell", "powershell", "exec", "write_stdin", "BashOutput", "read_bash"]);

/** Without a namespace. */
const nameOf = (tool: string) => tool.slice(tool.lastIndexOf(".") + 1);

/** The command line of a call that runs one. */
export function commandOf(tool: string, input: unknown): string | undefined {
  if (!command_tools.has(nameOf(tool))) return undefined;
  return typeof input === "string" ? input : commandIn(fieldsOf(input)) || undefined;
}

/** True for tools that start a subagent. */
export const startsAgent = (tool: string) => /^(?:agent|task|spawn_agent)$/i.test(nameOf(tool));

export type ToolKind = "edit" | "command" | "read" | "agent" | "other";

/** What kind of work a call is: its colour in the timeline. */
export function toolKind(tool: string): ToolKind {
  const name = nameOf(tool);
  if (command_tools.has(name)) return "command";
  if (/^(?:multi)?(?:edit|write|notebookedit|create|apply_patch|str_replace.*)$/i.test(name)) return "edit";
  if (/^(?:read|grep|glob|ls|find|view|view_image|websearch|webfetch|web_search|web_fetch|toolsearch|list_dir|read_file)/i.test(name)) return "read";
  return startsAgent(tool) ? "agent" : "other";
}
