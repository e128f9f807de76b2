// Losses in the digest: one chart for every experiment.

import { CurveChart } from "../components/curve_chart"
import type { PaneProps } from "../pane"
import type { Run } from "../run_data"

const MAX_CHARTS = 4
const LOSS_NAMES = ["valid/loss", "train/loss"]

export function LossesDigest(props: PaneProps) {
  const { index, runs, groups } = props
  const experiments = index.experiments?.length
    ? index.experiments
    : [{ title: index.title, runs: runs.map((run) => run.id), groups: [] }]
  const charts = experiments.flatMap((experiment) => {
    const members = runs.filter((run) => experiment.runs.includes(run.id))
    const name = LOSS_NAMES.find((loss) => members.some((run) => hasPoints(run, loss)))
    return name ? [{ title: experiment.title, members, name }] : []
  })
  if (!charts.length) return null
  return (
    <>
      <h2>Losses</h2>
      <div class="digest-columns">
        {charts.slice(0, MAX_CHARTS).map(({ title, members, name }) => (
          <div key={title} class="digest-block">
            <p class="muted">{title}</p>
            <CurveChart
              {...props}
              route={{ pane: "print" }} // no marker of the slider's step, no smoothing
              run={members[0]}
              runs={members}
              groups={groups.filter((group) => members.some((run) => group.runs.includes(run.id)))}
              name={name}
              height={150}
            />
          </div>
        ))}
      </div>
    </>
  )
}

function hasPoints(run: Run, name: string): boolean {
  return run.scalars[name]?.values.some((value) => value !== null) ?? false
}
