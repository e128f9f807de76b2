// One head at one step: its map with the tokens on both axes, and the text as one query sees it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"

import { shaded } from "../draw/colours"
import { cellAt, drawMap } from "../draw/map"
import { visible, weight, type LayerMaps } from "../maps"
import { number, token } from "../numbers"
import type { Theme } from "../theme"

interface Props {
  maps: LayerMaps
  head: number
  theme: Theme
  queries?: string[]
  keys?: string[]
  /** The query whose row is read out. */
  query?: number
  onQuery?: (query: number) => void
  /** How many positions a cell stands for. */
  block?: number
}

const LEGIBLE = 11

export function HeadDetail({ maps, head, theme, queries, keys, query, onQuery, block = 1 }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const frame = useRef<HTMLDivElement>(null)
  const [pointed, setPointed] = useState<[query: number, key: number] | null>(null)
  const [width, setWidth] = useState(480)
  const names = { queries: named(queries, maps.queries, block), keys: named(keys, maps.keys, block) }
  const row = Math.min(query ?? maps.queries - 1, maps.queries - 1)

  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width))
    watcher.observe(frame.current!)
    return () => watcher.disconnect()
  }, [])
  useLayoutEffect(() => drawMap(canvas.current!, maps, head, theme), [maps, head, theme])

  const margin = names.keys ? Math.min(64, 14 + 7 * longest([...names.keys, ...(names.queries ?? [])])) : 34
  const side = Math.max(160, Math.min(width - margin - 4, 620))
  const cell = side / maps.keys
  const tall = cell * maps.queries
  const every = Math.max(1, Math.ceil(LEGIBLE / cell))
  const at = (event: MouseEvent) => cellAt(event, canvas.current!, maps.queries, maps.keys)
  const shown = pointed ?? [row, strongest(maps, head, row)]
  const label = (list: string[] | null, index: number) => (list ? `${list[index]} ` : "") + `(${index * block})`
  return (
    <div class="detail" ref={frame}>
      <p class="soft hint">rows look, columns are looked at<span>; a click or <kbd>n</kbd> <kbd>p</kbd> choose the row</span></p>
      <svg width={margin + side + 2} height={margin + tall + 2} role="img" aria-label="attention of one head">
        {ticks(maps.keys, every).map((index) => (
          <text key={`k${index}`} class="tick" x={margin + (index + 0.5) * cell} y={margin - 5}
            transform={names.keys && longest(names.keys) > 1 ? `rotate(-60 ${margin + (index + 0.5) * cell} ${margin - 5})` : undefined}
            text-anchor={names.keys && longest(names.keys) > 1 ? "start" : "middle"}>
            {names.keys ? names.keys[index] : index * block}
          </text>
        ))}
        {ticks(maps.queries, every).map((index) => (
          <text key={`q${index}`} class={index === row ? "tick here" : "tick"} x={margin - 5} y={margin + (index + 0.5) * cell + 3.5} text-anchor="end">
            {names.queries ? names.queries[index] : index * block}
          </text>
        ))}
        <rect x={margin - 0.5} y={margin - 0.5} width={side + 1} height={tall + 1} class="edge" />
        <foreignObject x={margin} y={margin} width={side} height={tall}>
          <canvas
            ref={canvas} class={cell < 1.5 ? "fine" : ""} style={{ width: `${side}px`, height: `${tall}px` }}
            onMouseMove={(event) => setPointed(at(event))} onMouseLeave={() => setPointed(null)}
            onClick={(event) => onQuery?.(at(event)[0])}
          />
        </foreignObject>
        <rect x={margin - 0.5} y={margin + row * cell} width={side + 1} height={Math.max(2, cell)} class="row-mark" />
      </svg>
      <p class="read">
        <b>{label(names.queries, shown[0])}</b> → <b>{label(names.keys, shown[1])}</b>{" "}
        {shown[1] < visible(maps, shown[0]) ? number(weight(maps, head, shown[0], shown[1])) : "cannot be seen"}
        <span class="soft">{pointed ? "" : " its strongest"}{block > 1 ? `; a cell is ${block} × ${block} positions` : ""}</span>
      </p>
      {names.keys ? (
        <p class="strip" aria-label="the text as one query sees it">
          {names.keys.map((name, key) => (
            <Token key={key} name={name} weight={key < visible(maps, row) ? weight(maps, head, row, key) : null} theme={theme}
              here={key === maps.first + row} onPick={() => onQuery?.(Math.max(0, Math.min(maps.queries - 1, key - maps.first)))} />
          ))}
        </p>
      ) : null}
    </div>
  )
}

function Token({ name, weight, theme, here, onPick }: { name: string; weight: number | null; theme: Theme; here: boolean; onPick: () => void }) {
  const style = weight === null ? {} : shaded(Math.sqrt(weight), theme)
  const classes = [weight === null ? "hidden" : "", here ? "here" : ""].filter(Boolean).join(" ")
  return <span class={classes} style={style} title={weight === null ? "cannot be seen" : number(weight)} onClick={onPick}>{name}</span>
}

/** The labels of cells: as they are, or of the first position that a cell stands for. */
function named(labels: string[] | undefined, cells: number, block: number): string[] | null {
  if (!labels || labels.length < (cells - 1) * block + 1) return null
  return Array.from({ length: cells }, (_, at) => labels.slice(at * block, (at + 1) * block).map(token).join(""))
}

function ticks(count: number, every: number): number[] {
  return Array.from({ length: Math.ceil(count / every) }, (_, at) => at * every)
}

function longest(labels: string[]): number {
  return Math.max(1, ...labels.map((one) => one.length))
}

function strongest(maps: LayerMaps, head: number, query: number): number {
  const row = maps.cells.subarray((head * maps.queries + query) * maps.keys, (head * maps.queries + query + 1) * maps.keys)
  let best = 0
  row.forEach((one, at) => (best = one > row[best] ? at : best))
  return best
}
