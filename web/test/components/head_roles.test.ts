import assert from "node:assert/strict"
import { test } from "node:test"

import { HeadRoles } from "../../src/components/head_roles"
import type { Run } from "../../src/run_data"

function readText(node: unknown): string {
  if (Array.isArray(node)) return node.map(readText).join("")
  if (typeof node === "string" || typeof node === "number") return String(node)
  const props = (node as { props?: { children?: unknown } } | null)?.props
  return props ? readText(props.children) : ""
}

test("at any step the chips add up to all heads", () => {
  const run = {
    roles: [["local", "local", "mixed"]],
    role_onsets: [[0, 100, null]],
  } as unknown as Run
  const chips = (step: number) =>
    readText(HeadRoles({ run, step, selected: "", onRole: () => {} })).replace(/^.*?:/, "")
  assert.equal(chips(50), "local 1 of 2mixed 1no role yet 1")
  assert.equal(chips(100), "local 2mixed 1")
})
