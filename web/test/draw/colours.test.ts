// Contrast and order of the colours.

import assert from "node:assert/strict"
import { test } from "node:test"

import { layerColour, lineColour, luminance, shadeCell, shadeSigned } from "../../src/draw/colours"

const THEMES = ["light", "dark"] as const

function parseColour(css: string): [number, number, number] {
  if (css.startsWith("#")) return css === "#fff" ? [255, 255, 255] : [0, 0, 0]
  return css.match(/\d+/g)!.map(Number) as [number, number, number]
}

function contrast(first: string, second: string): number {
  const [dark, light] = [luminance(parseColour(first)), luminance(parseColour(second))].sort(
    (a, b) => a - b,
  )
  return (light + 0.05) / (dark + 0.05)
}

test("text on every shade of the scale has a contrast of 4.5 or more", () => {
  for (const theme of THEMES) {
    for (let percent = 0; percent <= 100; percent++) {
      const { background, color } = shadeCell(percent / 100, theme)
      assert.ok(
        contrast(background, color) >= 4.5,
        `${theme} ${percent}: ${contrast(background, color).toFixed(2)}`,
      )
    }
  }
})

test("text on every shade of the diverging scale has a contrast of 4.5 or more", () => {
  for (const theme of THEMES) {
    for (let percent = -100; percent <= 100; percent++) {
      const { background, color } = shadeSigned(percent / 100, theme)
      assert.ok(contrast(background, color) >= 4.5, `${theme} ${percent}`)
    }
  }
})

test("later layers are lighter, and each has a contrast of 3 or more to the card", () => {
  const cards = { light: "rgb(247 248 250)", dark: "rgb(25 31 38)" }
  for (const theme of THEMES) {
    const colours = Array.from({ length: 12 }, (_, layer) => layerColour(layer, 12, theme))
    const luminances = colours.map((colour) => luminance(parseColour(colour)))
    assert.deepEqual(
      luminances,
      [...luminances].sort((a, b) => a - b),
    )
    for (const colour of colours)
      assert.ok(
        contrast(colour, cards[theme]) >= 3,
        `${theme} ${colour}: ${contrast(colour, cards[theme]).toFixed(2)}`,
      )
  }
})

test("no line and no layer is orange, which means a warning", () => {
  const parseHex = (css: string) =>
    css.startsWith("#") && css.length === 7
      ? `rgb(${[1, 3, 5].map((start) => Number.parseInt(css.slice(start, start + 2), 16)).join(" ")})`
      : css
  for (const theme of THEMES) {
    const colours = Array.from({ length: 12 }, (_, index) => [
      lineColour(index, theme),
      layerColour(index, 12, theme),
    ]).flat()
    for (const colour of colours) {
      const hue = hueOf(parseColour(parseHex(colour)))
      assert.ok(hue < 12 || hue > 43, `${theme} ${colour} has the hue ${hue.toFixed(0)}°`)
    }
  }
})

function hueOf([red, green, blue]: [number, number, number]): number {
  const [max, min] = [Math.max(red, green, blue), Math.min(red, green, blue)]
  if (max === min) return 0
  const sector =
    max === red
      ? (green - blue) / (max - min)
      : max === green
        ? 2 + (blue - red) / (max - min)
        : 4 + (red - green) / (max - min)
  return (60 * sector + 360) % 360
}

test("each of many heads has a colour of its own", () => {
  for (const theme of THEMES) {
    const colours = Array.from({ length: 32 }, (_, index) => lineColour(index, theme, 32))
    assert.equal(new Set(colours).size, 32)
    assert.equal(lineColour(3, theme, 8), lineColour(3, theme))
  }
})
