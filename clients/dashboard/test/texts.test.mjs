// Terminal output, diffs, whole texts and pictures out of records, resume commands, places: functions without a browser.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compiled } from "./compiled.mjs";
import { png } from "./session_fixture.mjs";

const { terminalLines } = await compiled("ansi.ts");
const { editsOfInput, editsOfRecord, countLines } = await compiled("edits.ts");
const { coloursOf, coloured_length_max, divideParts, languageOf } = await compiled("diffColours.ts");
const { wholeText, wholeInput, imagesOf, imageHeader } = await compiled("record.ts");
const { resumeLine, shellQuote } = await compiled("resume.ts");
const { nameOf } = await compiled("rows.ts");
const { parsePlace, placeText } = await compiled("place.ts");
const { safeAddress } = await compiled("Markdown.tsx");
const { escapeControls } = await compiled("sanitize.ts");
const { highlight } = await compiled("highlight.ts");

const esc = "\u001b";
const textOf = (output) => terminalLines(output).map((line) => line.map(({ text }) => text).join("")).join("\n");

test("the name of a directory, also of Windows", () => {
  const names = [["/home/u/api", "api"], ["api", "api"], ["/home/u/a\\b", "a\\b"], ["C:\\Users\\u\\api", "api"], ["c:/Users/u\\api", "api"], ["C:\\", "C:\\"], ["\\\\server\\share\\api", "api"]];
  for (const [path, name] of names) assert.equal(nameOf(path), name);
});

