#!/usr/bin/env node
// Writes src/protocol.ts: a TypeScript type for each frame, out of protocol/schema. `--check`: only says whether it is as it should be.
// Knows just the words of JSON Schema that the protocol uses, and stops at any other: nothing is guessed.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const schemas = join(here, "../../../protocol/schema");
const target = join(here, "../src/protocol.ts");
const load = (name) => JSON.parse(readFileSync(join(schemas, name + ".schema.json"), "utf8"));

const pascal = (name) => name.split(/[._]/).map((word) => word[0].toUpperCase() + word.slice(1)).join("");
const lists = { event: "EarshotEvent", frame: "Frame", client: "ClientMessage" }; // unions, not shapes
const shared = { input: "JsonValue", event: "EventFields", status: "SessionStatus", usage: "Tokens", session: "SessionName" };
const defName = (name) => shared[name] ?? pascal(name);
const frameNames = { session: "SessionFrame", status: "StatusFrame", record: "RecordFrame", error: "ErrorFrame" };
const frameName = (name) => frameNames[name] ?? pascal(name);

/** Words that say something about values, which a type cannot. */
const known = new Set(["$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "items", "anyOf", "allOf",
  "enum", "const", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "default", "dependentRequired",
  "additionalProperties", "x-values", "x-full", "x-meta"]);

function typeOf(schema, at) {
  for (const word of Object.keys(schema)) {
    if (!known.has(word)) throw new Error(`${at}: this generator does not know '${word}': teach it in scripts/generate.mjs`);
  }
  if (schema.$ref) return defName(schema.$ref.split("/").at(-1));
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (at.endsWith(".dialect")) return "string"; // dialects are the core's own business, and grow most
  if (schema["x-values"]) return [...schema["x-values"].map((value) => JSON.stringify(value)), "(string & {})"].join(" | ");
  if (schema.anyOf) return schema.anyOf.map((one, n) => typeOf(one, `${at}/${n}`)).join(" | ");
  switch (schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "array": return `Array<${schema.items ? typeOf(schema.items, at + "[]") : "JsonValue"}>`;
    case "object": return schema.properties ? shape(schema, at) : "Record<string, JsonValue>";
    case undefined: return "JsonValue";
  }
  throw new Error(`${at}: this generator does not know the type '${schema.type}'`);
}

const comment = (text, indent = "") => (text ? `${indent}/** ${text.replaceAll("*/", "* /")} */\n` : "");

function shape(schema, at, indent = "  ") {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([name, value]) => {
    const inner = typeOf(value, `${at}.${name}`).replaceAll("\n", "\n  ");
    // Text that the meta view leaves out may be missing even where it is required of the full one.
    const optional = (!required.has(name) && !(name === "type" && "const" in value)) || value["x-full"] !== undefined ? "?" : "";
    return `${comment(value.description, indent)}${indent}${name}${optional}: ${inner};`;
  });
  return `{\n${lines.join("\n")}\n${indent.slice(2)}}`;
}

function frame(name) {
  const schema = load(name);
  const bases = (schema.allOf ?? []).filter((one) => one.$ref).map((one) => defName(one.$ref.split("/").at(-1)));
  const own = shape(schema, name);
  const text = bases.length ? `${bases.map((base) => `Omit<${base}, "type">`).join(" & ")} & ${own}` : own;
  return `${comment(schema.description)}export type ${frameName(name)} = ${text};\n`;
}

/** The names that a list, such as frame.schema.json, puts together. */
const members = (name) => load(name).allOf.filter((one) => one.then).map((one) => one.then.$ref.replace(".schema.json", ""));

function generate() {
  const common = load("common").$defs;
  let out = "// Made by scripts/generate.mjs out of protocol/schema: `npm run generate` after a change there. Do not edit.\n\n";
  out += "export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };\n\n";
  for (const [name, schema] of Object.entries(common)) {
    if (name !== "input") out += `${comment(schema.description)}export type ${defName(name)} = ${typeOf(schema, name)};\n\n`;
  }
  const events = members("event");
  const frames = members("frame");
  const messages = members("client");
  const all = [...events, ...frames, ...messages];
  const left = readdirSync(schemas).map((file) => file.replace(".schema.json", "")).filter((name) => name !== "common" && !lists[name] && !all.includes(name));
  if (left.length) throw new Error(`no list has ${left.join(", ")}`);
  out += all.map(frame).join("\n") + "\n";
  out += `/** What happened in a transcript. */\nexport type EarshotEvent = ${events.map(frameName).join(" | ")};\n\n`;
  out += `/** What the daemon sends. A type that is not listed is from a later daemon: ignore it. */\nexport type Frame = EarshotEvent | ${frames.map(frameName).join(" | ")};\n\n`;
  out += `/** What a client sends. */\nexport type ClientMessage = ${messages.map(frameName).join(" | ")};\n\n`;
  out += `export const eventTypes = ${JSON.stringify(events)} as const;\n`;
  out += `export type EventType = (typeof eventTypes)[number];\n`;
  return out;
}

const made = generate();
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== made) {
    console.error("src/protocol.ts is not what protocol/schema says: npm run generate");
    process.exit(1);
  }
} else {
  writeFileSync(target, made);
}
