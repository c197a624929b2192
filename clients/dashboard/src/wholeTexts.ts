// Texts that the daemon has cut, once they were read as a whole. They stay while their event is in memory.
import { truncatedBytes, truncatedTexts, type EarshotEvent, type JsonValue } from "../../sdk/src/index.js";
import { wholeInput, wholeText } from "./record.js";
import type { OpenSession } from "./session.js";

const wholes = new WeakMap<EarshotEvent, Map<string, string>>();
const inputs = new WeakMap<EarshotEvent, JsonValue>();

const fieldOf = (event: EarshotEvent, field: string) => (event as unknown as Record<string, string | undefined>)[field] ?? "";

export const textOfField = (event: EarshotEvent, field: string) => wholes.get(event)?.get(field) ?? fieldOf(event, field);
/** Size of the whole text in bytes, if only its beginning is known. */
export const cutBytes = (event: EarshotEvent, field: string) => (wholes.get(event)?.has(field) ? undefined : truncatedBytes(event, field));

/** Reads the whole text of a field. Throws if the record cannot be read or does not contain it. */
export async function readWhole(session: OpenSession, event: EarshotEvent, field: string): Promise<string> {
  if (cutBytes(event, field) === undefined) return textOfField(event, field);
  const text = wholeText(await session.read(event.stream, event.cursor), fieldOf(event, field), cutBytes(event, field));
  if (text === undefined) throw new Error("the record does not contain this text in one piece");
  const known = wholes.get(event) ?? new Map<string, string>();
  wholes.set(event, known.set(field, text));
  return text;
}

const inputPath = (path: string[]) => ["input", ...path.map((name) => name.replaceAll("~", "~0").replaceAll("/", "~1"))].join("/");

/** A call's input, with all that was read. */
export const inputOf = (event: EarshotEvent, input: JsonValue | undefined) => inputs.get(event) ?? input;
export const hasCutInput = (event: EarshotEvent) => !inputs.has(event) && Object.keys(truncatedTexts(event)).some((path) => path.startsWith("input"));

export async function readInput(session: OpenSession, event: EarshotEvent, input: JsonValue): Promise<JsonValue> {
  if (!hasCutInput(event)) return inputOf(event, input)!;
  const cut = truncatedTexts(event);
  const whole = wholeInput(await session.read(event.stream, event.cursor), input, (path) => cut[inputPath(path)]);
  inputs.set(event, whole);
  return whole;
}
