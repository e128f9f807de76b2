// Thumbnails of all heads at one step: one row per layer, one column per head.

import { useLayoutEffect, useRef } from "preact/hooks"

import type { LayerMaps } from "../attention_maps"
import { formatHead } from "../format"
import type { Theme } from "../theme"

const DRAW_MARK = "neural heads drawn"

type Layer = Pick<LayerMaps, "name" | "heads" | "queries" | "keys">

interface Props<Kind extends Layer> {
  layers: Kind[]
  step?: number
  layer: number
  head: number
  theme: Theme
  draw: (canvas: HTMLCanvasElement, layer: Kind, head: number, theme: Theme) => void
  onHead: (layer: number, head: number) => void
}

export function HeadGrid<Kind extends Layer>({
  layers,
  step,
  layer,
  head,
  theme,
  draw,
  onHead,
}: Props<Kind>) {
  const container = useRef<HTMLDivElement>(null)
  const maxHeads = Math.max(...layers.map((maps) => maps.heads))

  useLayoutEffect(() => {
    const start = performance.now()
    const canvases = container.current!.querySelectorAll("canvas")
    let drawn = 0
    for (const maps of layers)
      for (let index = 0; index < maps.heads; index++) draw(canvases[drawn++], maps, index, theme)
    if (performance.getEntriesByName(DRAW_MARK).length >= 100) performance.clearMeasures(DRAW_MARK) // bounded: a page may be open for days
    performance.measure(DRAW_MARK, {
      start,
      end: performance.now(),
      detail: { step, maps: drawn },
    })
  }, [layers, theme])

  useLayoutEffect(() => {
    if (container.current!.contains(document.activeElement))
      container.current!.querySelector<HTMLElement>(".selected")?.focus()
  }, [layer, head])

  return (
    <div
      class="heads"
      ref={container}
      role="group"
      aria-label="heads"
      style={{ "--heads": String(maxHeads) }}
    >
      <div class="row" aria-hidden="true">
        <span />
        {Array.from({ length: maxHeads }, (_, index) => (
          <span key={index} class="name column-label">
            h{index}
          </span>
        ))}
      </div>
      {layers.map((maps, row) => (
        <div class="row" key={maps.name}>
          <span class="name" title={maps.name}>
            {formatHead(row)}
          </span>
          {Array.from({ length: maps.heads }, (_, index) => {
            const isSelected = row === layer && index === head
            // roving tab stop: one for the whole grid; j, k, J and K move it
            return (
              <button
                type="button"
                key={index}
                title={`${formatHead(row, index)}, ${maps.name}`}
                class={isSelected ? "selected" : ""}
                tabIndex={isSelected ? 0 : -1}
                aria-pressed={isSelected}
                onClick={() => onHead(row, index)}
              >
                <canvas
                  class={maps.keys > 100 ? "smooth-pixels" : ""}
                  style={{ aspectRatio: `${maps.keys} / ${maps.queries}` }}
                />
              </button>
            )
          })}
        </div>
      ))}
    </div>
  )
}
