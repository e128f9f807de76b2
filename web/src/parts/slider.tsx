// The one step slider that all views of attention follow.

import { useEffect, useState } from "preact/hooks"

import { lastUpTo } from "../model"
import { whole } from "../numbers"

/** Of the window: begin or stop to play. */
export const PLAY = "neural-play"

interface Props {
  steps: number[]
  step: number
  onStep: (step: number) => void
  live?: boolean
}

export function Slider({ steps, step, onStep, live = false }: Props) {
  const at = Math.max(0, lastUpTo(steps, step))
  const [playing, setPlaying] = useState(false)
  useEffect(() => {
    if (!playing) return
    const timer = setTimeout(() => (at + 1 < steps.length ? onStep(steps[at + 1]) : setPlaying(false)), 160)
    return () => clearTimeout(timer)
  }, [playing, at, steps])
  const play = () => {
    if (!playing && at === steps.length - 1) onStep(steps[0])
    setPlaying(!playing)
  }
  useEffect(() => {
    addEventListener(PLAY, play)
    return () => removeEventListener(PLAY, play)
  }, [playing, at, steps])
  if (steps.length < 2) return null
  return (
    <div class="slider">
      <button type="button" class="play" aria-label={playing ? "pause" : "play"} title={`${playing ? "pause" : "play"} (space; ← → go step by step)`} onClick={play}>
        {playing ? "❚❚" : "▶"}
      </button>
      <input
        type="range" aria-label="step" aria-valuetext={`step ${steps[at]}`} min={0} max={steps.length - 1} value={at}
        onInput={(event) => onStep(steps[Number(event.currentTarget.value)])}
      />
      <output>
        step <b>{whole(steps[at])}</b> <span class="soft">of {whole(steps[steps.length - 1])}{live ? ", live" : ""}</span>
      </output>
    </div>
  )
}
