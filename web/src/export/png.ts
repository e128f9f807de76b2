// Draws a drawing on a canvas, and images as PNG.

import type { Drawing, ImageShape, Paint, PathShape, TextShape } from "./shapes"

/** Pixels of the file per pixel of the screen: 288 dots per inch. */
const SCALE = 3
/** Browsers refuse larger canvases. */
const MAX_SIDE = 8192

export function writePng({ width, height, shapes }: Drawing): Promise<Blob> {
  const scale = Math.min(SCALE, MAX_SIDE / Math.max(width, height))
  const [canvas, context] = createCanvas(Math.round(width * scale), Math.round(height * scale))
  context.fillStyle = "#fff"
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.scale(scale, scale)
  for (const shape of shapes) {
    context.save()
    if (shape.kind !== "text" && shape.clip) {
      context.beginPath()
      context.rect(...shape.clip)
      context.clip()
    }
    if (shape.kind === "path") drawPath(context, shape)
    else if (shape.kind === "text") drawText(context, shape)
    else {
      context.globalAlpha = shape.opacity
      context.imageSmoothingEnabled = !shape.isPixelated
      context.drawImage(toCanvas(shape), ...shape.box)
    }
    context.restore()
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("picture too large")))),
  )
}

function drawPath(context: CanvasRenderingContext2D, shape: PathShape): void {
  context.beginPath()
  for (const [operator, ...numbers] of shape.commands) {
    const values = numbers as number[]
    if (operator === "M") context.moveTo(values[0], values[1])
    else if (operator === "L") context.lineTo(values[0], values[1])
    else if (operator === "C")
      context.bezierCurveTo(values[0], values[1], values[2], values[3], values[4], values[5])
    else context.closePath()
  }
  if (shape.fill) {
    context.fillStyle = formatPaint(shape.fill)
    context.fill()
  }
  if (shape.stroke) {
    context.strokeStyle = formatPaint(shape.stroke)
    context.lineWidth = shape.strokeWidth
    context.setLineDash(shape.dash)
    if (shape.isRound) context.lineCap = context.lineJoin = "round"
    context.stroke()
  }
}

function drawText(context: CanvasRenderingContext2D, shape: TextShape): void {
  const family = shape.isMonospaced ? "monospace" : "Helvetica, Arial, sans-serif"
  context.font = `${shape.isBold ? "bold " : ""}${shape.size}px ${family}`
  context.textAlign = ({ start: "left", middle: "center", end: "right" } as const)[shape.anchor]
  context.fillStyle = formatPaint(shape.fill)
  context.translate(shape.x, shape.y)
  context.rotate((shape.angle * Math.PI) / 180)
  context.fillText(shape.text, 0, 0)
}

function formatPaint([red, green, blue, alpha]: Paint): string {
  return `rgb(${red} ${green} ${blue} / ${alpha})`
}

function createCanvas(
  width: number,
  height: number,
): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement("canvas")
  canvas.width = Math.max(1, width)
  canvas.height = Math.max(1, height)
  return [canvas, canvas.getContext("2d")!]
}

function toCanvas({ pixels }: ImageShape): HTMLCanvasElement {
  const [canvas, context] = createCanvas(pixels.width, pixels.height)
  const image = context.createImageData(pixels.width, pixels.height)
  image.data.set(pixels.data)
  context.putImageData(image, 0, 0)
  return canvas
}

/**
 * The image as a data URL of a PNG. Cells with sharp edges become several pixels, because not every
 * program that shows SVG knows `image-rendering: pixelated`.
 */
export function encodePng(shape: ImageShape): string {
  const { pixels, box, isPixelated } = shape
  const source = toCanvas(shape)
  const factor = isPixelated ? Math.max(1, Math.ceil((2 * box[2]) / pixels.width)) : 1
  if (factor === 1) return source.toDataURL("image/png")
  const [canvas, context] = createCanvas(pixels.width * factor, pixels.height * factor)
  context.imageSmoothingEnabled = false
  context.drawImage(source, 0, 0, canvas.width, canvas.height)
  return canvas.toDataURL("image/png")
}
