// The step slider that all attention panes share.

import { useEffect, useState } from "preact/hooks"

import { lastIndexUpTo } from "../run_data"
import { formatInteger } from "../format"

/** Event on `window`: start or stop playing. */
export const PLAY_EVENT = "neural-play"

interface Props {
  steps: number[]
  step: number
  onStep: (step: number) => void
  live?: boolean
}

export function StepSlider({ steps, step, onStep, live = false }: Props) {
  const index = Math.max(0, lastIndexUpTo(steps, step))
  const [playing, setPlaying] = useState(false)
  useEffect(() => {
    if (!playing) return
    const timer = setTimeout(
      () => (index + 1 < steps.length ? onStep(steps[index + 1]) : setPlaying(false)),
      160,
    )
    return () => clearTimeout(timer)
  }, [playing, index, steps])
  const togglePlay = () => {
    if (!playing && index === steps.length - 1) onStep(steps[0])
    setPlaying(!playing)
  }
  useEffect(() => {
    addEventListener(PLAY_EVENT, togglePlay)
    return () => removeEventListener(PLAY_EVENT, togglePlay)
  }, [playing, index, steps])
  if (steps.length < 2) return null
  return (
    <div class="slider">
      <button
        type="button"
        class="play"
        aria-label={playing ? "pause" : "play"}
        title={`${playing ? "pause" : "play"} (space; ← → single steps)`}
        onClick={togglePlay}
      >
        {playing ? "❚❚" : "▶"}
      </button>
      <input
        type="range"
        aria-label="step"
        aria-valuetext={`step ${steps[index]}`}
        min={0}
        max={steps.length - 1}
        value={index}
        onInput={(event) => onStep(steps[Number(event.currentTarget.value)])}
      />
      {/* announced when the step was chosen, not while it plays */}
      <output aria-live={playing ? "off" : "polite"}>
        step <b>{formatInteger(steps[index])}</b>{" "}
        <span class="muted">
          of {formatInteger(steps[steps.length - 1])}
          {live ? ", live" : ""}
        </span>
      </output>
    </div>
  )
}