describe("terminal output", () => {
  test("fault 158: invisible characters are shown, joiners and selectors unless they are part of an emoji", () => {
    assert.equal(escapeControls("rm -rf build\u200b\u{e0041}\u00ad\ufeff\u2060 #"), "rm -rf build‹U+200B›‹U+E0041›‹U+00AD›‹U+FEFF›‹U+2060› #");
    assert.equal(escapeControls("a\u200db 1\ufe0f a\ufe0f x\ufe01"), "a‹U+200D›b 1‹U+FE0F› a‹U+FE0F› x‹U+FE01›");
    assert.equal(escapeControls("🚀\u200d \u200d🚀"), "🚀‹U+200D› ‹U+200D›🚀");
    for (const text of ["👩\u200d🚀 ❤\ufe0f 1\ufe0f\u20e3 👨🏽\u200d💻 🏳\ufe0f\u200d🌈 ☎\ufe0e", "日本語 नमस्ते é\ttab\n"]) assert.equal(escapeControls(text), text);
  });

  test("colours and decorations become data", () => {
    const [line] = terminalLines(`${esc}[31;1mfailed${esc}[0m: 3 ${esc}[4mtests${esc}[0m`);
    assert.deepEqual(line.map(({ text, bold, underline }) => [text, bold ?? false, underline ?? false]), [["failed", true, false], [": 3 ", false, false], ["tests", false, true]]);
    assert.match(line[0].color, /^rgb\(\d+, \d+, \d+\)$/);
    assert.equal(line[1].color, undefined);
  });

  test("the pictures of control characters, which the page receives, are read as the characters", () => {
    assert.deepEqual(terminalLines("␛[32mok␛[0m"), terminalLines(`${esc}[32mok${esc}[0m`));
  });

  test("cursor movement, titles, links and unknown sequences are dropped; a link's text stays", () => {
    assert.equal(textOf(`${esc}[2J${esc}[H${esc}[10;20Hshown${esc}[?25l${esc}[1A${esc}[K`), "shown");
    assert.equal(textOf(`${esc}]0;title\u0007a${esc}]8;;https://evil.example/${esc}\\link${esc}]8;;${esc}\\b`), "alinkb");
    assert.equal(textOf(`${esc}P1;2|data${esc}\\x${esc}(By${esc}=z${esc}c`), "xyz");
    assert.equal(textOf(`${esc}]0;never ended\nnext`), "\nnext");
    assert.equal(textOf(`end${esc}[`), "end");
  });

  test("of a line that carriage returns have overwritten the last part is left, in its colour", () => {
    assert.equal(textOf("10%\r50%\r100%\r\ndone\r\n"), "100%\ndone");
    const [line] = terminalLines(`${esc}[32m10%\r20%${esc}[0m`);
    assert.equal(line[0].text, "20%");
    assert.ok(line[0].color);
  });

  test("a backspace removes the character before it", () => assert.equal(textOf("lamq\bp"), "lamp"));

  test("what cannot be read is made readable: black on black, white on white, hidden", () => {
    for (const hidden of [`${esc}[38;2;22;24;29mx`, `${esc}[30;40mx`, `${esc}[97;107mx`, `${esc}[38;5;16mx`]) {
      const [[span]] = terminalLines(hidden);
      const luminance = (text) => text.match(/\d+/g).map((value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
      const [one, other] = [luminance(span.color), luminance(span.background ?? "rgb(22, 24, 29)")];
      assert.ok((Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) >= 4.5, `${JSON.stringify(hidden)}: ${JSON.stringify(span)}`);
    }
    assert.equal(textOf(`${esc}[8mhidden${esc}[0m`), "hidden");
  });

  test("control characters and overrides of the direction never remain", () => {
    const text = textOf(`a\u0000b\u202ec\u0007d\u009b31me${esc}`);
    assert.doesNotMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.match(text, /a␀b‹U\+202E›c/);
  });
});

describe("diffs", () => {
  const numbers = (edit) => edit.hunks.flatMap(({ lines }) => lines.map(({ kind, old, new: added, text }) => `${old ?? ""},${added ?? ""}${kind}${text}`));

  test("of an edit: changed words are marked; numbers are not known", () => {
    const [edit] = editsOfInput("Edit", { file_path: "/a/horn.cpp", old_string: "int a;\nint interval_s = 20;\n", new_string: "int a;\nint interval_s = 30;\n" });
    assert.deepEqual(numbers(edit), [", int a;", ",-int interval_s = 20;", ",+int interval_s = 30;"]);
    assert.deepEqual(edit.hunks[0].lines[1].parts.filter(({ changed }) => changed).map(({ text }) => text), ["20"]);
    assert.deepEqual(countLines(edit), { added: 1, removed: 1 });
  });

  test("unchanged lines far from a change are left out", () => {
    const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`);
    const changed = lines.map((line, n) => (n === 10 || n === 12 || n === 30 ? `${line}!` : line));
    const [edit] = editsOfInput("Edit", { file_path: "/a", old_string: lines.join("\n"), new_string: changed.join("\n") });
    assert.deepEqual(edit.hunks.map(({ gap, lines: all }) => [gap, all.map(({ kind, text }) => kind + text)]), [
      [true, [" line 7", " line 8", " line 9", "-line 10", "+line 10!", " line 11", "-line 12", "+line 12!", " line 13", " line 14", " line 15"]],
      [true, [" line 27", " line 28", " line 29", "-line 30", "+line 30!", " line 31", " line 32", " line 33"]]]);
    assert.deepEqual(countLines(edit), { added: 3, removed: 3 });
  });

  test("of the tools of each program", () => {
    const paths = (tool, input) => editsOfInput(tool, input).map(({ path, kind, hunks }) => `${kind} ${path} ${hunks.length}`);
    assert.deepEqual(paths("MultiEdit", { file_path: "/a", edits: [{ old_string: "a", new_string: "b" }, { old_string: "c", new_string: "d" }] }), ["edit /a 2"]);
    assert.deepEqual(paths("Write", { file_path: "/a", content: "x\ny\n" }), ["write /a 1"]);
    assert.deepEqual(paths("edit", { path: "a", oldText: "x", newText: "y" }), ["edit a 1"]); // Pi
    assert.deepEqual(paths("edit", { path: "a", edits: [{ oldText: "x", newText: "y" }] }), ["edit a 1"]);
    assert.deepEqual(paths("edit", { path: "a", old_str: "x", new_str: "y" }), ["edit a 1"]); // Copilot CLI
    assert.deepEqual(paths("create", { path: "a", file_text: "x" }), ["write a 1"]);
    const patch = "*** Begin Patch\n*** Update File: src/a.py\n@@ def f():\n-    pass\n+    return 1\n*** Add File: b.py\n+x\n*** Delete File: c.py\n*** End Patch";
    const expected = ["edit src/a.py 1", "add b.py 1", "delete c.py 0"];
    for (const input of [patch, { input: patch }, { patch }, { command: ["apply_patch", patch] }, { cmd: `apply_patch <<'EOF'\n${patch}\nEOF` }]) assert.deepEqual(paths("apply_patch", input), expected);
    assert.deepEqual(paths("shell", { command: ["apply_patch", patch] }), expected);
    assert.deepEqual(paths("Bash", { command: "make test" }), []);
    assert.deepEqual(paths("Read", { file_path: "/a" }), []);
    assert.deepEqual(paths("Edit", { file_path: "/a" }), []);
    for (const odd of [null, 7, [], [[]], "", { file_path: 3, old_string: {}, new_string: [] }, { path: "a", edits: [1, null, {}] }]) assert.deepEqual(editsOfInput("Edit", odd), []);
  });

  test("the result's record states line numbers", () => {
    const claude = editsOfRecord({ toolUseResult: { filePath: "/a", structuredPatch: [{ oldStart: 7, oldLines: 2, newStart: 9, newLines: 2, lines: [" same", "-old", "+new"] }] } });
    assert.deepEqual(numbers(claude[0]), ["7,9 same", "8,-old", ",10+new"]);
    const codex = editsOfRecord({ payload: { changes: { "/a": { type: "update", unified_diff: "@@ -3,2 +3,2 @@\n same\n-old\n+new\n", move_path: "/b" }, "/c": { type: "add", content: "one\ntwo\n" } } } });
    assert.deepEqual(codex.map(({ path, moved_to, kind }) => [path, moved_to, kind]), [["/a", "/b", "edit"], ["/c", undefined, "add"]]);
    assert.deepEqual(numbers(codex[0]), ["3,3 same", "4,-old", ",4+new"]);
    assert.deepEqual(numbers(codex[1]), [",1+one", ",2+two"]);
    const copilot = editsOfRecord({ data: { result: { detailedContent: "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1,1 +1,1 @@\n-old\n+new\n" } } });
    assert.deepEqual([copilot[0].path, ...numbers(copilot[0])], ["x.c", "1,-old", ",1+new"]);
    assert.deepEqual(editsOfRecord({ structuredPatch: [], changes: {}, diff: "no diff" }), []);
  });

  test("large and odd texts are bounded", () => {
    const [edit] = editsOfInput("Edit", { file_path: "/a", old_string: Array.from({ length: 4000 }, (_, n) => `a${n}`).join("\n"), new_string: Array.from({ length: 4000 }, (_, n) => `b${n}`).join("\n") });
    assert.equal(edit.hunks[0].lines.length, 5000);
    let nested = { structuredPatch: [{ lines: ["+x"] }] };
    for (let n = 0; n < 10_000; n++) nested = { nested };
    assert.deepEqual(editsOfRecord(nested), []);
  });
});

describe("records", () => {
  const long = "x".repeat(5000);

  test("a cut text is found by its beginning, also in JSON inside a text and in blocks", () => {
    const start = long.slice(0, 4096);
    assert.equal(wholeText({ a: ["short", { text: long }] }, start), long);
    assert.equal(wholeText({ arguments: JSON.stringify({ cmd: long }) }, start), long);
    assert.equal(wholeText({ content: [{ type: "text", text: long }, { type: "text", text: "end" }] }, start, 5004), `${long}\nend`);
    assert.equal(wholeText({ a: `${"\u001b"}[1m${long}` }, `␛[1m${long.slice(0, 4000)}`), `␛[1m${long}`);
    assert.equal(wholeText({ a: "something else" }, start), undefined);
    assert.equal(wholeText({ a: start }, start), undefined); // not longer
  });

  test("an input gets its cut texts, and nothing else", () => {
    const record = { input: { file_path: "/a", content: long, note: `kept ${long}` } };
    const whole = wholeInput(record, { file_path: "/a", content: long.slice(0, 100), note: "kept" }, (path) => (path.join("/") === "content" ? 5000 : undefined));
    assert.deepEqual(whole, { file_path: "/a", content: long, note: "kept" });
  });

  test("pictures: the bytes say what they are; SVG, HTML and huge pictures are none", () => {
    const image = png(12, 7);
    const svg = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").toString("base64");
    const found = imagesOf({ content: [{ type: "image", source: { type: "base64", media_type: "image/svg+xml", data: image } }, { source: { media_type: "image/png", data: svg } }, { image_url: `data:image/png;base64,${image}` }, { image_url: `data:image/svg+xml;base64,${svg}` }, { data: "not base64!", mimeType: "image/png" }] });
    assert.deepEqual(found.map(({ type, width, height }) => [type, width, height]), [["image/png", 12, 7], ["image/png", 12, 7]]);
    const huge = Buffer.from(image, "base64");
    huge.writeUInt32BE(60_000, 16);
    huge.writeUInt32BE(60_000, 20);
    assert.equal(imageHeader(huge), undefined);
    assert.deepEqual(imageHeader(Buffer.from("GIF89a\x0a\x00\x05\x00", "latin1")), { type: "image/gif", width: 10, height: 5 });
    assert.deepEqual(imageHeader(Buffer.from("ffd8ffe000104a46494600010100000100010000ffc0001108000700090301220002110103110100", "hex")), { type: "image/jpeg", width: 9, height: 7 });
    assert.deepEqual(imageHeader(Buffer.concat([Buffer.from("RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0", "latin1"), Buffer.from([8, 0, 0, 3, 0, 0])])), { type: "image/webp", width: 9, height: 4 });
    for (const other of ["", "<html>", "%PDF-1.7", "BM\x00\x00"]) assert.equal(imageHeader(Buffer.from(other, "latin1")), undefined);
  });
});

describe("resume commands", () => {
  const id = "6f0c1e52-0d1e-4f6e-9a51-2f0f3ce0a001";
  const line = (words, session = id, project = undefined, host = "dev7") => resumeLine(words, { session, host, project });

  test("the program's words, then the id; a hub's suffix is removed", () => {
    assert.equal(line(["claude", "--resume"]), `claude --resume ${id}`);
    assert.equal(line(["codex", "resume"], `${id}@dev7`), `codex resume ${id}`);
    assert.equal(line(undefined), "");
  });

  test("hostile names are quoted, or there is no command", () => {
    const codex = ["codex", "resume"];
    assert.equal(line(codex, "a; rm -rf ~"), "codex resume 'a; rm -rf ~'");
    assert.equal(line(codex, "it's $(x) `y`"), `codex resume 'it'\\''s $(x) \`y\`'`);
    for (const refused of ["--dangerous", "", "a\nb", "a\u001b[31m", "a\u202eb", "a␛b", "@dev7"]) assert.equal(line(codex, refused), "", refused);
    assert.equal(shellQuote("/home/ada/a b"), "'/home/ada/a b'");
    assert.equal(line(["pi", "--session"], id, "/home/ada/it's"), `cd '/home/ada/it'\\''s' && pi --session ${id}`);
    for (const unknown of ["-x", "/home/ada/‹U+202E›x"]) assert.equal(line(["pi", "--session"], id, unknown), ""); // not the directory's real name
  });
});

test("places: a stream and a cursor, with @ or a colon between them", () => {
  const place = { stream: "claude/-home-ada/6f@x", cursor: "125.1.f00d" };
  assert.deepEqual(parsePlace(placeText(place)), place);
  assert.deepEqual(parsePlace("claude/a:125.1.f00d"), { stream: "claude/a", cursor: "125.1.f00d" });
  for (const none of ["", "x", "@1", "a@"]) assert.equal(parsePlace(none), undefined);
});

test("links lead to http, https and mailto only", () => {
  for (const href of ["https://a.example/x?y#z", "http://a.example/", "mailto:ada@example.org"]) assert.equal(safeAddress(href), href);
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil.example", "/?session=x", "#x", "", "blob:http://a/b"]) assert.equal(safeAddress(href), undefined, href);
});

test("coloured code is the code, character by character", () => {
  const code = 'const a = "<b>&amp;</b>"; // <script>\nfunction f() { return `${a}`; }\n';
  const spans = highlight(code, "ts");
  assert.equal(spans.map(({ text }) => text).join(""), code);
  assert.ok(spans.some(({ scope, text }) => scope === "keyword" && text === "const"));
  assert.ok(spans.some(({ scope }) => scope === "string"));
  assert.equal(highlight(code, "no-such-language"), undefined);
});

describe("colours of diffs", () => {
  const edit = (path, before, after) => editsOfInput("Edit", { file_path: path, old_string: before, new_string: after });
  const linesOf = (edits) => edits.flatMap(({ hunks }) => hunks.flatMap(({ lines }) => lines));
  const joined = (spans) => spans?.map(({ text }) => text).join("");
  const scopes = (spans) => Object.fromEntries(spans.filter(({ scope }) => scope).map(({ text, scope }) => [text, scope]));

  test("the language is that of the file's extension or name", () => {
    const cases = { "/a/b.ts": "ts", "src/HORN.CPP": "cpp", "C:\\x\\y.py": "py", "/a.d/Makefile": "", "/a/.bashrc": "bash", "Gemfile": "ruby", ".ts": "", "a.": "", "/a/b.<img src=x>": "", "x.constructor": "constructor", "constructor": "", "": "" };
    for (const [path, language] of Object.entries(cases)) assert.equal(languageOf(path), language, path);
  });

  test("each line has the spans of its text, also of a comment or string that began in an earlier line", () => {
    const edits = edit("/a/b.ts", "/* one\ntwo */\nconst a = 1;\nkeep();", "/* one\nthree */\nconst a = `x\ny`;\nkeep();");
    const colours = coloursOf(edits, highlight);
    const lines = linesOf(edits);
    for (const line of lines) assert.equal(joined(colours.get(line)), line.text);
    const line = (kind, text) => scopes(colours.get(lines.find((one) => one.kind === kind && one.text === text)));
    assert.deepEqual(line("-", "two */"), { "two */": "comment" });
    assert.deepEqual(line("+", "three */"), { "three */": "comment" });
    assert.deepEqual(line("+", "y`;"), { "y`": "string" });
    assert.equal(line("-", "const a = 1;").const, "keyword");
  });

  test("marked words keep their text, divided at the borders of spans", () => {
    const parts = [{ text: "const ", changed: false }, { text: "a = 1", changed: true }, { text: ";", changed: false }];
    const spans = [{ text: "const", scope: "keyword" }, { text: " a = ", scope: "" }, { text: "1", scope: "number" }, { text: ";", scope: "" }];
    const divided = divideParts(parts, spans);
    assert.deepEqual(divided.map(({ changed, spans }) => [changed, spans.map(({ text, scope }) => `${scope}:${text}`)]), [
      [false, ["keyword:const", ": "]], [true, [":a = ", "number:1"]], [false, [":;"]]]);
    assert.equal(divideParts([{ text: "longer than the spans", changed: true }], [{ text: "longer", scope: "x" }]).map(({ spans }) => joined(spans)).join(""), "longer than the spans");
  });

  test("what is too long, of an unknown language, or no line at all stays plain", () => {
    const long = "x = 1;\n".repeat(coloured_length_max / 7 + 1);
    const small = edit("/a/b.ts", "let a = 1;", "let a = 2;");
    assert.equal(coloursOf(edit("/a/b.ts", "", long), highlight).size, 0);
    assert.equal(coloursOf([...edit("/a/b.ts", "", long), ...small], highlight).size, 0); // the limit is of the whole call
    assert.ok(coloursOf(small, highlight).size > 0);
    for (const path of ["/a/b.txt", "/a/b", "/a/b.constructor", "/a/b.__proto__"]) assert.equal(coloursOf(edit(path, "let a = 1;", "let a = 2;"), highlight).size, 0, path);
    const [odd] = editsOfRecord({ filePath: "/a/b.ts", structuredPatch: [{ oldStart: 1, newStart: 1, lines: ["+const a = 1;\n+injected", "-let b"] }] });
    assert.equal(coloursOf([odd], highlight).size, 0);
  });

  test("random changes never change a text", () => {
    let seed = 7;
    const random = (max) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % max;
    const words = ["const ", "\"", "'", "`${", "}", "/*", "*/", "//", "<b>", "</b>", "&amp;", "\n", "\n", " ", "été", "\u{1f600}", "\r", "\u2028", "1e9"];
    const text = () => Array.from({ length: random(60) }, () => words[random(words.length)]).join("");
    for (let n = 0; n < 300; n++) {
      const edits = edit(`/a/b.${["ts", "cpp", "py", "html", "sh", "yml"][n % 6]}`, text(), text());
      const colours = coloursOf(edits, highlight);
      for (const line of linesOf(edits)) {
        const spans = colours.get(line);
        if (spans) assert.equal(joined(spans), line.text);
        if (spans && line.parts) assert.equal(divideParts(line.parts, spans).map((part) => joined(part.spans)).join(""), line.text);
      }
    }
  });
});
