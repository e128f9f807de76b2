// What the attention pane shows of the selected head, as the address stores it.

import { parseWeightScale, type WeightScaleName } from "./draw/weight_scale"
import type { Route } from "./route"

export type AttentionView = "map" | "lines" | "list" | "steps" | "products"
export const VIEW_NAMES: Record<AttentionView, string> = {
  map: "map",
  lines: "lines",
  list: "list",
  steps: "over time",
  products: "query · key",
}

/** Which heads: the selected one, or all of its layer or of the network, combined or in a colour each. */
export type HeadScope = "head" | "layer" | "all"
export type HeadCombination = "mean" | "maximum" | "each"

export interface AttentionOptions {
  view: AttentionView
  scope: HeadScope
  combination: HeadCombination
  /** "keys": keys are rows, and a row shows which queries attend to the key. */
  direction: "queries" | "keys"
  /** The step whose weights are subtracted; null: none. */
  minus: number | null
  colours: WeightScaleName
}

export function parseOptions(route: Route): AttentionOptions {
  const view = String(route.view ?? "")
  const [scope, combination] = String(route.heads ?? "").split("-")
  const isScope = scope === "layer" || scope === "all"
  const isEach = combination === "each" && view === "lines" // only lines can be told apart
  return {
    view: Object.hasOwn(VIEW_NAMES, view) ? (view as AttentionView) : "map",
    scope: isScope ? scope : "head",
    combination: combination === "maximum" ? combination : isEach ? "each" : "mean",
    direction: route.direction === "keys" ? "keys" : "queries",
    minus: /^\d+$/.test(String(route.minus ?? "")) ? Number(route.minus) : null,
    colours: parseWeightScale(route.colours),
  }
}

/** Value of `heads` in the address. */
export function formatHeads(scope: HeadScope, combination: HeadCombination): string | undefined {
  return scope === "head" ? undefined : `${scope}-${combination}`
}
