// Small pieces of text that several views share.

import type { Finding } from "../model"
import { words } from "../numbers"

/** Names and what they are. */
export function Facts({ rows }: { rows: [string, string][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** What a finding comes to: a claim is supported or not, a warning that holds is a warning. */
export function Verdict({ finding }: { finding: Finding }) {
  const word = finding.kind === "claim" || finding.supported !== "yes" ? finding.supported : finding.kind
  return <span class={`verdict ${word}`}>{word}</span>
}

interface ChoiceProps {
  label: string
  value: string
  among: string[]
  onChange: (value: string) => void
}

export function Choice({ label, value, among, onChange }: ChoiceProps) {
  return (
    <label class="choice">
      {label ? <span class="soft">{label} </span> : null}
      <select aria-label={label || "choice"} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {among.map((one) => <option key={one} value={one}>{words(one)}</option>)}
      </select>
    </label>
  )
}

export function Toggle({ label, on, onChange }: { label: string; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class="choice">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  )
}
