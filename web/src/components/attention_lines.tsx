// Attention as lines between tokens: queries on the left, keys on the right; the stronger the line, the
// larger the weight. One head, or several in a colour each. Pointing at a token leaves only its lines.

import { useMemo } from "preact/hooks"

import { listLines, type AttentionMatrix, type TokenLine } from "../attention_matrix"
import { divergingEnds } from "../draw/colours"
import { shortenText, widestText } from "../draw/text"
import { scaleWeight, type WeightScaleName } from "../draw/weight_scale"
import { formatCount } from "../format"
import type { Theme } from "../theme"
import { joinClasses } from "./token_strip"

export interface LineGroup {
  name: string
  matrix: AttentionMatrix
  colour: string
}

/** A token of the left (queries) or right (keys) column. */
export interface LineToken {
  side: "query" | "key"
  index: number
}

interface Props {
  /** Heads, drawn over each other. All have the same shape; rows are queries. */
  groups: LineGroup[]
  queryNames: string[]
  keyNames: string[]
  paddedQueries: boolean[]
  paddedKeys: boolean[]
  /** Only its lines are drawn; null: all. */
  token: LineToken | null
  width: number
  colours: WeightScaleName
  theme: Theme
  description: string
  onPreview: (token: LineToken | null) => void
  onSelect: (token: LineToken) => void
}

/** Weaker lines are left out where all tokens are shown; they would hardly be visible. */
export const MIN_LINE_WEIGHT = 0.005
/** More lines would make the page slow. */
export const MAX_LINES = 3000
const ROW_PIXELS = 16
const MAX_LABEL_PIXELS = 150
const HEAD_PIXELS = 20
const GAP = 6

export function AttentionLines(props: Props) {
  const { groups, queryNames, keyNames, token, colours, theme } = props
  const maxLabel = Math.min(MAX_LABEL_PIXELS, 0.32 * props.width)
  const [queryTexts, keyTexts] = useMemo(
    () => [queryNames, keyNames].map((names) => names.map((name) => shortenText(name, maxLabel))),
    [queryNames, keyNames, maxLabel],
  )
  const left = Math.max(44, Math.ceil(widestText(queryTexts))) + GAP
  const rightLabel = Math.max(34, Math.ceil(widestText(keyTexts))) + GAP
  const width = Math.max(180, Math.min(props.width, left + rightLabel + 360))
  const right = width - rightLabel
  const { lines, leftOut } = useMemo(() => selectLines(groups, token), [groups, token])
  const height = HEAD_PIXELS + ROW_PIXELS * Math.max(queryNames.length, keyNames.length)
  const [less, more] = divergingEnds(theme)
  const y = (index: number) => HEAD_PIXELS + (index + 0.5) * ROW_PIXELS
  const column = (side: LineToken["side"], texts: string[], names: string[], padded: boolean[]) =>
    texts.map((text, index) => (
      <g
        key={`${side}${index}`}
        role="button"
        tabindex={(token?.side === side ? token.index : 0) === index ? 0 : -1}
        aria-label={`${side} ${names[index]} (${index})`}
        class={joinClasses(
          "line-token",
          padded[index] && "padding",
          token?.side === side && token.index === index && "current",
        )}
        data-side={side}
        data-token={index}
        onMouseEnter={() => props.onPreview({ side, index })}
        onFocus={() => props.onPreview({ side, index })}
        onBlur={() => props.onPreview(null)}
        onClick={() => props.onSelect({ side, index })}
        onKeyDown={(event) => moveFocus(event, () => props.onSelect({ side, index }))}
      >
        {/* the text alone would be a small target */}
        <rect
          x={side === "query" ? 0 : right}
          y={y(index) - ROW_PIXELS / 2}
          width={side === "query" ? left : width - right}
          height={ROW_PIXELS}
          class="target"
        />
        <text
          class="tick"
          x={side === "query" ? left - GAP : right + GAP}
          y={y(index) + 3.5}
          text-anchor={side === "query" ? "end" : "start"}
        >
          {text}
          <title>{names[index]}</title>
        </text>
      </g>
    ))
  return (
    <>
      <svg
        class="attention-lines"
        width={width}
        height={height}
        role="group"
        aria-label={props.description}
        onMouseLeave={() => props.onPreview(null)}
      >
        <text class="tick column-name" x={left - GAP} y={12} text-anchor="end">
          queries
        </text>
        <text class="tick column-name" x={right + GAP} y={12}>
          keys
        </text>
        <g class="lines">
          {lines.map(({ group, row, column, weight }) => {
            const { matrix, colour, name } = groups[group]
            const share = Math.abs(scaleWeight(weight / matrix.scale, colours))
            return (
              <line
                key={`${group} ${row} ${column}`}
                x1={left}
                y1={y(row)}
                x2={right}
                y2={y(column)}
                stroke={matrix.signed && groups.length === 1 ? (weight < 0 ? less : more) : colour}
                stroke-opacity={round(share)}
                stroke-width={round(0.6 + 2.4 * share)}
                data-head={name}
                data-query={row}
                data-key={column}
                data-weight={weight}
              />
            )
          })}
        </g>
        {column("query", queryTexts, queryNames, props.paddedQueries)}
        {column("key", keyTexts, keyNames, props.paddedKeys)}
      </svg>
      {groups.length > 1 ? (
        <p class="line-legend">
          {groups.map(({ name, colour }) => (
            <span key={name}>
              <i style={{ background: colour }} /> {name}
            </span>
          ))}
        </p>
      ) : null}
      <p class="muted hint">
        {token
          ? ""
          : lines.length
            ? `lines of weight ${MIN_LINE_WEIGHT} or more`
            : `no weight reaches ${MIN_LINE_WEIGHT}: point at a token to see its lines`}
        {leftOut ? `; ${formatCount(leftOut, "weaker line")} left out` : ""}
      </p>
    </>
  )
}

