// Controls of all charts of curves: logarithmic axes and smoothing. Their state is in the address.

import type { Navigate, Route } from "../route"
import { MAX_SMOOTHING, readSmoothing } from "./curve_chart"
import { Checkbox } from "./form_controls"

export function CurveControls({
  route,
  navigate,
  canSmooth,
}: {
  route: Route
  navigate: Navigate
  /** Whether there are training curves. */
  canSmooth: boolean
}) {
  const log = String(route.log ?? "")
  const smoothing = readSmoothing(route)
  const setLog = (axis: "x" | "y", isLog: boolean) => {
    const axes = ["x", "y"].filter((other) => (other === axis ? isLog : log.includes(other)))
    navigate({ log: axes.join("") || undefined })
  }
  return (
    <>
      <Checkbox label="log x" checked={log.includes("x")} onChange={(is) => setLog("x", is)} />
      <Checkbox label="log y" checked={log.includes("y")} onChange={(is) => setLog("y", is)} />
      {canSmooth ? (
        <label
          class="choice smoothing"
          title="Moving average of noisy training curves. Results on held-out data are never smoothed."
        >
          <span class="muted">smooth training</span>
          <input
            type="range"
            min={0}
            max={MAX_SMOOTHING}
            value={smoothing}
            aria-label="smoothing"
            aria-valuetext={describeSmoothing(smoothing)}
            onInput={(event) =>
              navigate(
                {
                  smooth: event.currentTarget.value === "0" ? undefined : event.currentTarget.value,
                },
                { replace: true },
              )
            }
          />
          <output class="muted">{describeSmoothing(smoothing)}</output>
        </label>
      ) : null}
    </>
  )
}

function describeSmoothing(strength: number): string {
  return strength ? `over ≈ ${2 ** strength} points` : "off"
}
