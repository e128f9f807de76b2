// Colours: scales for maps and measures, and one colour for each layer or run.

import type { Theme } from "../theme"

type Colour = [red: number, green: number, blue: number]

/** From nothing to everything; light on paper, dark on a screen. Lightness runs one way, so grey prints work too. */
const SCALES: Record<Theme, Colour[]> = {
  light: [[247, 249, 252], [205, 222, 240], [139, 184, 222], [66, 131, 190], [25, 79, 145], [10, 35, 84]],
  dark: [[22, 27, 34], [28, 56, 92], [33, 100, 150], [52, 155, 178], [140, 208, 168], [250, 245, 190]],
}

/** Far enough apart for eyes that see red and green alike (after Okabe and Ito, 2008), in both themes. */
const LINES: Record<Theme, string[]> = {
  light: ["#0b66b0", "#d1620a", "#0d8a63", "#b6478c", "#8a6d00", "#5a55c8", "#c2323e", "#4d7f9c"],
  dark: ["#5fb0f0", "#f0a050", "#48c79c", "#e58cc3", "#dcc24a", "#a5a1ff", "#f27d85", "#8fc1dc"],
}

export function lineColour(index: number, theme: Theme): string {
  const colours = LINES[theme]
  return colours[index % colours.length]
}

/** A layer's colour: from the first to the last along one scale, since layers have an order. */
export function layerColour(layer: number, layers: number, theme: Theme): string {
  const share = layers < 2 ? 0.25 : layer / (layers - 1)
  const [hue, light] = theme === "dark" ? [205 - 175 * share, 66] : [215 - 195 * share, 42]
  return `hsl(${hue.toFixed(0)} 72% ${light}%)`
}

export function scaleColour(share: number, theme: Theme): Colour {
  const stops = SCALES[theme]
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1)
  const low = Math.min(stops.length - 2, Math.floor(at))
  return stops[low].map((one, part) => Math.round(one + (stops[low + 1][part] - one) * (at - low))) as Colour
}

export function css([red, green, blue]: Colour): string {
  return `rgb(${red} ${green} ${blue})`
}

/** Whether writing on this share of the scale must be light. */
export function wantsLightInk(share: number, theme: Theme): boolean {
  return theme === "light" ? share > 0.55 : share < 0.6
}

const tables = new Map<Theme, Uint32Array>()

/** The scale as 256 pixels, in the order of bytes that canvases have. */
export function pixels(theme: Theme): Uint32Array {
  let table = tables.get(theme)
  if (!table) {
    table = Uint32Array.from({ length: 256 }, (_, at) => {
      const [red, green, blue] = scaleColour(at / 255, theme)
      return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
    })
    tables.set(theme, table)
  }
  return table
}
