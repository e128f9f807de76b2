// Attention in the digest: all heads at the end of a training, and one of them larger.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"

import type { LayerMaps, StepMaps } from "../attention_maps"
import { drawAttentionMap } from "../draw/heatmap"
import { formatHead, formatInteger, formatToken } from "../format"
import { findFirstHead, isRole } from "../head_selection"
import type { PaneProps } from "../pane"
import type { Run } from "../run_data"
import { labelRuns } from "../run_labels"
import type { Theme } from "../theme"

/** The first run of each experiment that has maps, up to this number of runs. */
const MAX_RUNS = 2
const MAX_TEXT = 150

export function AttentionDigest({ index, runs, source, theme }: PaneProps) {
  const experiments = index.experiments?.length
    ? index.experiments.map((experiment) => experiment.runs)
    : [runs.map((run) => run.id)]
  const shown = experiments
    .flatMap((ids) => runs.find((run) => ids.includes(run.id) && run.map_steps.length) ?? [])
    .slice(0, MAX_RUNS)
  const labels = labelRuns(index)
  return (
    <>
      {shown.map((run) => (
        <RunHeads
          key={run.id}
          run={run}
          title={labels.get(run.id) ?? run.name}
          source={source}
          theme={theme}
        />
      ))}
    </>
  )
}

function RunHeads({
  run,
  title,
  source,
  theme,
}: Pick<PaneProps, "source" | "theme"> & { run: Run; title: string }) {
  const [maps, setMaps] = useState<StepMaps | null>(null)
  const lastStep = run.map_steps[run.map_steps.length - 1]
  useEffect(() => {
    let current = true
    source.maps(run.id, lastStep).then(
      (loaded) => current && setMaps(loaded),
      () => {}, // without its maps the run is left out
    )
    return () => {
      current = false
    }
  }, [source, run.id, lastStep])
  if (!maps) return null
  const [layer, head] = findFirstHead(run)
  const layerMaps = maps.layers[layer]
  const role = run.roles?.[layer]?.[head]
  const labels = run.layer_labels ? run.layer_labels[layerMaps?.name ?? ""] : run.labels
  const tokens = (labels?.keys ?? []).map(formatToken)
  const text = tokens.join(tokens.some((token) => token.length > 1) ? " " : "")
  const columns = Math.max(...maps.layers.map((entry) => entry.heads))
  return (
    <div class="digest-block">
      <h2>
        Attention of {title}{" "}
        <small>
          {run.state === "snapshot" ? "" : `step ${formatInteger(maps.step)}; `}layers down, heads
          across; rows are queries, columns are keys
        </small>
      </h2>
      <div class="digest-heads">
        <div class="digest-grid" style={{ "--heads": String(columns) }}>
          {maps.layers.map((entry, row) =>
            Array.from({ length: columns }, (_, column) =>
              column < entry.heads ? (
                <MapImage
                  key={`${row} ${column}`}
                  maps={entry}
                  layer={row}
                  head={column}
                  theme={theme}
                />
              ) : (
                <span key={`${row} ${column}`} />
              ),
            ),
          )}
        </div>
        {layerMaps && head < layerMaps.heads ? (
          <figure>
            <figcaption>
              <b>{formatHead(layer, head)}</b>
              {isRole(role) ? `, ${role}` : ""}
            </figcaption>
            <MapImage maps={layerMaps} layer={layer} head={head} theme={theme} />
            {text ? (
              <figcaption class="muted">
                over <code>{text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text}</code>
              </figcaption>
            ) : null}
          </figure>
        ) : null}
      </div>
    </div>
  )
}

function MapImage({
  maps,
  layer,
  head,
  theme,
}: {
  maps: LayerMaps
  layer: number
  head: number
  theme: Theme
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useLayoutEffect(() => drawAttentionMap(canvas.current!, maps, head, theme), [maps, head, theme])
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={`attention of ${formatHead(layer, head)}`}
      style={{ aspectRatio: `${maps.keys} / ${maps.queries}` }}
    />
  )
}
