// Writes a drawing as SVG. Text stays text; images are embedded as PNG.

import type { Box, Drawing, ImageShape, Paint, Shape } from "./shapes"
import { formatLength as format } from "./shapes"

/** `encodeImage` gives the data URL of an image. */
export function writeSvg(
  { width, height, shapes }: Drawing,
  title: string,
  encodeImage: (image: ImageShape) => string,
): string {
  const clips = new Map<string, string>()
  const lines = shapes.map((shape) => {
    const element = writeShape(shape, encodeImage)
    if (shape.kind === "text" || !shape.clip) return element
    const box = shape.clip.map((value) => format(value)).join(" ")
    const id = clips.get(box) ?? `clip${clips.size}`
    clips.set(box, id)
    return `<g clip-path="url(#${id})">${element}</g>`
  })
  const definitions = [...clips].map(
    ([box, id]) => `<clipPath id="${id}"><rect ${boxAttributes(parseBox(box))}/></clipPath>`,
  )
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${format(width)}" height="${format(height)}" viewBox="0 0 ${format(width)} ${format(height)}">`,
    `<title>${escapeXml(title)}</title>`,
    ...(definitions.length ? [`<defs>${definitions.join("")}</defs>`] : []),
    `<rect width="${format(width)}" height="${format(height)}" fill="#ffffff"/>`,
    ...lines,
    "</svg>\n",
  ].join("\n")
}

function parseBox(text: string): Box {
  return text.split(" ").map(Number) as Box
}

function boxAttributes([x, y, width, height]: Box): string {
  return `x="${format(x)}" y="${format(y)}" width="${format(width)}" height="${format(height)}"`
}

function writeShape(shape: Shape, encodeImage: (image: ImageShape) => string): string {
  if (shape.kind === "image") {
    const style = shape.isPixelated ? ' style="image-rendering:pixelated"' : ""
    const opacity = shape.opacity < 1 ? ` opacity="${format(shape.opacity, 3)}"` : ""
    return `<image ${boxAttributes(shape.box)} preserveAspectRatio="none"${style}${opacity} href="${encodeImage(shape)}"/>`
  }
  if (shape.kind === "text") {
    const [x, y] = [format(shape.x), format(shape.y)]
    const attributes = [
      `x="${x}" y="${y}"`,
      `font-family="${shape.isMonospaced ? "Menlo, Consolas, monospace" : "Helvetica, Arial, sans-serif"}"`,
      `font-size="${format(shape.size)}"`,
      ...(shape.isBold ? ['font-weight="bold"'] : []),
      ...(shape.anchor === "start" ? [] : [`text-anchor="${shape.anchor}"`]),
      ...(shape.angle ? [`transform="rotate(${format(shape.angle)} ${x} ${y})"`] : []),
      paintAttributes("fill", shape.fill),
      ...(/^\s|\s$|\s\s/.test(shape.text) ? ['xml:space="preserve"'] : []),
    ]
    return `<text ${attributes.join(" ")}>${escapeXml(shape.text)}</text>`
  }
  const d = shape.commands
    .map(([operator, ...numbers]) => operator + numbers.map((value) => format(value)).join(" "))
    .join("")
  const stroke = shape.stroke
    ? [
        paintAttributes("stroke", shape.stroke),
        `stroke-width="${format(shape.strokeWidth)}"`,
        ...(shape.dash.length
          ? [`stroke-dasharray="${shape.dash.map((value) => format(value)).join(" ")}"`]
          : []),
        ...(shape.isRound ? ['stroke-linecap="round" stroke-linejoin="round"'] : []),
      ]
    : []
  return `<path d="${d}" ${[paintAttributes("fill", shape.fill), ...stroke].join(" ")}/>`
}

function paintAttributes(name: "fill" | "stroke", paint: Paint | null): string {
  if (!paint) return `${name}="none"`
  const hex = paint
    .slice(0, 3)
    .map((level) => level.toString(16).padStart(2, "0"))
    .join("")
  return `${name}="#${hex}"${paint[3] < 1 ? ` ${name}-opacity="${format(paint[3], 3)}"` : ""}`
}

/** Text for XML; characters that XML does not allow are left out. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
}
