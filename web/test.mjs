// npm test: what needs no browser, by Node's own runner.

import { build } from "esbuild"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const folder = mkdtempSync(join(tmpdir(), "neural-web-"))
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"))
await build({
  entryPoints: tests.map((name) => join("test", name)), outdir: folder, bundle: true, platform: "node", format: "esm", jsx: "automatic",
  jsxImportSource: "preact", outExtension: { ".js": ".mjs" }, sourcemap: "inline", logLevel: "warning", loader: { ".css": "empty" },
})
const files = readdirSync(folder).map((name) => join(folder, name))
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" })
rmSync(folder, { recursive: true })
process.exit(status ?? 1)
