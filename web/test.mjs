// npm test: everything that needs no browser, run by Node's test runner. TypeScript tests are
// bundled first, as the page is; tests of the build itself (*.test.mjs) run as they are.

import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build } from "esbuild"

import { SHARED_OPTIONS } from "./build.mjs"

const folder = mkdtempSync(join(tmpdir(), "neural-web-"))
const names = readdirSync("test", { recursive: true })
await build({
  ...SHARED_OPTIONS,
  entryPoints: names.filter((name) => name.endsWith(".test.ts")).map((name) => join("test", name)),
  outdir: folder,
  platform: "node",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
  loader: { ".css": "empty" },
})
const bundled = readdirSync(folder, { recursive: true }).map((name) => join(folder, name))
const plain = names.map((name) => join("test", name))
const files = [...bundled, ...plain].filter((name) => name.endsWith(".test.mjs"))
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], {
  stdio: "inherit",
})
rmSync(folder, { recursive: true })
process.exit(status ?? 1)
