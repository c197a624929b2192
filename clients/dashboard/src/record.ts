// Finds in a transcript's record what an event has only the beginning of: a long text, or the content of an image.
import type { JsonValue } from "../../sdk/src/index.js";
import { escapeControls } from "./sanitize.js";

const depth_max = 24; // objects nested deeper are not searched
const joints = ["\n", "\n\n", ""]; // between the blocks of a text

/** Calls `visit` for every value, and for what a text contains as JSON (the arguments of calls). */
function walk(value: JsonValue, visit: (value: JsonValue) => void, depth = 0) {
  if (depth > depth_max) return;
  visit(value);
  if (typeof value === "string") {
    if (!/^\s*[{[]/.test(value)) return;
    try {
      walk(JSON.parse(value) as JsonValue, visit, depth + 1);
    } catch { /* a text */ }
  } else if (Array.isArray(value)) for (const item of value) walk(item, visit, depth + 1);
  else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) walk(item, visit, depth + 1);
}

/**
 * The text of the record that begins with `beginning`, with visible control characters: the one of `size` bytes, else the longest. `undefined` if none is
 * longer than the beginning.
 */
export function wholeText(record: JsonValue, beginning: string, size?: number): string | undefined {
  let best: string | undefined;
  let is_exact = false;
  const consider = (text: string) => {
    if (is_exact || text.length <= beginning.length) return;
    const shown = escapeControls(text);
    if (!shown.startsWith(beginning) || shown.length <= beginning.length) return;
    is_exact = size !== undefined && new TextEncoder().encode(text).length === size;
    if (is_exact || shown.length > (best ?? "").length) best = shown;
  };
  walk(record, (value) => {
    if (typeof value === "string") return consider(value);
    if (!Array.isArray(value)) return;
    const texts = value.flatMap((block) => (typeof block === "object" && block !== null && !Array.isArray(block) && typeof block.text === "string" ? [block.text] : []));
    if (texts.length > 1) for (const joint of joints) consider(texts.join(joint));
  });
  return best;
}

/** The input with its cut texts replaced by those of the record. `cut`: the size of the whole text at a path, if it is cut. */
export function wholeInput(record: JsonValue, input: JsonValue, cut: (path: string[]) => number | undefined, path: string[] = []): JsonValue {
  if (typeof input === "string") {
    const size = cut(path);
    return size === undefined ? input : wholeText(record, input, size) ?? input;
  }
  if (Array.isArray(input)) return input.map((item, n) => wholeInput(record, item, cut, [...path, String(n)]));
  if (typeof input !== "object" || input === null) return input;
  return Object.fromEntries(Object.entries(input).map(([name, item]) => [name, wholeInput(record, item, cut, [...path, name])]));
}

export interface Picture { type: string; data: Uint8Array<ArrayBuffer>; width: number; height: number }

const images_max = 16; // of one record
const base64_max = 24 << 20; // characters of one image
const pixels_max = 40_000_000; // a small file can be a huge picture

const bigEndian = (data: Uint8Array, at: number, count: number) => {
  let value = 0;
  for (let n = 0; n < count; n++) value = value * 256 + (data[at + n] ?? 0);
  return value;
};
const littleEndian = (data: Uint8Array, at: number, count: number) => {
  let value = 0;
  for (let n = count - 1; n >= 0; n--) value = value * 256 + (data[at + n] ?? 0);
  return value;
};
const ascii = (data: Uint8Array, at: number, count: number) => String.fromCharCode(...data.subarray(at, at + count));

function jpegSize(data: Uint8Array): [number, number] | undefined {
  for (let at = 2; at + 9 < data.length && data[at] === 0xff; ) {
    const marker = data[at + 1]!;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return [bigEndian(data, at + 7, 2), bigEndian(data, at + 5, 2)];
    at += 2 + bigEndian(data, at + 2, 2);
  }
  return undefined;
}

function webpSize(data: Uint8Array): [number, number] | undefined {
  switch (ascii(data, 12, 4)) {
    case "VP8 ": return [littleEndian(data, 26, 2) & 0x3fff, littleEndian(data, 28, 2) & 0x3fff];
    case "VP8L": {
      const bits = littleEndian(data, 21, 4);
      return [(bits % 0x4000) + 1, (Math.floor(bits / 0x4000) % 0x4000) + 1];
    }
    case "VP8X": return [littleEndian(data, 24, 3) + 1, littleEndian(data, 27, 3) + 1];
    default: return undefined;
  }
}

/** Type and size of a PNG, JPEG, GIF or WebP image, from its first bytes; `undefined` for anything else, SVG included, and for a picture that is too large. */
export function imageHeader(data: Uint8Array): { type: string; width: number; height: number } | undefined {
  let found: [string, [number, number] | undefined] | undefined;
  if (ascii(data, 0, 8) === "\u0089PNG\r\n\u001a\n" && ascii(data, 12, 4) === "IHDR") found = ["image/png", [bigEndian(data, 16, 4), bigEndian(data, 20, 4)]];
  else if (data[0] === 0xff && data[1] === 0xd8) found = ["image/jpeg", jpegSize(data)];
  else if (/^GIF8[79]a$/.test(ascii(data, 0, 6))) found = ["image/gif", [littleEndian(data, 6, 2), littleEndian(data, 8, 2)]];
  else if (ascii(data, 0, 4) === "RIFF" && ascii(data, 8, 4) === "WEBP") found = ["image/webp", webpSize(data)];
  if (!found?.[1]) return undefined;
  const [width, height] = found[1];
  return width > 0 && height > 0 && width * height <= pixels_max ? { type: found[0], width, height } : undefined;
}

function decode(base64: string): Picture | undefined {
  if (base64.length > base64_max) return undefined;
  try {
    const data = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const header = imageHeader(data);
    return header && { ...header, data };
  } catch {
    return undefined; // not base64
  }
}

/** The images in a record, in its order: their types are taken from their bytes, not from what the record says. */
export function imagesOf(record: JsonValue): Picture[] {
  const images: Picture[] = [];
  const add = (base64: string) => {
    if (images.length >= images_max) return;
    const image = decode(base64);
    if (image) images.push(image);
  };
  walk(record, (value) => {
    if (typeof value === "string") {
      const url = /^data:image\/[a-z]+;base64,/.exec(value.slice(0, 64));
      if (url) add(value.slice(url[0].length));
    } else if (typeof value === "object" && value !== null && !Array.isArray(value) && typeof value.data === "string") {
      if (typeof (value.media_type ?? value.mimeType ?? value.mime_type) === "string" && !value.data.startsWith("data:")) add(value.data);
    }
  });
  return images;
}
