// Query and keys of one head: the vector of the selected query, those of the keys that it sees, and their
// products in every dimension. The scaled sum of a row is its score; the softmax of the scores is the weight.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks"

import type { AttentionMatrix } from "../attention_matrix"
import { drawValues } from "../draw/heatmap"
import { formatNumber, formatWeight } from "../format"
import { computeWeights, decodeVectors, multiplyQuery } from "../head_vectors"
import type { HeadVectors } from "../run_data"
import type { Theme } from "../theme"

interface Props {
  layer: HeadVectors
  head: number
  /** Weights of the head; rows are queries. */
  matrix: AttentionMatrix
  query: number
  keyNames: string[]
  queryName: string
  theme: Theme
}

export function AttentionProducts(props: Props) {
  const { layer, head, matrix, query, keyNames, theme } = props
  const vectors = useMemo(() => decodeVectors(layer, head), [layer, head])
  const { width } = vectors
  const seen = useMemo(
    () =>
      keyNames
        .map((_, key) => key)
        .filter((key) => matrix.visible[query * matrix.columns + key] === 1),
    [matrix, query, keyNames],
  )
  const { queryVector, keyRows, productRows, scores } = useMemo(() => {
    const multiplied = multiplyQuery(vectors, query)
    return {
      queryVector: vectors.queries.subarray(query * width, (query + 1) * width),
      keyRows: pickRows(vectors.keys, seen, width),
      productRows: pickRows(multiplied.products, seen, width),
      scores: multiplied.scores,
    }
  }, [vectors, query, seen, width])
  const stored = seen.map((key) => matrix.values[query * matrix.columns + key])
  const weights = computeWeights(scores, seen, stored)
  return (
    <div class="products" style={{ "--rows": String(Math.max(1, seen.length)) }}>
      <span class="head">key</span>
      <span class="head">k, {width} dimensions</span>
      <span class="head">q × k</span>
      <span class="head number">score</span>
      <span class="head number">weight</span>
      <b class="token" title={props.queryName}>
        query {props.queryName}
      </b>
      <VectorCanvas values={queryVector} rows={1} theme={theme} label="the query's vector" />
      <span />
      <span />
      <span />
      {seen.map((key, row) => (
        <span key={`n${key}`} class="token" style={{ gridRow: row + 3 }} title={keyNames[key]}>
          {keyNames[key]}
        </span>
      ))}
      <VectorCanvas
        values={keyRows}
        rows={seen.length}
        theme={theme}
        label="vectors of the keys"
        column={2}
      />
      <VectorCanvas
        values={productRows}
        rows={seen.length}
        theme={theme}
        label="products of query and key in every dimension"
        column={3}
      />
      {seen.map((key, row) => (
        <span
          key={`s${key}`}
          class="number"
          style={{ gridRow: row + 3, gridColumn: 4 }}
          data-key={key}
          data-score={scores[key]}
        >
          {formatNumber(scores[key])}
        </span>
      ))}
      {seen.map((key, row) => (
        <span key={`w${key}`} class="number" style={{ gridRow: row + 3, gridColumn: 5 }}>
          {weights ? formatNumber(weights[row]) : formatWeight(stored[row])}
        </span>
      ))}
    </div>
  )
}

function VectorCanvas({
  values,
  rows,
  theme,
  label,
  column,
}: {
  values: Float32Array
  rows: number
  theme: Theme
  label: string
  column?: number
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useLayoutEffect(() => {
    const limit = values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 1e-9)
    drawValues(canvas.current!, values, rows, values.length / Math.max(1, rows), limit, theme)
  }, [values, rows, theme])
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={label}
      style={column ? { gridColumn: column, gridRow: "3 / span var(--rows)" } : {}}
    />
  )
}

function pickRows(values: Float32Array, rows: number[], width: number): Float32Array {
  const picked = new Float32Array(rows.length * width)
  rows.forEach((row, index) => {
    picked.set(values.subarray(row * width, (row + 1) * width), index * width)
  })
  return picked
}
