// How many heads have each role; a click shows only these heads.

import { formatInteger } from "../format"
import { countRoles, isRole } from "../head_selection"
import { joinClasses } from "./token_strip"

interface Props {
  /** Names by layer and head; "" where a layer has fewer heads. */
  roles: string[][]
  /** The role whose heads are shown; "" for all. */
  selected: string
  onRole: (role: string) => void
}

/** What the names mean, for tooltips (neural/analysis/head_roles.py defines them). */
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

export function HeadRoles({ roles, selected, onRole }: Props) {
  const counts = countRoles(roles)
  const heads = counts.reduce((sum, [, count]) => sum + count, 0)
  const withRole = counts.reduce((sum, [role, count]) => sum + (isRole(role) ? count : 0), 0)
  return (
    <div class="roles" role="group" aria-label="roles">
      <span class="muted">
        {formatInteger(withRole)} of {formatInteger(heads)} heads have a role:
      </span>
      {counts.map(([role, count]) => (
        <button
          type="button"
          key={role}
          class={joinClasses(role === selected && "selected", !isRole(role) && "plain")}
          aria-pressed={role === selected}
          title={ROLE_DESCRIPTIONS[role] ?? ""}
          onClick={() => onRole(role === selected ? "" : role)}
        >
          {role} <b>{formatInteger(count)}</b>
        </button>
      ))}
    </div>
  )
}
