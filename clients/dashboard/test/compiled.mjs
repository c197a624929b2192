// Imports a module of the page into Node, for tests of functions that need no browser.
import { join } from "node:path";
import { build } from "esbuild";

// What modules of the page touch while they are loaded.
const browser = `
const addEventListener = () => {}, location = { search: "", hash: "", host: "", protocol: "http:", href: "http://127.0.0.1/" };
const document = { visibilityState: "visible", addEventListener, getElementById: () => null };
const sessionStorage = { getItem: () => null }, setInterval = () => 0;
const window = { setTimeout, addEventListener };
`;

/** Returns the exports of src/NAME. */
export async function compiled(name) {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../src", name)], bundle: true, write: false, format: "esm", platform: "node", target: "es2022",
    jsx: "automatic", jsxImportSource: "preact", banner: { js: browser },
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
