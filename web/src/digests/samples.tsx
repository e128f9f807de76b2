// Samples in the digest: what a language model wrote at the start and at the end of its training.

import { formatInteger } from "../format"
import type { PaneProps } from "../pane"
import { labelRuns } from "../run_labels"

const MAX_RUNS = 2
const MAX_CHARACTERS = 360

export function SamplesDigest({ index, runs }: PaneProps) {
  const labels = labelRuns(index)
  const shown = runs.filter((run) => run.samples.length).slice(0, MAX_RUNS)
  return (
    <>
      {shown.map((run) => {
        const samples = run.samples.filter(
          (_, position) => position === 0 || position === run.samples.length - 1,
        )
        return (
          <div key={run.id} class="digest-block">
            <h2>Samples of {labels.get(run.id) ?? run.name}</h2>
            <div class="digest-columns">
              {samples.map(({ step, text }) => (
                <figure key={step}>
                  <figcaption class="muted">after step {formatInteger(step)}</figcaption>
                  <pre>
                    {text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text}
                  </pre>
                </figure>
              ))}
            </div>
          </div>
        )
      })}
    </>
  )
}
