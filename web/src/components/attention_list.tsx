// Attention as a list: every query with its full text and its strongest keys. For long tokens, such as
// sentences, which do not fit beside a map.

import { useMemo } from "preact/hooks"

import { rankRow, type AttentionMatrix } from "../attention_matrix"
import type { Theme } from "../theme"
import { RankedTokens } from "./ranked_tokens"
import { joinClasses } from "./token_strip"

interface Props {
  matrix: AttentionMatrix
  rowNames: string[]
  columnNames: string[]
  paddedRows: boolean[]
  paddedColumns: boolean[]
  row: number
  theme: Theme
  description: string
  onSelect: (row: number) => void
}

const KEYS_PER_ROW = 3

export function AttentionList(props: Props) {
  const { matrix, rowNames, columnNames, paddedRows, paddedColumns, row, theme } = props
  const ranked = useMemo(
    () => rowNames.map((_, index) => rankRow(matrix, index, KEYS_PER_ROW)),
    [matrix, rowNames],
  )
  return (
    <ol class="attention-list" aria-label={props.description}>
      {rowNames.map((name, index) =>
        paddedRows[index] ? null : (
          <li key={index} class={joinClasses(index === row && "current")}>
            <button
              type="button"
              class="link"
              aria-pressed={index === row}
              onClick={() => props.onSelect(index)}
            >
              <span class="muted position">{index}</span> {name}
            </button>
            <RankedTokens
              cells={ranked[index]}
              names={columnNames}
              padded={paddedColumns}
              signed={matrix.signed}
              scale={matrix.scale}
              theme={theme}
            />
          </li>
        ),
      )}
    </ol>
  )
}