interface GroupLine extends TokenLine {
  group: number
}

/**
 * Lines of all groups: of one token all, otherwise the strongest MAX_LINES. Their order does not depend on
 * the weights, so that moving to another step changes lines but does not move them in the document.
 */
export function selectLines(
  groups: { matrix: AttentionMatrix }[],
  token: LineToken | null,
): { lines: GroupLine[]; leftOut: number } {
  const all: GroupLine[] = []
  groups.forEach(({ matrix }, group) => {
    for (const line of listLines(matrix, token ? 0 : MIN_LINE_WEIGHT * matrix.scale))
      if (!token || (token.side === "query" ? line.row : line.column) === token.index)
        all.push({ ...line, group })
  })
  if (all.length <= MAX_LINES) return { lines: all, leftOut: 0 }
  const sizes = all.map(({ weight }) => Math.abs(weight)).sort((a, b) => b - a)
  const lines = all.filter(({ weight }) => Math.abs(weight) > sizes[MAX_LINES])
  return { lines, leftOut: all.length - lines.length }
}

/** Arrow keys go to the next token of the column, or to the other column; Enter and space select. */
function moveFocus(event: KeyboardEvent, select: () => void): void {
  const current = event.currentTarget as SVGGElement
  const { side, token } = current.dataset
  const focusToken = (newSide: string, index: number): boolean => {
    const target = current.parentElement!.querySelector<SVGGElement>(
      `.line-token[data-side=${newSide}][data-token="${index}"]`,
    )
    target?.focus()
    return target !== null
  }
  const index = Number(token)
  const actions: Record<string, () => unknown> = {
    ArrowDown: () => focusToken(side!, index + 1),
    ArrowUp: () => focusToken(side!, index - 1),
    ArrowLeft: () => focusToken("query", index) || focusToken("query", 0),
    ArrowRight: () => focusToken("key", index) || focusToken("key", 0),
    Enter: select,
    " ": select,
  }
  const action = actions[event.key]
  if (!action) return
  event.preventDefault()
  event.stopPropagation() // the page's own arrow keys move the step
  action()
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
