// The build collects panes from a folder: a new file is enough.

import assert from "node:assert/strict"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, test } from "node:test"
import { build } from "esbuild"

import { panesPlugin } from "../build.mjs"

const folder = mkdtempSync(join(tmpdir(), "neural-panes-"))
mkdirSync(join(folder, "panes"))
writeFileSync(join(folder, "entry.ts"), 'export { default } from "panes:./panes"')
after(() => rmSync(folder, { recursive: true }))

function writePane(name, source) {
  writeFileSync(join(folder, "panes", name), source)
}

async function collectPanes() {
  const { outputFiles } = await build({
    entryPoints: [join(folder, "entry.ts")],
    bundle: true,
    format: "esm",
    write: false,
    logLevel: "silent",
    plugins: [panesPlugin],
  })
  const url = `data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`
  return (await import(url)).default
}

test("a new file in the folder is a new pane, whose key is the file name", async () => {
  writePane("curves.tsx", 'export default { title: "Curves", order: 1 }')
  writePane("notes.md", "not a pane")
  assert.deepEqual(await collectPanes(), [{ key: "curves", title: "Curves", order: 1 }])
  writePane("head_map.tsx", 'export default { title: "Head map", order: 2 }')
  assert.deepEqual(
    (await collectPanes()).map((pane) => pane.key),
    ["curves", "head_map"],
  )
})

test("a file without a default export fails the build and is named", async () => {
  writePane("broken.tsx", "export const title = 'no default'")
  await assert.rejects(collectPanes(), /broken\.tsx.*default/)
})

test("the type checker sees every pane: each states the interface that it satisfies", () => {
  for (const panes of ["src/panes", "src/board/panes"])
    for (const name of readdirSync(panes))
      assert.match(readFileSync(join(panes, name), "utf8"), /^} satisfies PaneDefinition$/m, name)
})
