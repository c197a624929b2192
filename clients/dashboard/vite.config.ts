// Three files with plain names, which CMake builds into the daemon: index.html, app.js, style.css; beside them LICENSES.txt.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

const packages = ["preact", "@preact/signals", "@preact/signals-core", "uplot"]; // what the bundle holds besides our own

function licenses(): string {
  return packages.map((name) => {
    const folder = join(import.meta.dirname ?? process.cwd(), "node_modules", name);
    const file = existsSync(folder) && readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} has no license file: which terms it comes with must be told`);
    return `${name}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  }).join("\n");
}

/** The texts go with the code, wherever it goes; a package that is new in the bundle must be named above. */
const withLicenses: Plugin = {
  name: "licenses",
  generateBundle(_, bundle) {
    const text = licenses();
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue;
      for (const id of Object.keys(chunk.modules)) {
        const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1];
        if (name && !packages.includes(name)) throw new Error(`${name} is in the bundle and not in vite.config.ts's list of licenses`);
      }
      chunk.code += `/*!\n${text.replaceAll("*/", "* /")}*/\n`;
    }
    this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: text });
  },
};

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  plugins: [withLicenses],
  build: {
    target: "es2022",
    outDir: process.env.EARSHOT_PAGE_OUT || "dist",
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: { output: { entryFileNames: "app.js", assetFileNames: (one) => (one.names.some((name) => name.endsWith(".css")) ? "style.css" : "[name][extname]") } },
  },
});
