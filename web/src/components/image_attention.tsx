// The image of a vision transformer with weights over it: of CLS, or of the patch that was clicked, in
// one head; beside it the rollout of all layers up to the selected one.

import { useEffect, useRef } from "preact/hooks"

import type { StepMaps } from "../attention_maps"
import { ExportMenu } from "../export"
import { formatHead, formatNumber } from "../format"
import {
  namePatch,
  readImageRow,
  readRollout,
  type ImageRow,
  type ProbeImage,
} from "../image_attention"
import type { Navigate } from "../route"
import { decodeBase64, type Run } from "../run_data"
import "../styles/image_attention.css"

/** Opacity of the largest weight; 0 is transparent. */
const MAX_OPACITY = 0.85
const STEPS_BY_KEY: Record<string, [down: number, right: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
}

interface Props {
  run: Run
  image: ProbeImage
  maps: StepMaps
  layer: number
  head: number
  /** The selected row of the map. */
  query?: number
  navigate: Navigate
}

export function ImageAttention({ run, image, maps, layer, head, query, navigate }: Props) {
  const pictures = useRef<HTMLDivElement>(null)
  const row = readImageRow(run, image, maps, layer, head, query)
  if (!row)
    return (
      <p class="muted">
        {maps.layers[layer]?.name}: its weights over the image are not in this page
      </p>
    )
  const rollout = readRollout(run, image, maps, layer)
  const selectPatch = (patch: number | null) =>
    navigate({ query: patch === null ? undefined : image.first_patch + patch })
  return (
    <div class="image-attention">
      <div class="image-pictures" ref={pictures}>
        <Overlay
          image={image}
          row={row}
          title={`${formatHead(layer, head)}: ${row.name}`}
          onPatch={row.canSelect ? selectPatch : undefined}
        />
        {rollout ? (
          <Overlay
            image={image}
            row={rollout}
            title={`rollout to ${formatHead(layer)}: ${rollout.name}`}
          />
        ) : null}
      </div>
      <p class="muted hint">
        {row.canSelect
          ? "A click on a patch, or the arrow keys, shows what it attends to; Escape goes back."
          : "The maps here are cut or reduced, so only this row is exact."}{" "}
        {row.patch === null ? null : (
          <button type="button" onClick={() => selectPatch(null)}>
            {image.query}
          </button>
        )}
        <ExportMenu
          name={`image ${formatHead(layer, head)} ${row.name} step ${maps.step}`}
          picture={() => pictures.current}
          csv={() => ({
            head: ["patch", "weight", ...(rollout ? ["rollout"] : [])],
            rows: listPatches(image).map((patch) => [
              namePatch(image, patch),
              row.weights[image.first_patch + patch],
              ...(rollout ? [rollout.weights[image.first_patch + patch]] : []),
            ]),
          })}
        />
      </p>
    </div>
  )
}

function Overlay({
  image,
  row,
  title,
  onPatch,
}: {
  image: ProbeImage
  row: ImageRow
  title: string
  onPatch?: (patch: number | null) => void
}) {
  const [rows, columns] = image.grid
  const weights = listPatches(image).map((patch) => row.weights[image.first_patch + patch])
  const largest = Math.max(...weights)
  const best = weights.indexOf(largest)
  const movePatch = (event: KeyboardEvent) => {
    if (!onPatch) return
    const step = STEPS_BY_KEY[event.key]
    if (!step && (event.key !== "Escape" || row.patch === null)) return
    event.preventDefault()
    event.stopPropagation() // the page's own shortcuts
    if (!step) return onPatch(null)
    const from = row.patch ?? 0
    const down = Math.min(rows - 1, Math.max(0, Math.floor(from / columns) + step[0]))
    const right = Math.min(columns - 1, Math.max(0, (from % columns) + step[1]))
    onPatch(down * columns + right)
  }
  const label = `${title}: the largest weight is ${formatNumber(largest)}, at patch ${namePatch(image, best)}`
  return (
    <div class="image-panel">
      <p class="image-title">{title}</p>
      <p class="muted image-caption">
        0 … {formatNumber(largest)} per patch
        {describeOthers(image, row.weights)}
      </p>
      <div class="image-frame">
        <PictureCanvas png={image.png} />
        <svg
          viewBox={`0 0 ${columns} ${rows}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={label}
          tabindex={onPatch ? 0 : undefined}
          class={onPatch ? "selectable" : undefined}
          onKeyDown={movePatch}
        >
          {weights.map((weight, patch) => (
            <rect
              key={patch}
              class="image-patch"
              x={patch % columns}
              y={Math.floor(patch / columns)}
              width={1}
              height={1}
              fill-opacity={largest > 0 ? (MAX_OPACITY * weight) / largest : 0}
              data-weight={weight}
              onClick={onPatch ? () => onPatch(patch === row.patch ? null : patch) : undefined}
            >
              <title>
                patch {namePatch(image, patch)}: {formatNumber(weight)}
              </title>
            </rect>
          ))}
          {row.patch === null ? null : (
            <rect
              class="image-query"
              x={row.patch % columns}
              y={Math.floor(row.patch / columns)}
              width={1}
              height={1}
              vector-effect="non-scaling-stroke"
            />
          )}
        </svg>
      </div>
    </div>
  )
}

/** The picture in grey: colour belongs to the weights. */
function PictureCanvas({ png }: { png: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let current = true
    createImageBitmap(new Blob([decodeBase64(png)], { type: "image/png" })).then(
      (bitmap) => {
        if (!current || !canvas.current) return
        canvas.current.width = bitmap.width
        canvas.current.height = bitmap.height
        const context = canvas.current.getContext("2d")!
        context.filter = "grayscale(1)"
        context.drawImage(bitmap, 0, 0)
      },
      () => {}, // a damaged picture stays empty; the weights are right without it
    )
    return () => {
      current = false
    }
  }, [png])
  return <canvas ref={canvas} />
}

/** `; CLS 29 %`: the share of the positions that are no patches. */
function describeOthers(image: ProbeImage, weights: number[]): string {
  const patchCount = image.grid[0] * image.grid[1]
  if (image.tokens === patchCount) return ""
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const onPatches = weights
    .slice(image.first_patch, image.first_patch + patchCount)
    .reduce((sum, weight) => sum + weight, 0)
  const isOne = image.tokens === patchCount + 1 && image.prefix_names.length === 1
  const percent = total > 0 ? Math.round((100 * (total - onPatches)) / total) : 0
  return `; ${isOne ? image.prefix_names[0] : "other positions"} ${percent} %`
}

function listPatches({ grid: [rows, columns] }: ProbeImage): number[] {
  return Array.from({ length: rows * columns }, (_, patch) => patch)
}
