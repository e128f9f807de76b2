// Which head the page shows, and in which order it shows all of them: by measure or by role.

import type { Route } from "./route"
import { countHeads, valuesAtStep, type Run } from "./run_data"

export type HeadIndex = [layer: number, head: number]

/** Names that assign no role to a head: "uniform" attends to everything alike, "mixed" has none. */
const NO_ROLE = new Set(["", "mixed", "uniform"])

export function isRole(name: string | undefined): name is string {
  return name !== undefined && !NO_ROLE.has(name)
}

export function listHeads(run: Run): HeadIndex[] {
  return run.layers.flatMap((_, layer) =>
    Array.from({ length: countHeads(run, layer) }, (_, head): HeadIndex => [layer, head]),
  )
}

/** The head of the address, or the one to start with; limited to those that the run has. */
export function getSelectedHead(run: Run | null, route: Route): HeadIndex {
  if (!run) return [route.layer ?? 0, route.head ?? 0]
  if (route.layer === undefined && route.head === undefined) return findFirstHead(run)
  const layer = Math.min(route.layer ?? 0, Math.max(0, run.layers.length - 1))
  const heads = countHeads(run, layer)
  return [layer, heads ? Math.min(route.head ?? 0, heads - 1) : (route.head ?? 0)]
}

/**
 * The head to start with: the one with the strongest role; without roles, the most selective one,
 * which has the lowest relative entropy at the end.
 */
export function findFirstHead(run: Run): HeadIndex {
  const heads = listHeads(run)
  const best = (value: (head: HeadIndex) => number | null | undefined, among = heads) =>
    among.reduce<{ head: HeadIndex; value: number } | null>((found, head) => {
      const next = value(head)
      if (next === null || next === undefined || !Number.isFinite(next)) return found
      return found && found.value >= next ? found : { head, value: next }
    }, null)?.head
  const withRole = heads.filter(([layer, head]) => isRole(run.roles?.[layer]?.[head]))
  const entropy = measureAtEnd(run, "relative_entropy")
  return (
    best(([layer, head]) => run.role_strengths?.[layer]?.[head], withRole) ??
    withRole[0] ??
    best((index) => negate(entropy?.(index))) ?? [0, 0]
  )
}

function negate(value: number | undefined): number | undefined {
  return value === undefined ? undefined : -value
}

function measureAtEnd(run: Run, name: string): ((head: HeadIndex) => number) | null {
  return readHeadMeasure(run, name, Infinity)
}

/** Values of a measure by head at a step; null if there are none. */
export function readHeadMeasure(
  run: Run,
  name: string,
  step: number,
): ((head: HeadIndex) => number) | null {
  const measure = run.measures[name]
  const values = measure?.axes === "head" ? valuesAtStep(measure, step) : null
  if (!values) return null
  const columns = measure.shape[2]
  return ([layer, head]) => (head < columns ? values[layer * columns + head] : NaN)
}

/** Orders of the grid: by position, by role, or by one of the measures of heads. */
export const SORT_BY_LAYER = "layer"
export const SORT_BY_ROLE = "role"

export function listSortKeys(run: Run): string[] {
  const measures = Object.keys(run.measures).filter((name) => run.measures[name].axes === "head")
  return [SORT_BY_LAYER, ...(run.roles ? [SORT_BY_ROLE] : []), ...measures]
}

/**
 * Heads in the order of `sort`, those of `role` only if it is given: by measure, the largest first;
 * by role, the roles in alphabetical order and heads without one last. Heads without a value come last.
 */
export function arrangeHeads(run: Run, sort: string, role: string, step: number): HeadIndex[] {
  const roleOf = ([layer, head]: HeadIndex) => run.roles?.[layer]?.[head] ?? ""
  const heads = listHeads(run).filter((head) => !role || roleOf(head) === role)
  if (sort === SORT_BY_ROLE) {
    const rank = (head: HeadIndex) => `${isRole(roleOf(head)) ? 0 : 1}${roleOf(head)}`
    return heads.sort((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0))
  }
  const value = readHeadMeasure(run, sort, step)
  if (!value) return heads
  const finite = (head: HeadIndex) => (Number.isFinite(value(head)) ? value(head) : -Infinity)
  return heads.sort((a, b) => (finite(a) === finite(b) ? 0 : finite(b) - finite(a)))
}

/** How many heads have each role, real roles first and the most frequent first. */
export function countRoles(roles: string[][]): [role: string, heads: number][] {
  const counts = new Map<string, number>()
  for (const name of roles.flat()) if (name) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(
    ([a, countA], [b, countB]) =>
      Number(isRole(b)) - Number(isRole(a)) || countB - countA || a.localeCompare(b),
  )
}
