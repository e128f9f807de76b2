// One head at one step: its map with tokens on both axes, and the text shaded by one query's weights.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"

import { shadeCell, shadeSigned } from "../draw/colours"
import { findCell, drawAttentionMap } from "../draw/heatmap"
import { countVisibleKeys, weightAt, type LayerMaps } from "../attention_maps"
import { formatNumber, formatToken } from "../format"
import type { Theme } from "../theme"

interface Props {
  maps: LayerMaps
  head: number
  theme: Theme
  queries?: string[]
  keys?: string[]
  /** The selected query (row). */
  query?: number
  onQuery?: (query: number) => void
  /** How many positions were pooled into a cell. */
  positionsPerCell?: number
}

const MIN_TICK_PIXELS = 11
/** Longer labels are shortened beside the map; the readout and the text below show all of them. */
const MAX_TICK_CHARACTERS = 12

export function HeadDetail({
  maps,
  head,
  theme,
  queries,
  keys,
  query,
  onQuery,
  positionsPerCell = 1,
}: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const container = useRef<HTMLDivElement>(null)
  const [hovered, setHovered] = useState<[query: number, key: number] | null>(null)
  const [width, setWidth] = useState(480)
  const names = {
    queries: labelCells(queries, maps.queries, positionsPerCell),
    keys: labelCells(keys, maps.keys, positionsPerCell),
  }
  const row = Math.min(query ?? maps.queries - 1, maps.queries - 1)

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width))
    observer.observe(container.current!)
    return () => observer.disconnect()
  }, [])
  useLayoutEffect(() => drawAttentionMap(canvas.current!, maps, head, theme), [maps, head, theme])

  const ticks = {
    queries: names.queries?.map(shortenTick),
    keys: names.keys?.map(shortenTick),
  }
  const labelWidth = 14 + 7 * maxLength([...(ticks.keys ?? []), ...(ticks.queries ?? [])])
  const margin = ticks.keys && ticks.queries ? labelWidth : Math.max(34, labelWidth) // 34: numbers
  const mapWidth = Math.max(160, Math.min(width - margin - 4, 620))
  const cell = mapWidth / maps.keys
  const mapHeight = cell * maps.queries
  const tickEvery = Math.max(1, Math.ceil(MIN_TICK_PIXELS / cell))
  const cellUnder = (event: MouseEvent) => findCell(event, canvas.current!, maps.queries, maps.keys)
  const readout = hovered ?? [row, strongestKey(maps, head, row)]
  const label = (tickLabels: string[] | null, index: number) =>
    tickLabels
      ? `${tickLabels[index]} (${index * positionsPerCell})`
      : `(${index * positionsPerCell})`
  return (
    <div class="detail" ref={container}>
      <p class="muted hint">
        rows are queries, columns are keys
        <span>
          ; click or <kbd>n</kbd> <kbd>p</kbd> to select a row
        </span>
      </p>
      <svg
        width={margin + mapWidth + 2}
        height={margin + mapHeight + 2}
        role="img"
        aria-label="attention of one head"
      >
        {tickIndices(maps.keys, tickEvery).map((index) => (
          <text
            key={`k${index}`}
            class="tick"
            x={margin + (index + 0.5) * cell}
            y={margin - 5}
            transform={
              ticks.keys && maxLength(ticks.keys) > 1
                ? `rotate(-60 ${margin + (index + 0.5) * cell} ${margin - 5})`
                : undefined
            }
            text-anchor={ticks.keys && maxLength(ticks.keys) > 1 ? "start" : "middle"}
          >
            {ticks.keys ? ticks.keys[index] : index * positionsPerCell}
          </text>
        ))}
        {tickIndices(maps.queries, tickEvery).map((index) => (
          <text
            key={`q${index}`}
            class={index === row ? "tick current" : "tick"}
            x={margin - 5}
            y={margin + (index + 0.5) * cell + 3.5}
            text-anchor="end"
          >
            {ticks.queries ? ticks.queries[index] : index * positionsPerCell}
          </text>
        ))}
        <rect
          x={margin - 0.5}
          y={margin - 0.5}
          width={mapWidth + 1}
          height={mapHeight + 1}
          class="map-border"
        />
        <foreignObject x={margin} y={margin} width={mapWidth} height={mapHeight}>
          <canvas
            ref={canvas}
            class={cell < 1.5 ? "smooth-pixels" : ""}
            style={{ width: `${mapWidth}px`, height: `${mapHeight}px` }}
            onMouseMove={(event) => setHovered(cellUnder(event))}
            onMouseLeave={() => setHovered(null)}
            onClick={(event) => onQuery?.(cellUnder(event)[0])}
          />
        </foreignObject>
        <rect
          x={margin - 0.5}
          y={margin + row * cell}
          width={mapWidth + 1}
          height={Math.max(2, cell)}
          class="selected-row"
        />
      </svg>
      <p class="readout">
        <b>{label(names.queries, readout[0])}</b> → <b>{label(names.keys, readout[1])}</b>{" "}
        {readout[1] < countVisibleKeys(maps, readout[0])
          ? formatNumber(weightAt(maps, head, readout[0], readout[1]))
          : "masked"}
        <span class="muted">
          {hovered ? "" : " (largest in this row)"}
          {positionsPerCell > 1
            ? `; a cell is ${positionsPerCell} × ${positionsPerCell} positions`
            : ""}
        </span>
      </p>
      {names.keys ? (
        <div
          class={maxLength(names.keys) > 1 ? "token-strip spaced" : "token-strip"}
          role="group"
          aria-label="weights of the selected query over the text"
        >
          {names.keys.map((name, key) => (
            <Token
              key={key}
              name={name}
              weight={key < countVisibleKeys(maps, row) ? weightAt(maps, head, row, key) : null}
              signed={maps.signed}
              scale={maps.scale}
              theme={theme}
              isCurrent={key === maps.first + row}
              onSelect={() => onQuery?.(Math.max(0, Math.min(maps.queries - 1, key - maps.first)))}
            />
          ))}
        </div>
      ) : null}
    </div>
  )
}

