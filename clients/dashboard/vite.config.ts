// Builds index.html, app.js, the parts that are loaded later (session.js, highlight.js) and style.css, which CMake embeds in the daemon, and LICENSES.txt.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

const packages = ["preact", "@preact/signals", "@preact/signals-core", "marked", "anser", "diff", "highlight.js"]; // third-party code in the bundle
const parts: Record<string, string> = { SessionPage: "session.js", highlight: "highlight.js" }; // page.cmake and the daemon's router name them, too

function licenses(names: readonly string[]): string {
  return names.map((name) => {
    const folder = join(import.meta.dirname ?? process.cwd(), "node_modules", name);
    const file = existsSync(folder) && readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    if (!file) throw new Error(`${name} has no license file, which the bundle must contain`);
    return `${name}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  }).join("\n");
}

/** Adds the license texts to the bundle; fails for a package that is not in `packages`. */
const withLicenses: Plugin = {
  name: "licenses",
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue;
      const used = new Set<string>();
      for (const id of Object.keys(chunk.modules)) {
        const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1];
        if (name && !packages.includes(name)) throw new Error(`${name} is in the bundle: add it to packages in vite.config.ts`);
        if (name) used.add(name);
      }
      if (!chunk.isEntry && !Object.values(parts).includes(chunk.fileName)) throw new Error(`${chunk.fileName} is a part that the daemon does not serve`);
      chunk.code += `/*!\n${licenses([...used]).replaceAll("*/", "* /")}*/\n`;
    }
    this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: licenses(packages) });
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
    rollupOptions: { output: { entryFileNames: "app.js", chunkFileNames: (chunk) => parts[chunk.name] ?? "[name].js", assetFileNames: (asset) => (asset.names.some((name) => name.endsWith(".css")) ? "style.css" : "[name][extname]") } },
  },
});
