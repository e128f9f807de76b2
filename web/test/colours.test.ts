// Colours that everybody can read and put in order.

import assert from "node:assert/strict"
import { test } from "node:test"

import { layerColour, luminance, shaded } from "../src/draw/colours"

const THEMES = ["light", "dark"] as const

function parts(css: string): [number, number, number] {
  if (css.startsWith("#")) return css === "#fff" ? [255, 255, 255] : [0, 0, 0]
  return css.match(/\d+/g)!.map(Number) as [number, number, number]
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(parts(one)), luminance(parts(other))].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

test("writing on every shade of the scale has a contrast of 4.5 or more", () => {
  for (const theme of THEMES) {
    for (let at = 0; at <= 100; at++) {
      const { background, color } = shaded(at / 100, theme)
      assert.ok(contrast(background, color) >= 4.5, `${theme} ${at}: ${contrast(background, color).toFixed(2)}`)
    }
  }
})

test("later layers are lighter, and every one stands out from its card", () => {
  const cards = { light: "rgb(247 248 250)", dark: "rgb(25 31 38)" }
  for (const theme of THEMES) {
    const colours = Array.from({ length: 12 }, (_, layer) => layerColour(layer, 12, theme))
    const lights = colours.map((one) => luminance(parts(one)))
    assert.deepEqual(lights, [...lights].sort((a, b) => a - b))
    for (const one of colours) assert.ok(contrast(one, cards[theme]) >= 3, `${theme} ${one}: ${contrast(one, cards[theme]).toFixed(2)}`)
  }
})
