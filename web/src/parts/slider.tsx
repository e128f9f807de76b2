// The one step slider that all views of attention follow.

import { useEffect, useState } from "preact/hooks"

import { lastUpTo } from "../model"
import { whole } from "../numbers"

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
  useEffect(() => {
    const toggle = () => setPlaying((before) => !before)
    addEventListener("neural-play", toggle)
    return () => removeEventListener("neural-play", toggle)
  }, [])
  if (steps.length < 2) return null
  const play = () => {
    if (!playing && at === steps.length - 1) onStep(steps[0])
    setPlaying(!playing)
  }
  return (
    <div class="slider">
      <button type="button" class="play" aria-label={playing ? "pause" : "play"} onClick={play}>
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
