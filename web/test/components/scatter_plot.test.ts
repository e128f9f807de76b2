import assert from "node:assert/strict"
import { test } from "node:test"

import { ScatterPlot } from "../../src/components/scatter_plot"
import type { Measure } from "../../src/run_data"

/** All values of a property in a tree of elements. */
function collect(node: unknown, property: string): unknown[] {
  if (Array.isArray(node)) return node.flatMap((child) => collect(child, property))
  const props = (node as { props?: Record<string, unknown> } | null)?.props
  if (!props) return []
  const own = property in props ? [props[property]] : []
  return [...own, ...collect(props.children, property)]
}

test("a trail begins at the first snapshot", () => {
  const steps = Array.from({ length: 40 }, (_, index) => 10 * index)
  const values = Float32Array.from(steps)
  const measure: Measure = {
    ...{ unit: "", description: "", axes: "head", steps },
    ...{ shape: [40, 1, 1], values },
  }
  const tree = ScatterPlot({
    ...{ labels: ["x", "y"], x: measure, y: measure, step: 390, layers: 1, layer: 0, head: 0 },
    ...{ theme: "light", onHead: () => {} },
  })
  const [trail] = collect(tree, "points") as string[]
  assert.equal(trail.split(" ").length, 40)
})
