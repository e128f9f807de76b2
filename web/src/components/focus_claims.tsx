// Claims about focus paradigms: decided ones with their number against zero, undecided ones as a table.

import type { FocusClaim, FocusData } from "../focus_data"
import { formatInteger, formatNumber } from "../format"
import type { Interval } from "../run_data"
import "../styles/focus.css"

const VERDICTS = { yes: "supported", no: "refuted", undecided: "undecided" }

export function ClaimList({ focus }: { focus: FocusData }) {
  const decided = focus.claims.filter((claim) => claim.supported !== "undecided")
  const undecided = focus.claims.filter((claim) => claim.supported === "undecided")
  const hasCounts = focus.segment_counts.length > 1
  if (!focus.claims.length) return null
  return (
    <section>
      <h2>
        Claims{" "}
        <small>
          {focus.tests
            ? `tests over paired seeds, corrected for ${formatInteger(focus.tests)} of them; intervals are 95 % each, uncorrected`
            : "no test was possible"}
        </small>
      </h2>
      {decided.length ? (
        <ul class="claims">
          {decided.map((claim) => (
            <li key={claim.claim + claim.segments} class="claim card" data-claim={claim.claim}>
              <p>
                <Verdict claim={claim} />{" "}
                <span>
                  {claim.claim}
                  {hasCounts ? (
                    <span class="muted"> ({formatSegments(claim, focus.noun)})</span>
                  ) : null}
                </span>
              </p>
              <AgainstZero number={claim.number} label={claim.quantity} />
              <p class="muted">
                {claim.quantity}: {claim.evidence}
                {claim.p === null ? "" : `; p = ${formatP(claim.p)}`}
              </p>
            </li>
          ))}
        </ul>
      ) : null}
      {undecided.length ? (
        <div class="scroll-x">
          <table class="undecided-claims">
            <thead>
              <tr>
                <th>undecided</th>
                {hasCounts ? <th class="right">{focus.noun}s</th> : null}
                <th>number (95 % interval)</th>
                <th class="right">p</th>
              </tr>
            </thead>
            <tbody>
              {undecided.map((claim) => (
                <tr key={claim.claim + claim.segments} data-claim={claim.claim}>
                  <td>{claim.claim}</td>
                  {hasCounts ? <td class="right">{formatInteger(claim.segments)}</td> : null}
                  <td title={claim.evidence}>
                    {claim.quantity}: {formatInterval(claim.number)}
                  </td>
                  <td class="right">{claim.p === null ? "–" : formatP(claim.p)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </section>
  )
}

function Verdict({ claim }: { claim: FocusClaim }) {
  return <span class={`verdict ${claim.supported}`}>{VERDICTS[claim.supported]}</span>
}

/** An estimate and its interval on an axis that contains 0. */
function AgainstZero({ number, label }: { number: Interval; label: string }) {
  const { value, low, high } = number
  if (value === null) return null
  const ends = [0, value, low ?? value, high ?? value]
  const [first, last] = [Math.min(...ends), Math.max(...ends)]
  const toX = (end: number) => `${5 + (90 * (end - first)) / (last - first || 1)}%`
  return (
    <svg
      class="against-zero"
      height={34}
      role="img"
      aria-label={`${label}: ${formatInterval(number)}`}
    >
      <line class="zero" x1={toX(0)} x2={toX(0)} y1={2} y2={20} />
      <text x={toX(0)} y={32} text-anchor={value > 0 ? "start" : "end"}>
        0
      </text>
      {low !== null && high !== null ? (
        <line class="interval" x1={toX(low)} x2={toX(high)} y1={11} y2={11} />
      ) : null}
      <circle cx={toX(value)} cy={11} r={5} />
      <text x={toX(value)} y={32} text-anchor="middle">
        {formatNumber(value)}
      </text>
    </svg>
  )
}

function formatInterval({ value, low, high }: Interval): string {
  if (value === null) return "–"
  return low === null || high === null
    ? formatNumber(value)
    : `${formatNumber(value)} (${formatNumber(low)} … ${formatNumber(high)})`
}

function formatSegments(claim: FocusClaim, noun: string): string {
  return `${formatInteger(claim.segments)} ${noun}s`
}

function formatP(p: number): string {
  return p < 1e-4 ? "<0.0001" : formatNumber(p)
}
