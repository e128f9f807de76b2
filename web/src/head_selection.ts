// Which head the page shows, and in which order it shows all of them: by measure or by role.

import type { Route } from "./route"
import { countHeads, valuesAtStep, type Run } from "./run_data"

export type HeadIndex = [layer: number, head: number]

/** Names that assign no role to a head: "uniform" attends to everything alike, "mixed" has none. */
const NO_ROLE = new Set(["", "mixed", "uniform"])

export function isRole(name: string | undefined): name is string {
  return name !== undefined && !NO_ROLE.has(name)
}

/**
 * The step from which a head will have its role, if that is after `step`; null if it has its role by
 * then, has none, or the onset is unknown.
 */
export function findLaterOnset(run: Run, step: number, [layer, head]: HeadIndex): number | null {
  const onset = run.role_onsets?.[layer]?.[head] ?? null
  return onset !== null && onset > step && isRole(run.roles?.[layer]?.[head]) ? onset : null
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

export interface RoleCount {
  role: string
  /** Heads that have the role at the end. */
  heads: number
  /** Those of them that have it at the step already. */
  headsAtStep: number
}

/** How many heads have each role, real roles first and the most frequent first. */
export function countRoles(run: Run, step: number): RoleCount[] {
  const counts = new Map<string, RoleCount>()
  run.roles?.forEach((names, layer) => {
    names.forEach((role, head) => {
      if (!role) return // the layer has fewer heads
      const count = counts.get(role) ?? { role, heads: 0, headsAtStep: 0 }
      count.heads += 1
      if (findLaterOnset(run, step, [layer, head]) === null) count.headsAtStep += 1
      counts.set(role, count)
    })
  })
  return [...counts.values()].sort(
    (a, b) =>
      Number(isRole(b.role)) - Number(isRole(a.role)) ||
      b.heads - a.heads ||
      a.role.localeCompare(b.role),
  )
}
