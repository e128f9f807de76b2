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

/** From the first layer, blue, to the last, orange; lightness runs one way, so that all eyes can put them in order. */
const LAYERS: Record<Theme, Colour[]> = {
  light: [[16, 52, 122], [104, 50, 158], [182, 48, 118], [208, 100, 8]],
  dark: [[104, 146, 255], [190, 132, 240], [248, 146, 156], [255, 214, 112]],
}

/** A layer's colour: from the first to the last along one scale, since layers have an order. */
export function layerColour(layer: number, layers: number, theme: Theme): string {
  return css(between(LAYERS[theme], layers < 2 ? 0 : layer / (layers - 1)))
}

export function scaleColour(share: number, theme: Theme): Colour {
  return between(SCALES[theme], share)
}

function between(stops: Colour[], share: number): Colour {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1)
  const low = Math.min(stops.length - 2, Math.floor(at))
  return stops[low].map((one, part) => Math.round(one + (stops[low + 1][part] - one) * (at - low))) as Colour
}

function css([red, green, blue]: Colour): string {
  return `rgb(${red} ${green} ${blue})`
}

/** A field of this share of the scale, and writing that can be read on it. */
export function shaded(share: number, theme: Theme): { background: string; color: string } {
  const colour = scaleColour(share, theme)
  return { background: css(colour), color: luminance(colour) < 0.179 ? "#fff" : "#000" }
}

/** The whole scale as a background. */
export function gradient(theme: Theme): string {
  return `linear-gradient(90deg, ${SCALES[theme].map(css).join(",")})`
}

/** Of a colour as eyes see it, 0 black, 1 white (WCAG 2.2); above 0.179 black reads better on it than white. */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((one) => (one <= 10 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
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
