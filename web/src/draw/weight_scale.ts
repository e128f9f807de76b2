// How weights become colours: the position of a weight on the colour scale.

export const WEIGHT_SCALES = ["square root", "linear", "logarithmic"] as const
export type WeightScaleName = (typeof WEIGHT_SCALES)[number]
export const DEFAULT_WEIGHT_SCALE: WeightScaleName = "square root"

/** Decades that the logarithmic scale shows: weights below 10⁻⁴ look like 0. */
const DECADES = 4

/** Weights at the beginning, in the middle and at the end of the colour scale, for its legend. */
export const SCALE_WEIGHTS: Record<WeightScaleName, [low: number, middle: number, high: number]> = {
  "square root": [0, 0.25, 1],
  linear: [0, 0.5, 1],
  logarithmic: [10 ** -DECADES, 10 ** (-DECADES / 2), 1],
}

export function parseWeightScale(name: unknown): WeightScaleName {
  return WEIGHT_SCALES.find((scale) => scale === name) ?? DEFAULT_WEIGHT_SCALE
}

/** Position of a weight from 0 to 1 on the colour scale, 0 … 1; negative weights have negative positions. */
export function scaleWeight(weight: number, scale: WeightScaleName): number {
  const size = Math.min(1, Math.abs(weight))
  const share =
    scale === "linear"
      ? size
      : scale === "square root"
        ? Math.sqrt(size)
        : size === 0
          ? 0
          : Math.max(0, 1 + Math.log10(size) / DECADES)
  return weight < 0 ? -share : share
}
