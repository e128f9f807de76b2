// Small multiples: the same head at several steps of the training.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"

import type { StepMaps } from "../attention_maps"
import { sampleSteps, type AttentionMatrix } from "../attention_matrix"
import type { DataSource } from "../data_source"
import { drawMatrix } from "../draw/heatmap"
import type { WeightScaleName } from "../draw/weight_scale"
import { errorMessage, formatInteger } from "../format"
import type { Run } from "../run_data"
import type { Theme } from "../theme"
import { joinClasses } from "./token_strip"

interface Props {
  source: DataSource
  run: Run
  /** The step that the other views show. */
  step: number
  build: (maps: StepMaps) => AttentionMatrix | null
  paddedRows: boolean[]
  paddedColumns: boolean[]
  colours: WeightScaleName
  theme: Theme
  onStep: (step: number) => void
}

const MAX_STEPS = 8

export function AttentionSteps(props: Props) {
  const { source, run, step, build } = props
  const steps = sampleSteps(run.map_steps, MAX_STEPS)
  const [maps, errorText] = useStepMaps(source, run.id, steps)
  return (
    <>
      {errorText ? <p class="note">{errorText}</p> : null}
      <div class="step-maps">
        {maps.map((stepMaps) => {
          const matrix = build(stepMaps)
          return matrix ? (
            <button
              type="button"
              key={stepMaps.step}
              class={joinClasses(stepMaps.step === step && "selected")}
              aria-pressed={stepMaps.step === step}
              data-step={stepMaps.step}
              onClick={() => props.onStep(stepMaps.step)}
            >
              <StepMap {...props} matrix={matrix} step={stepMaps.step} />
              <span>step {formatInteger(stepMaps.step)}</span>
            </button>
          ) : null
        })}
      </div>
    </>
  )
}

function StepMap({
  matrix,
  step,
  theme,
  colours,
  paddedRows,
  paddedColumns,
}: Props & { matrix: AttentionMatrix }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useLayoutEffect(
    () => drawMatrix(canvas.current!, matrix, theme, colours, paddedRows, paddedColumns),
    [matrix, theme, colours],
  )
  return (
    <canvas
      ref={canvas}
      class={joinClasses("masked", matrix.columns > 100 && "smooth-pixels")}
      role="img"
      aria-label={`attention at step ${step}`}
      style={{ aspectRatio: `${matrix.columns} / ${matrix.rows}` }}
    />
  )
}

/** Maps of several steps, as far as they are loaded. */
function useStepMaps(source: DataSource, id: string, steps: number[]): [StepMaps[], string] {
  const [maps, setMaps] = useState<StepMaps[]>([])
  const [errorText, setErrorText] = useState("")
  useEffect(() => {
    let current = true
    Promise.all(steps.map((step) => source.maps(id, step))).then(
      (loaded) => current && setMaps(loaded),
      (error) => current && setErrorText(errorMessage(error)),
    )
    return () => {
      current = false
    }
  }, [source, id, steps.join(" ")])
  return [maps, errorText]
}
