// Bundles web/src into src/neural/report/bundle: one script and one style sheet for pages, and one
// module for notebooks, with its style inside. The build is reproducible: the same sources give the
// same bytes.
//
//   npm ci && npm run build            into the package
//   node build.mjs FOLDER              into another folder, to compare

import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { pathToFileURL } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

const LICENCES =
  "Preact, copyright Jason Miller; uPlot, copyright Leon Sorokin; both under the MIT licence, NOTICE.txt"

/**
 * esbuild plugin: `import panes from "panes:./folder"` is an array with the default export of every
 * *.tsx file in that folder, each with its file name as `key`. A new pane needs no other edit.
 * `figures:./folder` does the same for figures (src/figure.ts).
 *
 * It is part of build.mjs because the checksum of the sources covers this file.
 */
export const panesPlugin = {
  name: "panes",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(panes|figures):/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.slice(path.indexOf(":") + 1)),
      namespace: "folder",
    }))
    onLoad({ filter: /.*/, namespace: "folder" }, ({ path: folder }) => {
      const files = readdirSync(folder)
        .filter((name) => name.endsWith(".tsx"))
        .sort()
      const imports = files.map((name, i) => `import entry${i} from ${JSON.stringify(`./${name}`)}`)
      const entries = files.map(
        (name, i) => `{ key: ${JSON.stringify(basename(name, ".tsx"))}, ...entry${i} }`,
      )
      const contents = `${imports.join("\n")}\nexport default [${entries.join(", ")}]`
      return { contents, loader: "js", resolveDir: folder, watchDirs: [folder] }
    })
  },
}

/** Options that the bundle and the tests share. */
export const SHARED_OPTIONS = {
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
  plugins: [panesPlugin],
}

if (import.meta.url === pathToFileURL(process.argv[1]).href)
  await buildBundle(process.argv[2] ?? "../src/neural/report/bundle")

async function buildBundle(folder) {
  await build({
    ...SHARED_OPTIONS,
    entryPoints: { neural: "src/main.tsx" },
    outdir: folder,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "ascii", // the page may be read in any encoding
    legalComments: "none",
    banner: { js: `/* sources ${hashSources()}. ${LICENCES} */` },
  })
  await buildWidget(`${folder}/widget.js`)
  // A page has the bundle inside a <script> element: no string in it may look like the end tag.
  const script = `${folder}/neural.js`
  const text = readFileSync(script, "utf8")
    .replaceAll("</script", "<\\/script")
    .replaceAll("<!--", "<\\!--")
  writeFileSync(script, text)
  for (const file of ["neural.js", "neural.css", "widget.js"]) {
    const bytes = readFileSync(`${folder}/${file}`)
    console.log(`${file}  ${bytes.length} bytes, ${gzipSync(bytes).length} compressed`)
  }
}

/** The module for notebooks (src/widget.tsx). Its style is for a shadow root: `:host`, not `:root`. */
async function buildWidget(file) {
  const { outputFiles } = await build({
    ...SHARED_OPTIONS,
    entryPoints: { widget: "src/widget.tsx" },
    outdir: "unused", // esbuild needs it to name the style sheet
    write: false,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    banner: { js: `/* ${LICENCES} */` },
  })
  const [script, style] = [".js", ".css"].map(
    (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text,
  )
  const hostStyle = style
    .replaceAll(/:root(:not\([^)]*\)|\[[^\]]*\])?/g, (_, condition) =>
      condition ? `:host(${condition})` : ":host",
    )
    .replaceAll(/(^|[},])body(?=[{,])/g, "$1.widget")
  writeFileSync(
    file,
    script.replaceAll("WIDGET_STYLE", () => JSON.stringify(hostStyle)),
  )
}

/** Checksum of all sources. tests/report/test_bundle.py compares it to find a stale bundle without Node. */
function hashSources() {
  const sources = readdirSync("src", { recursive: true })
    .map((name) => `src/${name}`)
    .filter((name) => /\.(tsx?|css)$/.test(name))
  const total = createHash("sha256")
  for (const name of [...sources, "build.mjs", "package-lock.json", "package.json"].sort()) {
    const digest = createHash("sha256").update(readFileSync(name)).digest("hex")
    total.update(`${name} ${digest}\n`)
  }
  return total.digest("hex")
}
