// The strongest pairs of one row as a list: token, bar, weight.

import type { RankedCell } from "../attention_matrix"
import { divergingEnds } from "../draw/colours"
import { formatWeight } from "../format"
import type { Theme } from "../theme"

interface Props {
  cells: RankedCell[]
  names: string[]
  padded: boolean[]
  /** Whether bars have the colours of negative and positive values. */
  signed: boolean
  /** The |weight| of a full bar. */
  scale: number
  theme: Theme
}

export function RankedTokens({ cells, names, padded, signed, scale, theme }: Props) {
  const [less, more] = divergingEnds(theme)
  return (
    <ol class="ranked-tokens">
      {cells.map(({ column, weight }) => (
        <li key={column} data-token={column} data-weight={weight}>
          <span class="weight-bar" aria-hidden="true">
            <i
              style={{
                width: `${Math.min(100, (100 * Math.abs(weight)) / scale)}%`,
                ...(signed ? { background: weight < 0 ? less : more } : {}),
              }}
            />
          </span>
          <span class="weight">{formatWeight(weight)}</span>
          <span class={padded[column] ? "token padding" : "token"} title={names[column]}>
            {names[column]}
          </span>
          <span class="muted position">{column}</span>
        </li>
      ))}
    </ol>
  )
}
