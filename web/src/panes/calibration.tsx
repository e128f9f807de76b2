// Calibration of probabilities: reliability diagram and the scores of every calibration method.

import { lineColour } from "../draw/colours"
import type { CalibratedQuestion, Interval, Reliability } from "../run_data"
import { formatNumber, formatInteger, formatName } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Theme } from "../theme"

const [PLOT_SIZE, MARGIN, BAR_HEIGHT] = [380, 44, 80]

function CalibrationPane({ run, theme }: PaneProps) {
  const calibration = run?.calibration
  if (!calibration) return <p class="muted">this run has no calibration; run `neural calibrate`</p>
  return (
    <>
      <p>
        On {calibration.data}; above a probability of <b>{formatNumber(calibration.threshold)}</b> a
        segment starts
        <span class="muted">
          {" "}
          (F1 {formatNumber(calibration.f1)} on the documents used to choose it)
        </span>
      </p>
      {Object.entries(calibration.questions).map(([name, question]) => (
        <Question key={name} name={name} question={question} theme={theme} />
      ))}
    </>
  )
}

function Question({
  name,
  question,
  theme,
}: {
  name: string
  question: CalibratedQuestion
  theme: Theme
}) {
  const diagrams = Object.entries(question.diagrams)
  const scores = [...new Set(Object.values(question.methods).flatMap(Object.keys))]
  return (
    <div class="columns columns-2-3">
      <section class="card">
        <h2>
          P({name}): predicted and observed{" "}
          <small>95 % intervals; below: counts, logarithmic scale</small>
        </h2>
        <ReliabilityDiagram diagrams={diagrams} theme={theme} />
        <ul class="legend">
          {diagrams.map(([method], index) => (
            <li key={method}>
              <i style={{ background: lineColour(index, theme) }} />
              {method}
            </li>
          ))}
        </ul>
      </section>
      <section class="card">
        <h2>
          Methods <small>lower is better</small>
        </h2>
        <p>{question.why}</p>
        <div class="scroll-x">
          <table>
            <thead>
              <tr>
                <th>method</th>
                {scores.map((score) => (
                  <th key={score} class="right">
                    {formatName(score)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {Object.entries(question.methods).map(([method, row]) => (
                <tr key={method} class={method === question.chosen ? "selected" : ""}>
                  <td>{method}</td>
                  {scores.map((score) => (
                    <Score key={score} interval={row[score]} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  )
}

function Score({ interval }: { interval: Interval | undefined }) {
  const hasInterval = interval && interval.low !== null && interval.low !== undefined
  return (
    <td class="right">
      {formatNumber(interval?.value)}
      {hasInterval ? (
        <small class="range">
          {formatBound(interval.low)} … {formatBound(interval.high)}
        </small>
      ) : null}
    </td>
  )
}

function formatBound(value: number | null): string {
  return value === null ? "–" : value === 0 ? "0" : value.toPrecision(2)
}

function ReliabilityDiagram({
  diagrams,
  theme,
}: {
  diagrams: [string, Reliability][]
  theme: Theme
}) {
  const toX = (share: number) => MARGIN + share * PLOT_SIZE
  const toY = (share: number) => 8 + (1 - share) * PLOT_SIZE
  const base = PLOT_SIZE + 34 + BAR_HEIGHT
  const maxLog = Math.log10(Math.max(10, ...diagrams.flatMap(([, diagram]) => diagram.all_counts)))
  const barHeight = (count: number) =>
    count ? Math.max(2, (Math.log10(count + 1) / maxLog) * BAR_HEIGHT) : 0
  return (
    <svg
      class="reliability"
      viewBox={`0 0 ${PLOT_SIZE + MARGIN + 12} ${base + 36}`}
      role="img"
      aria-label="reliability diagram"
    >
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <g key={share} class="grid">
          <line x1={toX(share)} x2={toX(share)} y1={toY(0)} y2={toY(1)} />
          <line x1={toX(0)} x2={toX(1)} y1={toY(share)} y2={toY(share)} />
          <text x={toX(share)} y={base + 16} text-anchor="middle">
            {share}
          </text>
          <text x={MARGIN - 6} y={toY(share) + 3.5} text-anchor="end">
            {share}
          </text>
        </g>
      ))}
      <line class="diagonal" x1={toX(0)} y1={toY(0)} x2={toX(1)} y2={toY(1)} />
      {diagrams.map(([name, diagram], index) => {
        const colour = lineColour(index, theme)
        const edges = [0, ...diagram.edges, 1]
        return (
          <g key={name}>
            {diagram.mean_probability.map((predicted, bin) => (
              <line
                key={`i${bin}`}
                x1={toX(predicted)}
                x2={toX(predicted)}
                y1={toY(diagram.low[bin])}
                y2={toY(diagram.high[bin])}
                stroke={colour}
                opacity={0.6}
              />
            ))}
            <polyline
              points={diagram.mean_probability
                .map(
                  (predicted, bin) => `${toX(predicted)},${toY(diagram.observed_frequency[bin])}`,
                )
                .join(" ")}
              fill="none"
              stroke={colour}
              stroke-width={1.5}
            />
            {diagram.mean_probability.map((predicted, bin) => (
              <circle
                key={bin}
                cx={toX(predicted)}
                cy={toY(diagram.observed_frequency[bin])}
                r={3.5}
                fill={colour}
              >
                <title>{`predicted ${formatNumber(predicted)}, observed ${formatNumber(diagram.observed_frequency[bin])}, ${formatInteger(diagram.counts[bin])} elements`}</title>
              </circle>
            ))}
            {diagram.all_counts.map((count, bin) => {
              const barWidth = ((edges[bin + 1] - edges[bin]) * PLOT_SIZE) / diagrams.length
              return (
                <rect
                  key={`b${bin}`}
                  x={toX(edges[bin]) + index * barWidth}
                  y={base - barHeight(count)}
                  width={Math.max(1, barWidth - 1)}
                  height={barHeight(count)}
                  fill={colour}
                />
              )
            })}
          </g>
        )
      })}
      <text x={toX(0.5)} y={base + 29} text-anchor="middle" class="axis">
        predicted probability
      </text>
      <text transform={`translate(9 ${toY(0.5)}) rotate(-90)`} text-anchor="middle" class="axis">
        observed frequency
      </text>
    </svg>
  )
}

export default {
  title: "Calibration",
  order: 60,
  component: CalibrationPane,
  applies: ({ run }) => Boolean(run?.calibration),
} satisfies PaneDefinition
