// What the input of a tool call says, in any program: by the fields, which are the same for many tools. Inputs are untrusted: a field may have any type.

const summary_max = 200; // characters: more than one line shows
const summary_fields = ["command", "cmd", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "question", "task_name", "prompt", "skill"]; // most informative first
const questions_max = 20; // of a call
const options_max = 20; // of a question

export const fieldsOf = (input: unknown): Record<string, unknown> => (typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Record<string, unknown>) : {});
export const textOf = (value: unknown) => (typeof value === "string" ? value : "");
export const textsOf = (value: unknown) => (Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : []);

/** A path below `base` without it. */
export const relativePath = (path: string, base: string) => (base && path.startsWith(`${base}/`) ? path.slice(base.length + 1) : path);

/** The script of `["bash", "-lc", "make"]`, else the words. */
const scriptOf = (words: string[]) => (words.length === 3 && /^-l?c$/.test(words[1]!) ? words[2]! : words.join(" "));

/** The command line in a call's fields; empty if there is none. */
export const commandIn = ({ command, cmd }: Record<string, unknown>) => scriptOf(textsOf(command)) || textOf(command) || textOf(cmd);

/** The files that a patch of the form `*** Update File: PATH` changes. */
export const filesOfPatch = (patch: string) => [...patch.matchAll(/^\*\*\* (?:Update|Add|Delete) File: (.+)$/gm)].map((match) => match[1]!);

/** One line from a tool's input: its most informative field; paths below `base` are relative. */
export function inputSummary(input: unknown, base = ""): string {
  if (typeof input === "string") return filesOfPatch(input).map((file) => relativePath(file, base)).join(", ").slice(0, summary_max) || input.slice(0, summary_max);
  const fields = fieldsOf(input);
  const files = textsOf(fields.files);
  if (files.length > 0) return files.map((file) => relativePath(file, base)).join(", ").slice(0, summary_max);
  for (const name of summary_fields) {
    const value = name === "command" && Array.isArray(fields.command) ? commandIn(fields) : fields[name];
    if (typeof value !== "string") continue;
    const text = value.slice(0, 4 * summary_max).replaceAll(/\s+/g, " ");
    return relativePath(text, base).slice(0, summary_max);
  }
  return "";
}

export interface Question { text: string; options: Array<{ label: string; description: string }> }

function questionOf(value: unknown): Question | undefined {
  const { question, options, choices } = fieldsOf(value);
  if (typeof question !== "string") return undefined;
  const all = Array.isArray(options) ? options : Array.isArray(choices) ? choices : [];
  return { text: question, options: all.slice(0, options_max).map((option) => (typeof option === "string" ? { label: option, description: "" } : { label: textOf(fieldsOf(option).label), description: textOf(fieldsOf(option).description) })).filter(({ label }) => label) };
}

/** The questions of a call that asks the user. */
export function questionsOf(input: unknown): Question[] {
  const { questions } = fieldsOf(input);
  const all = Array.isArray(questions) ? questions.slice(0, questions_max).map(questionOf) : [questionOf(input)];
  return all.filter((one): one is Question => one !== undefined);
}
