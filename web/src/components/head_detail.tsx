// The selected head, or several heads combined, at one step: as a map, as lines between tokens, as a list,
// over time, or as products of query and key. Below it, the tokens and the strongest pairs of one row.

import { useEffect, useMemo, useRef, useState } from "preact/hooks"

import type { LayerMaps, StepMaps } from "../attention_maps"
import {
  combineHeads,
  extractHead,
  findFirstRow,
  findPaddedKeys,
  findPaddedQueries,
  isOneSequence,
  rankRow,
  subtractMatrix,
  transposeMatrix,
  type AttentionMatrix,
} from "../attention_matrix"
import type { AttentionOptions } from "../attention_options"
import type { DataSource } from "../data_source"
import { layerColour, lineColour } from "../draw/colours"
import { SCALE_WEIGHTS } from "../draw/weight_scale"
import {
  formatHead,
  formatInteger,
  formatNumber,
  formatToken,
  formatWeight,
  stripDate,
} from "../format"
import type { Navigate } from "../route"
import type { AxisLabels, Run } from "../run_data"
import type { Theme } from "../theme"
import { AttentionLines, type LineGroup, type LineToken } from "./attention_lines"
import { AttentionList } from "./attention_list"
import { AttentionMap } from "./attention_map"
import { AttentionProducts } from "./attention_products"
import { AttentionSteps } from "./attention_steps"
import { ExportMenu, type Table } from "../export"
import { ColourScale } from "./colour_scale"
import { RankedTokens } from "./ranked_tokens"
import { TokenStrip } from "./token_strip"

interface Props {
  source: DataSource
  run: Run
  maps: StepMaps
  /** Maps of the step that is subtracted; null: none, or not loaded yet. */
  base: StepMaps | null
  layer: number
  head: number
  options: AttentionOptions
  labels: AxisLabels | null | undefined
  /** The selected row. */
  query?: number
  navigate: Navigate
  theme: Theme
}

const TOP_KEYS = 8