function Token({
  name,
  weight,
  signed,
  scale,
  theme,
  isCurrent,
  onSelect,
}: {
  name: string
  weight: number | null
  signed: boolean
  /** Largest |weight|. */
  scale: number
  theme: Theme
  isCurrent: boolean
  onSelect: () => void
}) {
  const root = weight === null ? 0 : Math.sign(weight) * Math.sqrt(Math.abs(weight) / scale)
  const style = weight === null ? {} : (signed ? shadeSigned : shadeCell)(root, theme)
  const classes = [weight === null ? "masked" : "", isCurrent ? "current" : ""]
    .filter(Boolean)
    .join(" ")
  return (
    <span
      class={classes}
      style={style}
      title={weight === null ? "masked" : formatNumber(weight)}
      onClick={onSelect}
    >
      {name}
    </span>
  )
}

/** A label per cell: the tokens of all positions that were pooled into it. */
function labelCells(
  labels: string[] | undefined,
  cells: number,
  positionsPerCell: number,
): string[] | null {
  if (!labels || labels.length < (cells - 1) * positionsPerCell + 1) return null
  return Array.from({ length: cells }, (_, cell) =>
    labels
      .slice(cell * positionsPerCell, (cell + 1) * positionsPerCell)
      .map(formatToken)
      .join(""),
  )
}

function tickIndices(count: number, every: number): number[] {
  return Array.from({ length: Math.ceil(count / every) }, (_, index) => index * every)
}

function shortenTick(label: string): string {
  return label.length > MAX_TICK_CHARACTERS ? `${label.slice(0, MAX_TICK_CHARACTERS - 1)}…` : label
}

function maxLength(labels: string[]): number {
  return Math.max(1, ...labels.map((label) => label.length))
}

function strongestKey(maps: LayerMaps, head: number, query: number): number {
  const row = maps.cells.subarray(
    (head * maps.queries + query) * maps.keys,
    (head * maps.queries + query + 1) * maps.keys,
  )
  let strongest = 0
  for (let key = 1; key < row.length; key++)
    if (Math.abs(row[key]) > Math.abs(row[strongest])) strongest = key
  return strongest
}
