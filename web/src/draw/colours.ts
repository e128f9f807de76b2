// Colours: scales for maps and measures, and one colour for each layer or run.

import type { Theme } from "../theme"

type Colour = [red: number, green: number, blue: number]

/** Sequential scale from 0 to 1. Lightness is monotonic, so that it also works printed in grey. */
const SCALE_STOPS: Record<Theme, Colour[]> = {
  light: [
    [247, 249, 252],
    [205, 222, 240],
    [139, 184, 222],
    [66, 131, 190],
    [25, 79, 145],
    [10, 35, 84],
  ],
  dark: [
    [22, 27, 34],
    [28, 56, 92],
    [33, 100, 150],
    [52, 155, 178],
    [140, 208, 168],
    [250, 245, 190],
  ],
}

/** Diverging scale: from the largest negative value over 0 to the largest positive one. */
const DIVERGING_STOPS: Record<Theme, [less: Colour, none: Colour, more: Colour]> = {
  light: [
    [11, 94, 168],
    [250, 250, 250],
    [190, 78, 0],
  ],
  dark: [
    [95, 176, 240],
    [26, 31, 38],
    [245, 160, 75],
  ],
}

/** Qualitative palette, distinguishable with red-green colour blindness (after Okabe and Ito, 2008). */
const LINE_COLOURS: Record<Theme, string[]> = {
  light: ["#0b66b0", "#d1620a", "#0d8a63", "#b6478c", "#8a6d00", "#5a55c8", "#c2323e", "#4d7f9c"],
  dark: ["#5fb0f0", "#f0a050", "#48c79c", "#e58cc3", "#dcc24a", "#a5a1ff", "#f27d85", "#8fc1dc"],
}

export function lineColour(index: number, theme: Theme): string {
  const colours = LINE_COLOURS[theme]
  return colours[index % colours.length]
}

/** From the first layer, blue, to the last, orange. Lightness is monotonic, so that the order is visible to everybody. */
const LAYER_STOPS: Record<Theme, Colour[]> = {
  light: [
    [16, 52, 122],
    [104, 50, 158],
    [182, 48, 118],
    [208, 100, 8],
  ],
  dark: [
    [104, 146, 255],
    [190, 132, 240],
    [248, 146, 156],
    [255, 214, 112],
  ],
}

/** Colour of a layer on a sequential scale, since layers are ordered. */
export function layerColour(layer: number, layers: number, theme: Theme): string {
  return formatRgb(interpolate(LAYER_STOPS[theme], layers < 2 ? 0 : layer / (layers - 1)))
}

export function scaleColour(share: number, theme: Theme): Colour {
  return interpolate(SCALE_STOPS[theme], share)
}

/** Colour of a value from −1 to 1. */
export function divergingColour(value: number, theme: Theme): Colour {
  return interpolate(DIVERGING_STOPS[theme], (value + 1) / 2)
}

/** CSS colours of −1 and 1. */
export function divergingEnds(theme: Theme): [less: string, more: string] {
  const [less, , more] = DIVERGING_STOPS[theme]
  return [formatRgb(less), formatRgb(more)]
}

function interpolate(stops: Colour[], share: number): Colour {
  const position = Math.min(1, Math.max(0, share)) * (stops.length - 1)
  const low = Math.min(stops.length - 2, Math.floor(position))
  return stops[low].map((level, channel) =>
    Math.round(level + (stops[low + 1][channel] - level) * (position - low)),
  ) as Colour
}

function formatRgb([red, green, blue]: Colour): string {
  return `rgb(${red} ${green} ${blue})`
}

/** Background at this position of the scale, with a readable text colour. */
export function shadeCell(share: number, theme: Theme): { background: string; color: string } {
  return shadeColour(scaleColour(share, theme))
}

/** The same on the diverging scale, for a value from −1 to 1. */
export function shadeSigned(value: number, theme: Theme): { background: string; color: string } {
  return shadeColour(divergingColour(value, theme))
}

function shadeColour(colour: Colour): { background: string; color: string } {
  return { background: formatRgb(colour), color: luminance(colour) < 0.179 ? "#fff" : "#000" }
}

/** The scale as a CSS gradient; of signed values, the diverging one. */
export function formatGradient(theme: Theme, signed = false): string {
  const stops = signed ? DIVERGING_STOPS[theme] : SCALE_STOPS[theme]
  return `linear-gradient(90deg, ${stops.map(formatRgb).join(",")})`
}

/** Relative luminance (WCAG 2.2), 0 … 1. Above 0.179 black text has more contrast than white. */
export function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((level) =>
    level <= 10 ? level / 255 / 12.92 : ((level / 255 + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const pixelTables = new Map<string, Uint32Array>()

/** The scale as 256 RGBA pixels, little-endian, as ImageData stores them. */
export function getPixels(theme: Theme): Uint32Array {
  return cachePixels(theme, (level) => scaleColour(level / 255, theme))
}

/** The diverging scale as 256 pixels: those of the levels −128 … 127. */
export function getSignedPixels(theme: Theme): Uint32Array {
  return cachePixels(`${theme} signed`, (index) => divergingColour((index - 128) / 127, theme))
}

function cachePixels(name: string, colourAt: (index: number) => Colour): Uint32Array {
  let table = pixelTables.get(name)
  if (!table) {
    table = Uint32Array.from({ length: 256 }, (_, index) => {
      const [red, green, blue] = colourAt(index)
      return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
    })
    pixelTables.set(name, table)
  }
  return table
}
