// A mosaic: the segments of an example as tiles, as bright as the focus on them, one row for each model.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks"

import { formatShare, type ImageShape, type MosaicExample } from "../focus_data"
import { decodeBase64 } from "../run_data"
import "../styles/focus.css"

/** Weights from here on are written below their tile. */
const MIN_LABELLED_WEIGHT = 0.05
/** Brightness of a tile without focus; with all the focus it is 1. */
const MIN_BRIGHTNESS = 0.3
const MAX_COLUMNS = 12

export interface MosaicRow {
  /** The paradigm. */
  label: string
  colour?: string
  weights: number[]
  /** Index of the predicted class. */
  predicted: number
  probability: number
}

interface Props {
  example: MosaicExample
  imageShape: ImageShape | null
  classes: string[]
  /** What a segment is. */
  noun: string
  rows: MosaicRow[]
}

export function Mosaic({ example, imageShape, classes, noun, rows }: Props) {
  const pixels = useMemo(() => decodeBase64(example.images), [example.images])
  return (
    <div class="mosaic">
      {rows.map((row) => (
        <Row key={row.label} {...{ example, imageShape, classes, noun, row, pixels }} />
      ))}
    </div>
  )
}

function Row({
  example,
  imageShape,
  classes,
  noun,
  row,
  pixels,
}: Omit<Props, "rows"> & { row: MosaicRow; pixels: Uint8Array }) {
  const isRight = row.predicted === example.label
  const predicted = classes[row.predicted] ?? String(row.predicted)
  const size = imageShape ? imageShape[0] * imageShape[1] * imageShape[2] : 0
  const onForeground = sumOver(example, row.weights)
  const description =
    `${row.label}: ${example.foreground.length ? `weight ${formatShare(onForeground)} on the framed ${noun}; ` : ""}` +
    `predicts ${predicted} with probability ${formatShare(row.probability)}, ${isRight ? "right" : "wrong"}`
  return (
    <div class="mosaic-row" role="img" aria-label={description}>
      <div class="mosaic-label">
        {row.colour ? <i style={{ background: row.colour }} /> : null}
        <b>{row.label}</b>{" "}
        <span
          class={isRight ? "yes" : "no"}
          data-predicted={predicted}
          title={`predicts ${predicted} with probability ${formatShare(row.probability)}`}
        >
          {isRight ? "✓" : "✗"} {predicted} {formatShare(row.probability)}
        </span>
      </div>
      <div
        class={imageShape ? "mosaic-tiles" : "mosaic-words"}
        style={
          imageShape
            ? {
                gridTemplateColumns: `repeat(${Math.min(MAX_COLUMNS, example.tiles.length)}, minmax(0, 1fr))`,
              }
            : undefined
        }
      >
        {example.tiles.map((segment, position) => {
          const weight = row.weights[position] ?? 0
          const isForeground = example.foreground.includes(segment)
          return (
            <div
              key={segment}
              class={`tile ${isForeground ? "foreground" : ""}`}
              data-weight={weight.toFixed(3)}
              title={`${noun} ${segment}: weight ${weight.toFixed(3)}${isForeground ? "; it decides the class" : ""}`}
            >
              {imageShape ? (
                <Tile pixels={pixels} start={position * size} shape={imageShape} weight={weight} />
              ) : (
                <span
                  class="tile-text"
                  style={{
                    background: `color-mix(in srgb, var(--link) ${Math.round(60 * weight)}%, transparent)`,
                  }}
                >
                  {example.words?.[position] ?? segment}
                </span>
              )}
              <small>{weight >= MIN_LABELLED_WEIGHT ? formatShare(weight) : ""}</small>
            </div>
          )
        })}
      </div>
    </div>
  )
}

function Tile({
  pixels,
  start,
  shape: [height, width, channels],
  weight,
}: {
  /** Those of all tiles. */
  pixels: Uint8Array
  /** Where the pixels of this tile start. */
  start: number
  shape: ImageShape
  weight: number
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d")
    if (!context) return
    const image = context.createImageData(width, height)
    const brightness = MIN_BRIGHTNESS + (1 - MIN_BRIGHTNESS) * weight
    for (let pixel = 0; pixel < width * height; pixel++) {
      for (let channel = 0; channel < 3; channel++)
        image.data[4 * pixel + channel] =
          brightness * pixels[start + channels * pixel + (channels === 3 ? channel : 0)]
      image.data[4 * pixel + 3] = 255
    }
    context.putImageData(image, 0, 0)
  }, [pixels, start, width, height, channels, weight])
  return <canvas ref={canvas} width={width} height={height} />
}

/** Focus on the foreground. */
function sumOver(example: MosaicExample, weights: number[]): number {
  return example.tiles.reduce(
    (sum, segment, position) =>
      sum + (example.foreground.includes(segment) ? (weights[position] ?? 0) : 0),
    0,
  )
}