export function HeadDetail(props: Props) {
  const { source, run, maps, layer, head, labels, theme, navigate } = props
  // products are those of one head at one step
  const isProducts = props.options.view === "products"
  const options: AttentionOptions = isProducts
    ? { ...props.options, scope: "head", direction: "queries", minus: null }
    : props.options
  const base = isProducts ? null : props.base
  const container = useRef<HTMLElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const width = useWidth(container)
  const [preview, setPreview] = useState<{ row: number; column?: number } | null>(null)
  const [previewToken, setPreviewToken] = useState<LineToken | null>(null)
  const layerMaps = maps.layers[layer]
  const positionsPerCell = run.downsampling[String(maps.step)] ?? 1
  const vectors = maps.step === run.vector_step ? run.vectors?.[layerMaps.name] : undefined

  const build = useMemo(
    () => (stepMaps: StepMaps) => buildMatrix(stepMaps, base, layer, head, options),
    [base, layer, head, options.scope, options.combination, options.minus],
  )
  const difference = useMemo(() => build(maps), [build, maps])
  const untransposed = useMemo(
    () => difference ?? buildMatrix(maps, null, layer, head, options)!,
    [difference, maps, layer, head, options.scope, options.combination],
  )
  const isTransposed = options.direction === "keys"
  const matrix = useMemo(
    () => (isTransposed ? transposeMatrix(untransposed) : untransposed),
    [untransposed, isTransposed],
  )
  const axes = useMemo(
    () => describeAxes(layerMaps, labels, positionsPerCell),
    [layerMaps.queries, layerMaps.keys, maps, layer, labels, positionsPerCell],
  )
  const groups = useMemo(
    () => (options.view === "lines" ? buildGroups(maps, base, untransposed, props) : []),
    [maps, base, untransposed, options.view, options.scope, options.combination, theme],
  )
  const [rows, columns] = isTransposed ? [axes.keys, axes.queries] : [axes.queries, axes.keys]
  const selected = Math.min(
    props.query ?? findFirstRow(rows.padded, options.direction),
    matrix.rows - 1,
  )
  const row = Math.min(preview?.row ?? selected, matrix.rows - 1)
  const ranked = useMemo(() => rankRow(matrix, row, TOP_KEYS), [matrix, row])
  const weights = useMemo(
    () =>
      Array.from({ length: matrix.columns }, (_, column) =>
        matrix.visible[row * matrix.columns + column]
          ? matrix.values[row * matrix.columns + column]
          : null,
      ),
    [matrix, row],
  )
  const [rowNoun, columnNoun] = isTransposed ? ["key", "query"] : ["query", "key"]
  const description = `attention of ${describeHeads(maps, layer, head, options)} at step ${formatInteger(maps.step)}`
  const selectRow = (index: number) => navigate({ query: index })
  const previewRow = (index: number | null) => setPreview(index === null ? null : { row: index })
  const pinned: LineToken | null =
    props.query === undefined ? null : { side: isTransposed ? "key" : "query", index: selected }

  const picture = () => {
    switch (options.view) {
      case "lines":
        return (
          <AttentionLines
            groups={groups}
            queryNames={axes.queries.names}
            keyNames={axes.keys.names}
            paddedQueries={axes.queries.padded}
            paddedKeys={axes.keys.padded}
            token={previewToken ?? pinned}
            width={width}
            colours={options.colours}
            theme={theme}
            description={`${description} as lines from queries to keys`}
            onPreview={(token) => {
              setPreviewToken(token)
              previewRow(token && (token.side === "key") === isTransposed ? token.index : null)
            }}
            onSelect={({ side, index }) => {
              const isPinned = pinned?.side === side && pinned.index === index
              navigate({
                query: isPinned ? undefined : index,
                direction: side === "key" ? "keys" : undefined,
              })
            }}
          />
        )
      case "list":
        return (
          <AttentionList
            matrix={matrix}
            rowNames={rows.names}
            columnNames={columns.names}
            paddedRows={rows.padded}
            paddedColumns={columns.padded}
            row={selected}
            theme={theme}
            description={`${description}: every ${rowNoun} with its strongest ${nounPlural(columnNoun)}`}
            onSelect={selectRow}
          />
        )
      case "products":
        return vectors ? (
          <AttentionProducts
            layer={vectors}
            head={head}
            matrix={untransposed}
            query={Math.min(row, layerMaps.queries - 1)}
            queryName={nameCell(axes.queries, Math.min(row, layerMaps.queries - 1), 1)}
            keyNames={axes.keys.names}
            theme={theme}
          />
        ) : (
          <p class="muted">
            Queries and keys are stored for step {formatInteger(run.vector_step ?? 0)} only.{" "}
            <button
              type="button"
              class="link"
              onClick={() => navigate({ step: run.vector_step ?? undefined })}
            >
              Go there
            </button>
          </p>
        )
      case "steps":
        return (
          <AttentionSteps
            source={source}
            run={run}
            step={maps.step}
            build={(stepMaps) => {
              const built = build(stepMaps)
              return built && isTransposed ? transposeMatrix(built) : built
            }}
            paddedRows={rows.padded}
            paddedColumns={columns.padded}
            colours={options.colours}
            theme={theme}
            onStep={(step) => navigate({ step })}
          />
        )
      default:
        return (
          <AttentionMap
            matrix={matrix}
            rowNames={rows.names}
            columnNames={columns.names}
            paddedRows={rows.padded}
            paddedColumns={columns.padded}
            row={row}
            width={width}
            colours={options.colours}
            theme={theme}
            description={`${description} as a map: rows are ${nounPlural(rowNoun)}, columns are ${nounPlural(columnNoun)}`}
            describeCell={(query, key) => {
              const pair = query * matrix.columns + key
              const weight = matrix.visible[pair] ? formatWeight(matrix.values[pair]) : "masked"
              const names = [nameCell(rows, query, positionsPerCell)]
              names.push(nameCell(columns, key, positionsPerCell))
              return `${names.join(isTransposed ? " ← " : " → ")}  ${weight}`
            }}
            onPreview={(cell) => setPreview(cell && { row: cell[0], column: cell[1] })}
            onSelect={selectRow}
          />
        )
    }
  }
  const cell = preview?.column ?? ranked[0]?.column
  const cellWeight = cell === undefined ? null : weights[cell]
  const tokenRow = (column: number) => column - matrix.first
  const hasTokens = rows.isLabelled || columns.isLabelled
  return (
    <div class={`detail view-${options.view}`}>
      {base && !difference ? (
        <p class="note">
          The maps of step {formatInteger(base.step)} have another resolution; they cannot be
          subtracted.
        </p>
      ) : null}
      <figure class="picture" ref={container}>
        <figcaption class="muted hint">
          {options.view === "lines" || options.view === "list"
            ? ""
            : isProducts
              ? "a score is the scaled sum of the products, before biases; the softmax of the scores is the weight"
              : `rows are ${nounPlural(rowNoun)}, columns are ${nounPlural(columnNoun)}`}
          {options.view === "map" ? (
            <span>
              ; click or <kbd>n</kbd> <kbd>p</kbd> to select a row
            </span>
          ) : null}
          <ExportMenu
            name={`attention ${describeHeads(maps, layer, head, options)} step ${maps.step}`}
            caption={
              options.view === "map" || options.view === "steps"
                ? `${stripDate(run.name)}; rows are ${nounPlural(rowNoun)}, columns are ${nounPlural(columnNoun)}`
                : stripDate(run.name)
            }
            picture={() => content.current}
            csv={() => tabulate(matrix, rows, columns, rowNoun, columnNoun)}
          />
        </figcaption>
        <div ref={content}>
          {picture()}
          {options.view === "map" || options.view === "steps" ? (
            <MapLegend matrix={matrix} options={options} theme={theme} padded={rows.padded} />
          ) : null}
        </div>
      </figure>
      {options.view === "list" || options.view === "steps" ? null : (
        <div class="beside">
          <p class="readout">
            {rowNoun} <b>{nameCell(rows, row, positionsPerCell)}</b>
            {cell === undefined ? null : (
              <>
                {isTransposed ? " ← " : " → "}
                {columnNoun} <b>{nameCell(columns, cell, positionsPerCell)}</b>{" "}
                {cellWeight === null ? "masked" : formatWeight(cellWeight)}
              </>
            )}
          </p>
          <h3>
            {isTransposed ? "Queries that attend most to this key" : "Top keys of this query"}
          </h3>
          <RankedTokens
            cells={ranked}
            names={columns.names}
            padded={columns.padded}
            signed={matrix.signed}
            scale={matrix.scale}
            theme={theme}
          />
          {positionsPerCell > 1 ? (
            <p class="muted hint">
              a cell is {positionsPerCell} × {positionsPerCell} positions
            </p>
          ) : null}
        </div>
      )}
      {!hasTokens || options.view === "list" || options.view === "steps" ? null : (
        <div class="strips">
          {axes.isOneSequence ? null : (
            <>
              <p class="muted strip-name">{nounPlural(rowNoun)}</p>
              <TokenStrip
                label={nounPlural(rowNoun)}
                names={rows.names}
                padded={rows.padded}
                colours={options.colours}
                theme={theme}
                active={row}
                onPreview={previewRow}
                onSelect={selectRow}
              />
              <p class="muted strip-name">{nounPlural(columnNoun)}</p>
            </>
          )}
          <TokenStrip
            label={`weights of the ${rowNoun} ${rows.names[row]} over the ${nounPlural(columnNoun)}`}
            names={columns.names}
            weights={weights}
            padded={columns.padded}
            signed={matrix.signed}
            scale={matrix.scale}
            colours={options.colours}
            theme={theme}
            active={axes.isOneSequence ? row + matrix.first : -1}
            onPreview={
              axes.isOneSequence
                ? (column) =>
                    previewRow(
                      column !== null && isWithin(tokenRow(column), matrix.rows)
                        ? tokenRow(column)
                        : null,
                    )
                : undefined
            }
            onSelect={
              axes.isOneSequence
                ? (column) => isWithin(tokenRow(column), matrix.rows) && selectRow(tokenRow(column))
                : undefined
            }
          />
        </div>
      )}
    </div>
  )
}

