// web/src → src/neural/views/bundle: one script and one style sheet, the same bytes from the same sources.
//
//   npm ci && npm run build            into the package
//   node build.mjs FOLDER              somewhere else, to compare

import { build } from "esbuild"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { gzipSync } from "node:zlib"

const folder = process.argv[2] ?? "../src/neural/views/bundle"
const libraries = "Preact, copyright Jason Miller; uPlot, copyright Leon Sorokin; both under the MIT licence, NOTICE.txt"

await build({
  entryPoints: { neural: "src/main.tsx" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "ascii", // the page may be read in any encoding
  legalComments: "none",
  banner: { js: `/* sources ${sourcesSum()}. ${libraries} */` },
  logLevel: "warning",
})

// in a page the bundle stands inside a <script>: nothing in it may look like its end
const script = `${folder}/neural.js`
const text = readFileSync(script, "utf8").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--")
writeFileSync(script, text)
for (const file of ["neural.js", "neural.css"]) {
  const bytes = readFileSync(`${folder}/${file}`)
  console.log(`${file}  ${bytes.length} bytes, ${gzipSync(bytes).length} compressed`)
}

/** Of all sources, so that a bundle that was not built from them is noticed without building: tests/views/test_bundle.py. */
function sourcesSum() {
  const sources = readdirSync("src", { recursive: true }).map((name) => `src/${name}`).filter((name) => /\.(tsx?|css)$/.test(name))
  const sum = createHash("sha256")
  for (const name of [...sources, "build.mjs", "package-lock.json", "package.json"].sort()) {
    const part = createHash("sha256").update(readFileSync(name)).digest("hex")
    sum.update(`${name} ${part}\n`)
  }
  return sum.digest("hex")
}
