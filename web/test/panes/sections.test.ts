import assert from "node:assert/strict"
import { test } from "node:test"

import type { VNode } from "preact"

import pane, { formatCell } from "../../src/panes/sections"
import type { PaneProps } from "../../src/pane"
import type { Index, Run, Section } from "../../src/run_data"

const index: Index = { title: "", kind: "report", runs: [], groups: [] }
const section: Section = {
  title: "Documents",
  text: "<b>Two</b> collections.",
  table_head: ["name", "documents"],
  table_rows: [
    ["training", 1200],
    ["validation", null],
  ],
}

function createRun(sections: Section[]): Run {
  return { id: "a", sections } as unknown as Run
}

/** All text of a component tree, in order. */
function collectText(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(collectText)
  if (typeof node === "string" || typeof node === "number") return [String(node)]
  if (!node || typeof node !== "object") return []
  const { type, props } = node as VNode<{ children?: unknown }>
  return typeof type === "function"
    ? collectText((type as (props: unknown) => unknown)(props))
    : collectText(props.children)
}

test("the pane is shown only for runs with sections", () => {
  assert.equal(pane.applies({ run: null, index }), false)
  assert.equal(pane.applies({ run: createRun([]), index }), false)
  assert.equal(pane.applies({ run: createRun([section]), index }), true)
})

test("title, text, head and rows are shown as text", () => {
  const tree = pane.component({ run: createRun([section]), index } as PaneProps)
  assert.deepEqual(collectText(tree), [
    "Documents",
    "<b>Two</b> collections.",
    "name",
    "documents",
    "training",
    "1,200",
    "validation",
    "",
  ])
})

test("every line of the text is a paragraph", () => {
  const run = createRun([{ ...section, text: "on 6 examples\nECE 0.05", table_rows: [] }])
  const tree = pane.component({ run, index } as PaneProps)
  assert.deepEqual(collectText(tree), ["Documents", "on 6 examples", "ECE 0.05"])
})

test("the tab is named after the first section", () => {
  const run = createRun([{ ...section, title: "Evaluation" }, section])
  assert.equal(pane.titleFor({ run, index }), "Evaluation")
  assert.equal(pane.titleFor({ run: null, index }), "Task")
})

test("cells are formatted by their type", () => {
  assert.deepEqual(["a", 0.12345, null].map(formatCell), ["a", "0.123", ""])
})
