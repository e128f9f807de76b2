// Phases of a training: the curves of the monitored metric, and below them a row of bands per run.

import { lineColour } from "../draw/colours"
import type { FigureDefinition, FigureProps } from "../figure"
import { formatInteger } from "../format"
import { findRun } from "../components/linked_text"
import { SvgPlot, type PlotCurve } from "../components/svg_plot"
import { useWidth } from "../components/use_width"
import { ViewLink } from "../components/view_link"
import "../styles/findings.css"

interface Band {
  /** Name of the phase, which is its colour. */
  name: string
  /** Its name in words, for the direction in which the metric improves. */
  label: string
  first: number
  last: number
}

interface PhasesFigure {
  kind: "phases"
  metric: string
  rows: { run: string; seed: number | null; bands: Band[] }[]
}

const ROW_HEIGHT = 20
const MAX_ROWS = 12

function Phases({ figure, runs, theme, navigate, isCard }: FigureProps) {
  const { metric, rows: allRows } = figure as unknown as PhasesFigure
  const rows = allRows.slice(0, MAX_ROWS)
  const [element, width] = useWidth(isCard ? 300 : 420)
  const curves: PlotCurve[] = rows.flatMap(({ run: id, seed }, index) => {
    const curve = findRun(id, runs)?.scalars[metric]
    const colour = lineColour(rows.length > 1 ? [0, 2, 3, 5, 7, 4][index % 6] : 0, theme)
    return curve ? [{ label: nameRow(seed, index), ...curve, colour }] : []
  })
  if (!curves.some((curve) => curve.steps.length)) return null
  const height = isCard ? 120 : 150
  const bands = rows.flatMap((row) => row.bands)
  const names = [...new Map(bands.map((band) => [band.name, band.label]))].filter(
    ([name]) => name !== "best",
  )
  return (
    <div class="figure-phases" ref={element}>
      <SvgPlot
        width={width}
        height={height}
        extraHeight={rows.length * ROW_HEIGHT + 4}
        curves={curves}
        label={rows
          .map(
            ({ seed, bands }, index) =>
              `${metric}${rows.length > 1 ? `, ${nameRow(seed, index)}` : ""}: ${bands.map(describeBand).join(", ")}`,
          )
          .join("; ")}
        foreground={(scale) => (
          <>
            <text class="mark-label" x={scale.left} y={scale.top - 6}>
              {metric}
            </text>
            {rows.map(({ seed, bands }, row) => {
              const y = height + 2 + row * ROW_HEIGHT
              return (
                <g key={row}>
                  {rows.length > 1 ? (
                    <text class="tick" x={scale.left - 6} y={y + 13} text-anchor="end">
                      {seed === null ? row + 1 : `s${seed}`}
                    </text>
                  ) : null}
                  {bands.map((band) =>
                    band.name === "best" ? null : (
                      <g key={`${band.name} ${band.first}`}>
                        <title>{describeBand(band)}</title>
                        <rect
                          class={`band phase-${band.name}`}
                          x={scale.toX(band.first)}
                          y={y}
                          width={Math.max(1, scale.toX(band.last) - scale.toX(band.first) - 1)}
                          height={ROW_HEIGHT - 4}
                        />
                        {isLabelled(band, scale) ? (
                          <text
                            class="band-label"
                            x={(scale.toX(band.first) + scale.toX(band.last)) / 2}
                            y={y + 12}
                            text-anchor="middle"
                          >
                            {band.label}
                          </text>
                        ) : null}
                      </g>
                    ),
                  )}
                  {bands.map((band) =>
                    band.name === "best" ? (
                      <g key="best">
                        <title>{describeBand(band)}</title>
                        {rows.length === 1 ? (
                          <line
                            class="mark"
                            x1={scale.toX(band.last)}
                            x2={scale.toX(band.last)}
                            y1={scale.top}
                            y2={scale.bottom}
                          />
                        ) : null}
                        <line
                          class="best"
                          x1={scale.toX(band.last)}
                          x2={scale.toX(band.last)}
                          y1={y - 1}
                          y2={y + ROW_HEIGHT - 3}
                        />
                        {rows.length === 1 ? (
                          <text
                            class="mark-label"
                            x={Math.min(scale.toX(band.last), scale.right)}
                            y={scale.top - 6}
                            text-anchor={
                              scale.toX(band.last) > (scale.left + scale.right) / 2
                                ? "end"
                                : "start"
                            }
                          >
                            {band.label}
                          </text>
                        ) : null}
                      </g>
                    ) : null,
                  )}
                </g>
              )
            })}
          </>
        )}
      />
      <div class="figure-footer">
        <div class="plot-legend">
          {names.map(([name, label]) => (
            <span key={name}>
              <i class={`phase-${name}`} /> {label}
            </span>
          ))}
        </div>
        {allRows.length > rows.length ? (
          <span class="muted">
            {rows.length} of {allRows.length} runs
          </span>
        ) : null}
        {rows.slice(0, 1).map(({ run: id, bands }) => {
          const run = findRun(id, runs)
          const best = bands.find((band) => band.name === "best")
          return run && best ? (
            <span data-export="omit" key={id}>
              <ViewLink
                route={{ pane: "curves", run: run.id, step: best.last }}
                navigate={navigate}
              >
                curves
              </ViewLink>
            </span>
          ) : null
        })}
      </div>
    </div>
  )
}

function nameRow(seed: number | null, index: number): string {
  return seed === null ? `run ${index + 1}` : `seed ${seed}`
}

function describeBand({ name, label, first, last }: Band): string {
  return name === "best"
    ? `${label} at step ${formatInteger(last)}`
    : `${label}, steps ${formatInteger(first)} to ${formatInteger(last)}`
}

function isLabelled(band: Band, { toX }: { toX: (step: number) => number }): boolean {
  return toX(band.last) - toX(band.first) > 7 * band.label.length
}

export default { component: Phases } satisfies FigureDefinition
