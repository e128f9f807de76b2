// How many heads have each role at a step; a click shows only the heads that have it at the end.

import { formatInteger } from "../format"
import { countRoles, isRole, type RoleCount } from "../head_selection"
import type { Run } from "../run_data"
import { joinClasses } from "./token_strip"

interface Props {
  run: Run
  step: number
  /** The role whose heads are shown; "" for all. */
  selected: string
  onRole: (role: string) => void
}

/** What the names mean, for tooltips (neural/findings/head_roles.py defines them). */
export const ROLE_DESCRIPTIONS: Record<string, string> = {
  uniform: "attends to all visible keys alike: no role",
  mixed: "none of the known roles",
  sink: "attends to the first key",
  "previous token": "attends to the key before the query",
  induction: "attends to the token after the previous occurrence of the query's token",
  positional: "attends at one distance, the same for all queries",
  local: "attends within 3 positions",
  delimiter: "attends to blanks, punctuation and special tokens",
}

export function HeadRoles({ run, step, selected, onRole }: Props) {
  const counts = countRoles(run, step)
  const later = counts.reduce((sum, { heads, headsAtStep }) => sum + heads - headsAtStep, 0)
  return (
    <div class="roles" role="group" aria-label="roles">
      <span class="muted">{describeCounts(counts, step)}:</span>
      {counts.map(({ role, heads, headsAtStep }) => (
        <button
          type="button"
          key={role}
          class={joinClasses(role === selected && "selected", !isRole(role) && "plain")}
          aria-pressed={role === selected}
          title={ROLE_DESCRIPTIONS[role] ?? ""}
          onClick={() => onRole(role === selected ? "" : role)}
        >
          {role} <b>{formatInteger(headsAtStep)}</b>
          {headsAtStep < heads ? ` of ${formatInteger(heads)}` : ""}
        </button>
      ))}
      {later ? (
        <span class="muted">
          no role yet <b>{formatInteger(later)}</b>
        </span>
      ) : null}
    </div>
  )
}

/** `5 of 16 heads have a role`; at an earlier step also how many have one at the end. */
function describeCounts(counts: RoleCount[], step: number): string {
  const sum = (key: "heads" | "headsAtStep", among: RoleCount[]) =>
    among.reduce((total, count) => total + count[key], 0)
  const roles = counts.filter(({ role }) => isRole(role))
  const [atStep, atEnd] = [sum("headsAtStep", roles), sum("heads", roles)]
  const share = `${formatInteger(atStep)} of ${formatInteger(sum("heads", counts))} heads have a role`
  return atStep < atEnd
    ? `${share} at step ${formatInteger(step)}, ${formatInteger(atEnd)} at the end`
    : share
}
