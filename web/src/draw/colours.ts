// Colours: scales for maps and measures, and one colour for each layer or run.

import type { Theme } from "../theme"
import { DEFAULT_WEIGHT_SCALE, scaleWeight, type WeightScaleName } from "./weight_scale"

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
    [168, 22, 104],
  ],
  dark: [
    [95, 176, 240],
    [26, 31, 38],
    [250, 130, 190],
  ],
}

/** Qualitative palette without orange, which means a warning; distinguishable with red-green colour blindness (after Okabe and Ito, 2008). */
const LINE_COLOURS: Record<Theme, string[]> = {
  light: ["#0b66b0", "#0d8a63", "#b6478c", "#8a6d00", "#5a55c8", "#c2323e", "#4d7f9c", "#59636e"],
  dark: ["#5fb0f0", "#48c79c", "#e58cc3", "#dcc24a", "#a5a1ff", "#f27d85", "#8fc1dc", "#b3bcc7"],
}

/** Colours repeat after this many lines. */
export const LINE_COLOUR_COUNT = LINE_COLOURS.light.length

export function lineColour(index: number, theme: Theme, count = 0): string {
  const colours = LINE_COLOURS[theme]
  if (count > colours.length)
    return `hsl(${Math.round((360 * index) / count)} 75% ${(theme === "dark" ? 68 : 40) + (index % 2 ? 8 : -8)}%)`
  return colours[index % colours.length]
}

/** From the first layer, dark blue, to the last, pink. Lightness is monotonic, so that the order is visible to everybody. */
const LAYER_STOPS: Record<Theme, Colour[]> = {
  light: [
    [16, 42, 112],
    [92, 46, 158],
    [172, 52, 150],
    [222, 92, 156],
  ],
  dark: [
    [98, 138, 255],
    [172, 140, 250],
    [236, 152, 222],
    [255, 205, 225],
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

/** The scale as 256 RGBA pixels, little-endian, as ImageData stores them: of the levels 255·√weight. */
export function getPixels(
  theme: Theme,
  scale: WeightScaleName = DEFAULT_WEIGHT_SCALE,
): Uint32Array {
  return cachePixels(`${theme} ${scale}`, (level) =>
    scaleColour(scaleWeight((level / 255) ** 2, scale), theme),
  )
}

/** The diverging scale as 256 pixels: those of the levels −128 … 127, which are ±127·√|weight|. */
export function getSignedPixels(
  theme: Theme,
  scale: WeightScaleName = DEFAULT_WEIGHT_SCALE,
): Uint32Array {
  return cachePixels(`${theme} ${scale} signed`, (index) => {
    const root = (index - 128) / 127
    return divergingColour(scaleWeight(Math.sign(root) * root ** 2, scale), theme)
  })
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
