// All logged metrics and the mean of every attention measure, with runs in shared charts.

import {
  compareCurveNames,
  CurveChart,
  MEASURE_PREFIX,
  filterSameTask,
} from "../components/curve_chart"
import { Checkbox } from "../components/form_controls"
import { formatSetting } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"

function CurvesPane(props: PaneProps) {
  const { route, navigate } = props
  const runs = filterSameTask(props.run, props.runs)
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.scalars)))].sort(
    compareCurveNames,
  )
  const measures = [...new Set(runs.flatMap((run) => Object.keys(run.measures)))].map(
    (name) => MEASURE_PREFIX + name,
  )
  return (
    <>
      <div class="toolbar">
        <Checkbox
          label="logarithmic"
          checked={route.log === "y"}
          onChange={(checked) => navigate({ log: checked ? "y" : undefined })}
        />
        <Checkbox
          label="smooth"
          checked={route.smooth === "y"}
          onChange={(checked) => navigate({ smooth: checked ? "y" : undefined })}
        />
        <span class="muted">
          over steps; drag to zoom, double-click to reset
          {runs.length > 1 ? "; bands are the standard error over seeds" : ""}
          {runs.length < props.runs.length
            ? `; runs of the task ${formatSetting(props.run?.settings.task)}`
            : ""}
        </span>
      </div>
      <div class="charts">
        {names.map((name) => (
          <CurveChart key={name} {...props} runs={runs} name={name} />
        ))}
      </div>
      {measures.length ? <h2>Attention, mean over layers and heads</h2> : null}
      <div class="charts">
        {measures.map((name) => (
          <CurveChart key={name} {...props} runs={runs} name={name} />
        ))}
      </div>
    </>
  )
}

export default {
  title: "Curves",
  order: 20,
  component: CurvesPane,
  applies: ({ run }) =>
    run !== null &&
    (Object.keys(run.scalars).length > 0 ||
      Object.values(run.measures).some((measure) => measure.steps.length > 1)),
} satisfies PaneDefinition
