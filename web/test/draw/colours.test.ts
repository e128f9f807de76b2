// Contrast and order of the colours.

import assert from "node:assert/strict"
import { test } from "node:test"

import { layerColour, luminance, shadeCell, shadeSigned } from "../../src/draw/colours"

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
