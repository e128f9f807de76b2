// Calibration of probabilities: reliability and the scores of every calibration method.

import { Picture, type Table } from "../export"
import { lineColour } from "../draw/colours"
import type { CalibratedQuestion, Interval, Reliability } from "../run_data"
import { formatNumber, formatInteger, formatName } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Theme } from "../theme"
import { Checkbox } from "../components/form_controls"
import "../styles/calibration.css"

const [PLOT_SIZE, MARGIN] = [380, 44]

const QUESTIONS: Record<string, string> = {
  boundary: "does a segment begin here?",
  label: "is the most likely label right?",
}

const SCORES: Record<string, [name: string, meaning: string]> = {
  log_loss: ["log loss", "mean of −ln of the probability of what happened, in nats"],
  brier: ["Brier", "mean squared difference of probability and outcome"],
  ece: [
    "ECE",
    "expected calibration error: mean difference of predicted probability and observed frequency, in bins of equal width",
  ],
  ece_equal_mass: ["ECE, equal mass", "the same in bins with equally many elements"],
  ece_debiased: [
    "ECE, debiased",
    "root mean squared difference in bins with equally many elements, without the part that chance adds",
  ],
}

/** Ticks of an axis of probabilities, and of one of log-odds. */
const LINEAR_TICKS = [0, 0.25, 0.5, 0.75, 1]
const ODDS_TICKS = [0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99]
const MIN_ODDS_PROBABILITY = 0.003

function CalibrationPane({ run, theme, route, navigate }: PaneProps) {
  const calibration = run?.calibration
  if (!calibration) return null
  return (
    <>
      <p>
        On {calibration.data}; above a calibrated probability of{" "}
        <b>{formatNumber(calibration.threshold)}</b> a segment begins
        <span class="muted">
          {" "}
          (F1 {formatNumber(calibration.f1)} on the documents used to choose it)
        </span>
      </p>
      {Object.entries(calibration.questions).map(([name, question]) => (
        <Question
          key={name}
          name={name}
          question={question}
          theme={theme}
          isOdds={route.odds === "y"}
          onOdds={(isOdds) => navigate({ odds: isOdds ? "y" : undefined }, { replace: true })}
        />
      ))}
    </>
  )
}

