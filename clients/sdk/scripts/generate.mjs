#!/usr/bin/env node
// Generates src/protocol*.ts, a TypeScript type per frame, from protocol/schema. `--check`: exits 1 if a file is out of date.
// Supports the JSON Schema keywords that the protocol uses and fails on any other.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const schemas = join(here, "../../../protocol/schema");
const target = (name) => join(here, "../src", name);
const load = (name) => JSON.parse(readFileSync(join(schemas, name + ".schema.json"), "utf8"));

const pascal = (name) => name.split(/[._]/).map((word) => word[0].toUpperCase() + word.slice(1)).join("");
const unions = { event: "EarshotEvent", frame: "Frame", client: "ClientMessage" };
const definition_names = { input: "JsonValue", event: "EventFields", status: "SessionStatus", usage: "Tokens", session: "SessionName" };
const defName = (name) => definition_names[name] ?? pascal(name);
const frame_names = { session: "SessionFrame", status: "StatusFrame", record: "RecordFrame", error: "ErrorFrame" };
const frameName = (name) => frame_names[name] ?? pascal(name);

/** Keywords that are translated, or that constrain values in a way that types cannot express. */
const keywords = new Set(["$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "items", "anyOf", "allOf",
  "enum", "const", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "default", "dependentRequired",
  "additionalProperties", "propertyNames", "maxProperties", "minProperties", "x-values", "x-full", "x-meta"]);

function typeOf(schema, at) {
  for (const keyword of Object.keys(schema)) {
    if (!keywords.has(keyword)) throw new Error(`${at}: unsupported keyword '${keyword}': add it to scripts/generate.mjs`);
  }
  if (schema.$ref) return defName(schema.$ref.split("/").at(-1));
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (at.endsWith(".dialect")) return "string"; // the list of dialects grows most
  if (schema["x-values"]) return [...schema["x-values"].map((value) => JSON.stringify(value)), "(string & {})"].join(" | ");
  if (schema.anyOf) return schema.anyOf.map((option, n) => typeOf(option, `${at}/${n}`)).join(" | ");
  switch (schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "array": return `Array<${schema.items ? typeOf(schema.items, at + "[]") : "JsonValue"}>`;
    case "object": {
      if (schema.properties) return objectType(schema, at);
      const values = schema.additionalProperties;
      return `Record<string, ${typeof values === "object" ? typeOf(values, at + "{}") : "JsonValue"}>`;
    }
    case undefined: return "JsonValue";
  }
  throw new Error(`${at}: unsupported type '${schema.type}'`);
}

const short_type_max = 60; // characters of an object type that is one line
const comment = (text, indent = "") => (text ? `${indent}/** ${text.replaceAll("*/", "* /")} */\n` : "");

function objectType(schema, at, indent = "  ") {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([name, value]) => {
    const inner = typeOf(value, `${at}.${name}`).replaceAll("\n", "\n  ");
    // The meta view omits texts, also those that the full view requires.
    const optional = (!required.has(name) && !(name === "type" && "const" in value)) || value["x-full"] !== undefined ? "?" : "";
    return `${comment(value.description, indent)}${indent}${name}${optional}: ${inner};`;
  });
  const short = `{ ${lines.map((line) => line.trim()).join(" ").replace(/;$/, "")} }`;
  return short.length <= short_type_max && !short.includes("/**") ? short : `{\n${lines.join("\n")}\n${indent.slice(2)}}`;
}

function frameType(name) {
  const schema = load(name);
  const bases = (schema.allOf ?? []).filter((part) => part.$ref).map((part) => defName(part.$ref.split("/").at(-1)));
  const own = objectType(schema, name);
  const text = bases.length ? `${bases.map((base) => `Omit<${base}, "type">`).join(" & ")} & ${own}` : own;
  return `${comment(schema.description)}export type ${frameName(name)} = ${text};\n`;
}

/** The members of a union such as frame.schema.json. */
const members = (name) => load(name).allOf.filter((part) => part.then).map((part) => part.then.$ref.replace(".schema.json", ""));

/** A file: the types that `used` names and that the text mentions are imported. */
function fileOf(text, used = {}) {
  const words = new Set(text.match(/\b[A-Z]\w+/g));
  const imports = Object.entries(used).flatMap(([file, names]) => {
    const mentioned = names.filter((name) => words.has(name));
    return mentioned.length > 0 ? [`import type { ${mentioned.sort().join(", ")} } from "./${file}";\n`] : [];
  });
  const head = "// Generated by scripts/generate.mjs from protocol/schema: run `npm run generate` after a change there. Do not edit.\n";
  return [head, ...imports, "\n", text].join("");
}

/** Contents by name of the file. */
function generate() {
  const common = Object.entries(load("common").$defs);
  const common_names = ["JsonValue", ...common.filter(([name]) => name !== "input").map(([name]) => defName(name))];
  let common_text = "export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };\n";
  for (const [name, schema] of common) {
    if (name !== "input") common_text += `\n${comment(schema.description)}export type ${defName(name)} = ${typeOf(schema, name)};\n`;
  }
  const events = members("event");
  const frames = members("frame");
  const messages = members("client");
  const all = [...events, ...frames, ...messages];
  const unlisted = readdirSync(schemas).map((file) => file.replace(".schema.json", "")).filter((name) => name !== "common" && !unions[name] && !all.includes(name));
  if (unlisted.length) throw new Error(`in none of event, frame and client.schema.json: ${unlisted.join(", ")}`);
  const common_file = { "protocol_common.js": common_names };
  let event_text = events.map(frameType).join("\n");
  event_text += `\n/** An event in a transcript. */\nexport type EarshotEvent = ${events.map(frameName).join(" | ")};\n\n`;
  event_text += `export const eventTypes = ${JSON.stringify(events)} as const;\nexport type EventType = (typeof eventTypes)[number];\n`;
  let frame_text = [...frames, ...messages].map(frameType).join("\n");
  frame_text += `\n/** A frame from the daemon. Ignore types that are not listed: a newer daemon may send them. */\nexport type Frame = EarshotEvent | ${frames.map(frameName).join(" | ")};\n`;
  frame_text += `\n/** A message to the daemon. */\nexport type ClientMessage = ${messages.map(frameName).join(" | ")};\n`;
  return {
    "protocol_common.ts": fileOf(common_text),
    "protocol_events.ts": fileOf(event_text, common_file),
    "protocol_frames.ts": fileOf(frame_text, { ...common_file, "protocol_events.js": ["EarshotEvent"] }),
    "protocol.ts": fileOf(["common", "events", "frames"].map((part) => `export * from "./protocol_${part}.js";\n`).join("")),
  };
}

for (const [name, text] of Object.entries(generate())) {
  if (!process.argv.includes("--check")) {
    writeFileSync(target(name), text);
  } else if (readFileSync(target(name), "utf8") !== text) {
    console.error(`src/${name} is out of date: run npm run generate`);
    process.exitCode = 1;
  }
}
