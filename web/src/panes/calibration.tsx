// Whether probabilities mean what they say: the reliability diagram and the scores of every method.

import { lineColour } from "../draw/colours"
import type { Calibrated, Interval, Reliability } from "../model"
import { number, whole, words } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import type { Theme } from "../theme"

const [SIDE, EDGE, BARS] = [380, 44, 80]

function View({ run, theme }: ViewProps) {
  const found = run?.calibration
  if (!found) return <p class="soft">this run has no calibration; `neural calibrate` makes one</p>
  return (
    <>
      <p>
        On {found.data}; above a probability of <b>{number(found.threshold)}</b> a part begins
        <span class="soft"> (F1 {number(found.f1)} on the documents that chose it)</span>
      </p>
      {Object.entries(found.questions).map(([name, one]) => <Question key={name} name={name} found={one} theme={theme} />)}
    </>
  )
}

function Question({ name, found, theme }: { name: string; found: Calibrated; theme: Theme }) {
  const diagrams = Object.entries(found.diagrams)
  const scores = [...new Set(Object.values(found.methods).flatMap(Object.keys))]
  return (
    <div class="columns uneven">
      <section class="card">
        <h2>P({name}): said and true <small>95 % intervals; below, how many, on a logarithmic scale</small></h2>
        <Diagram diagrams={diagrams} theme={theme} />
        <ul class="legend">
          {diagrams.map(([method], at) => <li key={method}><i style={{ background: lineColour(at, theme) }} />{method}</li>)}
        </ul>
      </section>
      <section class="card">
        <h2>Methods <small>lower is better</small></h2>
        <p>{found.why}</p>
        <div class="wide">
          <table>
            <thead><tr><th>method</th>{scores.map((one) => <th key={one} class="right">{words(one)}</th>)}</tr></thead>
            <tbody>
              {Object.entries(found.methods).map(([method, row]) => (
                <tr key={method} class={method === found.chosen ? "chosen" : ""}><td>{method}</td>{scores.map((one) => <Score key={one} one={row[one]} />)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  )
}

function Score({ one }: { one: Interval | undefined }) {
  const known = one && one.low !== null && one.low !== undefined
  return <td class="right">{number(one?.value)}{known ? <small class="range">{short(one.low)} … {short(one.high)}</small> : null}</td>
}

function short(value: number | null): string {
  return value === null ? "–" : value === 0 ? "0" : value.toPrecision(2)
}

function Diagram({ diagrams, theme }: { diagrams: [string, Reliability][]; theme: Theme }) {
  const x = (share: number) => EDGE + share * SIDE
  const y = (share: number) => 8 + (1 - share) * SIDE
  const base = SIDE + 34 + BARS
  const most = Math.log10(Math.max(10, ...diagrams.flatMap(([, one]) => one.everything)))
  const tall = (count: number) => (count ? Math.max(2, (Math.log10(count + 1) / most) * BARS) : 0)
  return (
    <svg class="reliability" viewBox={`0 0 ${SIDE + EDGE + 12} ${base + 36}`} role="img" aria-label="reliability diagram">
      {[0, 0.25, 0.5, 0.75, 1].map((share) => (
        <g key={share} class="grid">
          <line x1={x(share)} x2={x(share)} y1={y(0)} y2={y(1)} />
          <line x1={x(0)} x2={x(1)} y1={y(share)} y2={y(share)} />
          <text x={x(share)} y={base + 16} text-anchor="middle">{share}</text>
          <text x={EDGE - 6} y={y(share) + 3.5} text-anchor="end">{share}</text>
        </g>
      ))}
      <line class="perfect" x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
      {diagrams.map(([name, one], at) => {
        const colour = lineColour(at, theme)
        const edges = [0, ...one.edges, 1]
        return (
          <g key={name}>
            {one.said.map((said, bin) => (
              <line key={`i${bin}`} x1={x(said)} x2={x(said)} y1={y(one.low[bin])} y2={y(one.high[bin])} stroke={colour} opacity={0.6} />
            ))}
            <polyline points={one.said.map((said, bin) => `${x(said)},${y(one.true[bin])}`).join(" ")} fill="none" stroke={colour} stroke-width={1.5} />
            {one.said.map((said, bin) => (
              <circle key={bin} cx={x(said)} cy={y(one.true[bin])} r={3.5} fill={colour}>
                <title>{`said ${number(said)}, true ${number(one.true[bin])}, ${whole(one.counts[bin])} elements`}</title>
              </circle>
            ))}
            {one.everything.map((count, bin) => {
              const wide = ((edges[bin + 1] - edges[bin]) * SIDE) / diagrams.length
              return <rect key={`b${bin}`} x={x(edges[bin]) + at * wide} y={base - tall(count)} width={Math.max(1, wide - 1)} height={tall(count)} fill={colour} />
            })}
          </g>
        )
      })}
      <text x={x(0.5)} y={base + 29} text-anchor="middle" class="axis">probability that was said</text>
      <text transform={`translate(9 ${y(0.5)}) rotate(-90)`} text-anchor="middle" class="axis">share that came true</text>
    </svg>
  )
}

export const calibration: Pane = { key: "calibration", title: "Calibration", View, shown: (run) => Boolean(run?.calibration) }