function Question({
  name,
  question,
  theme,
  isOdds,
  onOdds,
}: {
  name: string
  question: CalibratedQuestion
  theme: Theme
  isOdds: boolean
  onOdds: (isOdds: boolean) => void
}) {
  const diagrams = Object.entries(question.diagrams)
  const scores = [...new Set(Object.values(question.methods).flatMap(Object.keys))]
  return (
    <div class="columns columns-2-3">
      <section class="card">
        <h2>
          Reliability <small>{QUESTIONS[name] ?? name}</small>
        </h2>
        <Picture name={`reliability ${name}`} csv={() => tabulateBins(diagrams)}>
          <ReliabilityDiagram diagrams={diagrams} theme={theme} isOdds={isOdds} />
          <Checkbox label="log-odds scale" checked={isOdds} onChange={onOdds} />
          <Methods diagrams={diagrams} theme={theme} />
        </Picture>
        <p class="muted">
          {describeBins(diagrams)}
          {isOdds ? ` Values below ${MIN_ODDS_PROBABILITY} or close to 1 are at the edge.` : ""}
        </p>
      </section>
      <section class="card">
        <h2>
          Calibration methods <small>lower is better</small>
        </h2>
        <p>{question.why}</p>
        <div class="scroll-x calibration-table">
          <table>
            <thead>
              <tr>
                <th>method</th>
                {scores.map((score) => (
                  <th key={score} class="right">
                    <abbr title={SCORES[score]?.[1]}>
                      {SCORES[score]?.[0] ?? formatName(score)}
                    </abbr>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {Object.entries(question.methods).map(([method, row]) => (
                <tr key={method} class={method === question.chosen ? "selected" : ""}>
                  <td>{formatMethod(method)}</td>
                  {scores.map((score) => (
                    <Score key={score} interval={row[score]} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <p class="muted">
          95 % intervals
          {question.interval_basis ? ` by jackknife over ${question.interval_basis}` : ""}; each
          document was predicted by a fit on the others
        </p>
      </section>
    </div>
  )
}

/** Legend of the diagram. */
function Methods({ diagrams, theme }: { diagrams: [string, Reliability][]; theme: Theme }) {
  return (
    <ul class="legend">
      {diagrams.map(([method], index) => (
        <li key={method}>
          <i style={{ background: lineColour(index, theme) }} />
          {formatMethod(method)}
        </li>
      ))}
      <li>
        <i class="diagonal-key" /> perfect
      </li>
    </ul>
  )
}

/** The first calibrated run of the page, without the comparison of methods. */
function CalibrationDigest({ runs, theme }: PaneProps) {
  const run = runs.find(({ calibration }) => calibration)
  const [name, question] = Object.entries(run?.calibration?.questions ?? {})[0] ?? []
  if (!run?.calibration || !name || !question) return null
  const diagrams = Object.entries(question.diagrams)
  return (
    <div class="digest-block digest-columns">
      <figure>
        <ReliabilityDiagram diagrams={diagrams} theme={theme} isOdds={false} />
      </figure>
      <div>
        <h2>
          Reliability <small>{QUESTIONS[name] ?? name}</small>
        </h2>
        <Methods diagrams={diagrams} theme={theme} />
        <p>{describeBins(diagrams)}</p>
        <p>{question.why}</p>
        <p>
          Threshold {formatNumber(run.calibration.threshold)}, on {run.calibration.data}.
        </p>
      </div>
    </div>
  )
}

/** The method `none` is the network's own probabilities. */
function formatMethod(method: string): string {
  return method === "none" ? "uncalibrated" : formatName(method)
}

/** A row per point with its interval. */
function tabulateBins(diagrams: [string, Reliability][]): Table {
  return {
    head: ["method", "predicted probability", "observed frequency", "low", "high", "count"],
    rows: diagrams.flatMap(([method, diagram]) =>
      diagram.counts.map((count, bin) => [
        formatMethod(method),
        diagram.mean_probability[bin],
        diagram.observed_frequency[bin],
        diagram.low[bin],
        diagram.high[bin],
        count,
      ]),
    ),
  }
}

/** How the points were made, in words. */
function describeBins(diagrams: [string, Reliability][]): string {
  const counts = diagrams.flatMap(([, diagram]) => diagram.counts)
  const [low, high] = [Math.min(...counts), Math.max(...counts)]
  const range =
    low === high ? formatInteger(low) : `${formatInteger(low)} to ${formatInteger(high)}`
  const bins = Math.max(...diagrams.map(([, diagram]) => diagram.counts.length))
  return `A point: a bin of ${range} elements, ${bins} bins. Vertical lines: 95 % intervals; horizontal lines: the range of the bin.`
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

/** Position of a probability on the log-odds scale, 0 … 1; those near 0 and 1 are at its ends. */
function scaleOdds(probability: number): number {
  const logOdds = (p: number) => Math.log(p / (1 - p))
  const end = logOdds(1 - MIN_ODDS_PROBABILITY)
  const clipped = Math.min(1 - MIN_ODDS_PROBABILITY, Math.max(MIN_ODDS_PROBABILITY, probability))
  return (logOdds(clipped) + end) / (2 * end)
}

function ReliabilityDiagram({
  diagrams,
  theme,
  isOdds,
}: {
  diagrams: [string, Reliability][]
  theme: Theme
  isOdds: boolean
}) {
  const scale = isOdds ? scaleOdds : (probability: number) => probability
  const toX = (probability: number) => MARGIN + scale(probability) * PLOT_SIZE
  const toY = (probability: number) => 8 + (1 - scale(probability)) * PLOT_SIZE
  return (
    <svg
      class="reliability"
      viewBox={`0 0 ${PLOT_SIZE + MARGIN + 12} ${PLOT_SIZE + 46}`}
      role="img"
      aria-label="reliability: observed frequency by predicted probability"
    >
      {(isOdds ? ODDS_TICKS : LINEAR_TICKS).map((share) => (
        <g key={share} class="grid">
          <line x1={toX(share)} x2={toX(share)} y1={toY(0)} y2={toY(1)} />
          <line x1={toX(0)} x2={toX(1)} y1={toY(share)} y2={toY(share)} />
          <text x={toX(share)} y={toY(0) + 16} text-anchor="middle">
            {share}
          </text>
          <text x={MARGIN - 6} y={toY(share) + 3.5} text-anchor="end">
            {share}
          </text>
        </g>
      ))}
      <line class="diagonal" x1={toX(0)} y1={toY(0)} x2={toX(1)} y2={toY(1)} />
      {diagrams.map(([name, diagram], index) => (
        <ReliabilityPoints
          key={name}
          diagram={diagram}
          colour={lineColour(index, theme)}
          isHollow={index === 0 && diagrams.length > 1}
          toX={toX}
          toY={toY}
        />
      ))}
      <text x={toX(0.5)} y={toY(0) + 33} text-anchor="middle" class="axis">
        predicted probability
      </text>
      <text transform={`translate(9 ${toY(0.5)}) rotate(-90)`} text-anchor="middle" class="axis">
        observed frequency
      </text>
    </svg>
  )
}

/** A point for each bin that is not empty. They are not joined: nothing was observed between them. */
function ReliabilityPoints({
  diagram,
  colour,
  isHollow,
  toX,
  toY,
}: {
  diagram: Reliability
  colour: string
  isHollow: boolean
  toX: (share: number) => number
  toY: (share: number) => number
}) {
  const edges = [0, ...diagram.edges, 1]
  const ranges = diagram.all_counts
    .map((count, bin) => ({ count, low: edges[bin], high: edges[bin + 1] }))
    .filter(({ count }) => count > 0)
  return (
    <g stroke={colour}>
      {diagram.mean_probability.map((predicted, bin) => {
        const observed = diagram.observed_frequency[bin]
        return (
          <g key={bin} class="reliability-point">
            <line
              class="bin-range"
              x1={toX(ranges[bin].low)}
              x2={toX(ranges[bin].high)}
              y1={toY(observed)}
              y2={toY(observed)}
            />
            <line
              class="interval"
              x1={toX(predicted)}
              x2={toX(predicted)}
              y1={toY(diagram.low[bin])}
              y2={toY(diagram.high[bin])}
            />
            <circle
              cx={toX(predicted)}
              cy={toY(observed)}
              r={4}
              fill={isHollow ? "var(--card)" : colour}
              stroke-width={1.5}
            >
              <title>{`predicted probability ${formatNumber(predicted)}, observed frequency ${formatNumber(observed)} (${formatNumber(diagram.low[bin])} … ${formatNumber(diagram.high[bin])}), ${formatInteger(diagram.counts[bin])} elements`}</title>
            </circle>
          </g>
        )
      })}
    </g>
  )
}

export default {
  title: "Calibration",
  missing: "calibration: segmenters get one by the command neural calibrate",
  order: 60,
  component: CalibrationPane,
  digest: CalibrationDigest,
  applies: ({ run }) => Boolean(run?.calibration),
} satisfies PaneDefinition