/** Weights of what is selected, minus those of `base`; null if the two have different shapes. */
function buildMatrix(
  maps: StepMaps,
  base: StepMaps | null,
  layer: number,
  head: number,
  { scope, combination }: Pick<AttentionOptions, "scope" | "combination">,
): AttentionMatrix | null {
  const select = (stepMaps: StepMaps): AttentionMatrix | null => {
    const layerMaps = stepMaps.layers[layer]
    if (!layerMaps || head >= layerMaps.heads) return null
    if (scope === "head") return extractHead(layerMaps, head)
    // layers of another shape than the selected one are left out
    const layers = scope === "layer" ? [] : stepMaps.layers.filter((other) => other !== layerMaps)
    return combineHeads([layerMaps, ...layers], combination === "maximum" ? "maximum" : "mean")
  }
  const matrix = select(maps)
  if (!matrix || !base) return matrix
  const baseMatrix = select(base)
  return baseMatrix && subtractMatrix(matrix, baseMatrix)
}

/** Heads of the lines: one in one colour, or all of the layer or network in a colour each. */
function buildGroups(
  maps: StepMaps,
  base: StepMaps | null,
  matrix: AttentionMatrix,
  { layer, head, options, theme }: Pick<Props, "layer" | "head" | "options" | "theme">,
): LineGroup[] {
  if (options.scope === "head" || options.combination !== "each")
    return [
      {
        name: describeHeads(maps, layer, head, options),
        matrix,
        colour: lineColour(0, theme),
      },
    ]
  const isOneLayer = options.scope === "layer"
  return maps.layers.flatMap((layerMaps, row) => {
    if (isOneLayer && row !== layer) return []
    if (layerMaps.queries !== matrix.rows || layerMaps.keys !== matrix.columns) return []
    return Array.from({ length: layerMaps.heads }, (_, column) => ({
      name: formatHead(row, column),
      matrix:
        buildMatrix(maps, base, row, column, { scope: "head", combination: "mean" }) ??
        extractHead(layerMaps, column),
      colour: isOneLayer
        ? lineColour(column, theme, layerMaps.heads)
        : layerColour(row, maps.layers.length, theme),
    }))
  })
}

