// Generated text at the first and the last step that has any, one below the other.

import { formatInteger } from "../format"
import type { FigureDefinition, FigureProps } from "../figure"
import "../styles/samples_figure.css"

interface Sample {
  step: number
  text: string
}

/** `figure.samples`: step and text of each sample, in the order of steps; `figure.run`: their run. */
function Samples({ figure, navigate }: FigureProps) {
  const samples = figure.samples as Sample[]
  return (
    <dl class="sample-lines">
      {samples.map(({ step, text }) => (
        <div key={step}>
          <dt>
            <button
              type="button"
              class="link"
              onClick={() => navigate({ pane: "samples", run: String(figure.run), step })}
            >
              step {formatInteger(step)}
            </button>
          </dt>
          <dd title={text}>{text.trim() ? text : "(nothing but blanks)"}</dd>
        </div>
      ))}
    </dl>
  )
}

export default { component: Samples } satisfies FigureDefinition