/** What is drawn, in words: `L2 h1`, `the mean of 4 heads of L2`. */
export function describeHeads(
  maps: StepMaps,
  layer: number,
  head: number,
  { scope, combination }: Pick<AttentionOptions, "scope" | "combination">,
): string {
  if (scope === "head") return formatHead(layer, head)
  const count =
    scope === "layer"
      ? maps.layers[layer].heads
      : maps.layers.reduce((sum, layerMaps) => sum + layerMaps.heads, 0)
  const heads = scope === "layer" ? `${count} heads of ${formatHead(layer)}` : `all ${count} heads`
  return combination === "each" ? heads : `the ${combination} of ${heads}`
}

interface Axis {
  names: string[]
  padded: boolean[]
  isLabelled: boolean
}

/** Names and padding of queries and keys, by cell. */
function describeAxes(
  maps: LayerMaps,
  labels: AxisLabels | null | undefined,
  positionsPerCell: number,
): { queries: Axis; keys: Axis; isOneSequence: boolean } {
  const queries = poolLabels(labels?.queries, maps.queries, positionsPerCell)
  const keys = poolLabels(labels?.keys, maps.keys, positionsPerCell)
  const isSame = isOneSequence(queries, keys, maps)
  const paddedKeys = findPaddedKeys(keys, maps)
  const paddedQueries = findPaddedQueries(queries, maps, paddedKeys, isSame)
  return {
    queries: nameAxis(queries, maps.queries, positionsPerCell, paddedQueries),
    keys: nameAxis(keys, maps.keys, positionsPerCell, paddedKeys),
    isOneSequence: isSame,
  }
}

function nameAxis(
  labels: string[] | undefined,
  count: number,
  positionsPerCell: number,
  padded: boolean[],
): Axis {
  return {
    names: Array.from({ length: count }, (_, cell) =>
      labels ? formatToken(labels[cell]) : formatInteger(cell * positionsPerCell),
    ),
    padded,
    isLabelled: labels !== undefined,
  }
}

/** A label per cell: the tokens of all positions that were pooled into it. */
function poolLabels(
  labels: string[] | undefined,
  cells: number,
  positionsPerCell: number,
): string[] | undefined {
  if (!labels || labels.length < (cells - 1) * positionsPerCell + 1) return undefined
  return Array.from({ length: cells }, (_, cell) =>
    labels.slice(cell * positionsPerCell, (cell + 1) * positionsPerCell).join(""),
  )
}

function nameCell(axis: Axis, index: number, positionsPerCell: number): string {
  const position = formatInteger(index * positionsPerCell)
  return axis.isLabelled ? `${axis.names[index]} (${position})` : position
}

/** All visible pairs, for CSV; weights have the digits that the maps have. */
export function tabulate(
  matrix: AttentionMatrix,
  rows: Axis,
  columns: Axis,
  rowNoun: string,
  columnNoun: string,
): Table {
  const table: Table = {
    head: [rowNoun, `${rowNoun} token`, columnNoun, `${columnNoun} token`, "weight"],
    rows: [],
  }
  matrix.values.forEach((weight, index) => {
    const [row, column] = [Math.floor(index / matrix.columns), index % matrix.columns]
    if (matrix.visible[index])
      table.rows.push([
        ...[row, rows.names[row], column, columns.names[column]],
        Number(weight.toFixed(3)),
      ])
  })
  return table
}

function MapLegend({
  matrix,
  options,
  theme,
  padded,
}: {
  matrix: AttentionMatrix
  options: AttentionOptions
  theme: Theme
  padded: boolean[]
}) {
  const [low, middle, high] = SCALE_WEIGHTS[options.colours]
  const hasHidden = matrix.visible.includes(0)
  return (
    <p class="muted hint legend-line">
      {matrix.signed ? (
        <ColourScale
          low={formatNumber(-matrix.scale)}
          high={formatNumber(matrix.scale)}
          unit={options.minus === null ? "weight" : "difference of weights"}
          theme={theme}
          signed
        />
      ) : (
        <ColourScale
          low={String(low)}
          high={String(high)}
          unit={`weight; the middle is ${middle}`}
          theme={theme}
        />
      )}
      {hasHidden ? (
        <span class="scale">
          <i class="masked swatch" /> masked
        </span>
      ) : null}
      {padded.includes(true) ? <span class="scale">pale rows are padding</span> : null}
    </p>
  )
}

function nounPlural(noun: string): string {
  return noun === "query" ? "queries" : "keys"
}

function isWithin(index: number, count: number): boolean {
  return index >= 0 && index < count
}

/** Width of an element, as it changes. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(480)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)))
    observer.observe(element.current!)
    return () => observer.disconnect()
  }, [])
  return width
}
