// A picture as a flat list of shapes in pixels from its upper left corner. Colours, transforms and
// opacities are resolved, so that a writer of a file format needs nothing else.

export interface Drawing {
  width: number
  height: number
  shapes: Shape[]
}

export type Shape = PathShape | TextShape | ImageShape

/** Red, green, blue 0 … 255, opacity 0 … 1. */
export type Paint = [red: number, green: number, blue: number, alpha: number]

export type Box = [x: number, y: number, width: number, height: number]

export type Command =
  | ["M" | "L", number, number]
  | ["C", number, number, number, number, number, number]
  | ["Z"]

export interface PathShape {
  kind: "path"
  commands: Command[]
  fill: Paint | null
  stroke: Paint | null
  strokeWidth: number
  dash: number[]
  /** Round ends and corners of the stroke. */
  isRound?: boolean
  clip?: Box
}

export interface TextShape {
  kind: "text"
  text: string
  /** The anchor on the baseline. */
  x: number
  y: number
  anchor: "start" | "middle" | "end"
  size: number
  /** On the screen, from which the size of the picture is measured. */
  width: number
  /** Clockwise, in degrees, around the anchor. */
  angle: number
  fill: Paint
  isBold: boolean
  isMonospaced: boolean
}

export interface ImageShape {
  kind: "image"
  box: Box
  /** RGBA, row by row from the top. */
  pixels: { width: number; height: number; data: Uint8ClampedArray }
  /** Whether cells have sharp edges. */
  isPixelated: boolean
  opacity: number
  clip?: Box
}

/** Affine transform: x' = a x + c y + e, y' = b x + d y + f. */
export interface Matrix {
  a: number
  b: number
  c: number
  d: number
  e: number
  f: number
}

export function transformCommands(commands: Command[], matrix: Matrix): Command[] {
  return commands.map(([operator, ...numbers]) => {
    const moved: number[] = []
    for (let index = 0; index < numbers.length; index += 2) {
      const [x, y] = [numbers[index], numbers[index + 1]]
      moved.push(matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f)
    }
    return [operator, ...moved] as Command
  })
}

export function boxCommands([x, y, width, height]: Box): Command[] {
  return [
    ["M", x, y],
    ["L", x + width, y],
    ["L", x + width, y + height],
    ["L", x, y + height],
    ["Z"],
  ]
}

/** Distance of the control points of a quarter circle, for a radius of 1. */
const KAPPA = 0.5522847498

export function ellipseCommands(x: number, y: number, rx: number, ry: number): Command[] {
  const [kx, ky] = [rx * KAPPA, ry * KAPPA]
  return [
    ["M", x + rx, y],
    ["C", x + rx, y + ky, x + kx, y + ry, x, y + ry],
    ["C", x - kx, y + ry, x - rx, y + ky, x - rx, y],
    ["C", x - rx, y - ky, x - kx, y - ry, x, y - ry],
    ["C", x + kx, y - ry, x + rx, y - ky, x + rx, y],
    ["Z"],
  ]
}

/** The `d` of an SVG path with M, L, H, V, C, S, Q, T and Z in either case; null if it has arcs. */
export function parsePath(d: string): Command[] | null {
  const tokens = d.match(/[a-zA-Z]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g) ?? []
  const commands: Command[] = []
  let [x, y, startX, startY, controlX, controlY] = [0, 0, 0, 0, 0, 0]
  let operator = ""
  let previous = ""
  for (let index = 0; index < tokens.length; ) {
    if (/[a-zA-Z]/.test(tokens[index])) operator = tokens[index++]
    const kind = operator.toUpperCase()
    const isRelative = operator !== kind
    const take = () => Number(tokens[index++])
    const takePoint = (): [number, number] => [
      take() + (isRelative ? x : 0),
      take() + (isRelative ? y : 0),
    ]
    // the control point of the command before, mirrored, for S and T
    const mirror = (kinds: string): [number, number] =>
      kinds.includes(previous) ? [2 * x - controlX, 2 * y - controlY] : [x, y]
    if (kind === "Z") {
      commands.push(["Z"])
      ;[x, y] = [startX, startY]
    } else if (kind === "M" || kind === "L") {
      ;[x, y] = takePoint()
      commands.push([kind, x, y])
      if (kind === "M") {
        ;[startX, startY] = [x, y]
        operator = isRelative ? "l" : "L" // further points of M are lines
      }
    } else if (kind === "H" || kind === "V") {
      if (kind === "H") x = take() + (isRelative ? x : 0)
      else y = take() + (isRelative ? y : 0)
      commands.push(["L", x, y])
    } else if (kind === "C" || kind === "S") {
      const first = kind === "C" ? takePoint() : mirror("CS")
      const second = takePoint()
      const end = takePoint()
      commands.push(["C", ...first, ...second, ...end])
      ;[[controlX, controlY], [x, y]] = [second, end]
    } else if (kind === "Q" || kind === "T") {
      const control = kind === "Q" ? takePoint() : mirror("QT")
      const [endX, endY] = takePoint()
      const raise = (end: number, middle: number) => end + ((middle - end) * 2) / 3
      commands.push([
        "C",
        raise(x, control[0]),
        raise(y, control[1]),
        raise(endX, control[0]),
        raise(endY, control[1]),
        endX,
        endY,
      ])
      ;[[controlX, controlY], [x, y]] = [control, [endX, endY]]
    } else return null
    previous = kind
  }
  return commands
}

/** A CSS colour as browsers compute it: rgb(…), rgba(…), color(srgb …), #rrggbb. Null: transparent. */
export function parseColour(text: string, opacity = 1): Paint | null {
  const hex = /^#([0-9a-f]{6})([0-9a-f]{2})?$/i.exec(text.trim())
  if (hex) {
    const value = parseInt(hex[1], 16)
    const alpha = (hex[2] ? parseInt(hex[2], 16) / 255 : 1) * opacity
    return alpha > 0 ? [value >> 16, (value >> 8) & 255, value & 255, alpha] : null
  }
  const match = /^(rgba?|color)\((?:srgb )?([^)]*)\)$/.exec(text.trim())
  if (!match) return null
  const numbers = match[2]
    .split(/[\s,/]+/)
    .filter(Boolean)
    .map((part) => (part.endsWith("%") ? Number(part.slice(0, -1)) / 100 : Number(part)))
  const scale = match[1] === "color" ? 255 : 1
  const alpha = (numbers[3] ?? 1) * opacity
  if (!(alpha > 0) || numbers.length < 3) return null
  const [red, green, blue] = numbers.map((level) => Math.round(Math.min(255, level * scale)))
  return [red, green, blue, alpha]
}

/** With few decimals and without trailing zeros: the same text on every machine. */
export function formatLength(value: number, decimals = 2): string {
  const text = value.toFixed(decimals).replace(/\.?0+$/, "")
  return text === "-0" ? "0" : text
}

/** The shapes moved so that they fill a picture, with a margin. */
export function fitDrawing(shapes: Shape[], margin: number): Drawing {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  for (const shape of shapes) {
    for (const [x, y] of listCorners(shape)) {
      ;[left, right] = [Math.min(left, x), Math.max(right, x)]
      ;[top, bottom] = [Math.min(top, y), Math.max(bottom, y)]
    }
  }
  if (!shapes.length) [left, top, right, bottom] = [0, 0, 0, 0]
  const [dx, dy] = [margin - left, margin - top]
  return {
    width: Math.ceil(right - left + 2 * margin),
    height: Math.ceil(bottom - top + 2 * margin),
    shapes: shapes.map((shape) => moveShape(shape, dx, dy)),
  }
}

function listCorners(shape: Shape): [number, number][] {
  if (shape.kind === "text") {
    const start = { start: 0, middle: -0.5, end: -1 }[shape.anchor] * shape.width
    const radians = (shape.angle * Math.PI) / 180
    const [cos, sin] = [Math.cos(radians), Math.sin(radians)]
    const turn = (x: number, y: number): [number, number] => [
      shape.x + x * cos - y * sin,
      shape.y + x * sin + y * cos,
    ]
    const [ascent, descent] = [-0.8 * shape.size, 0.25 * shape.size]
    const end = start + shape.width
    return [turn(start, ascent), turn(end, ascent), turn(start, descent), turn(end, descent)]
  }
  const corners: [number, number][] = []
  if (shape.kind === "image") {
    const [x, y, width, height] = shape.box
    corners.push([x, y], [x + width, y + height])
  } else {
    const half = shape.stroke ? shape.strokeWidth / 2 : 0
    for (const [, ...numbers] of shape.commands)
      for (let index = 0; index < numbers.length; index += 2) {
        const [x, y] = [numbers[index] as number, numbers[index + 1] as number]
        corners.push([x - half, y - half], [x + half, y + half])
      }
  }
  const clip = shape.clip
  if (!clip) return corners
  const clamp = (value: number, low: number, size: number) =>
    Math.max(low, Math.min(low + size, value))
  return corners.map(([x, y]) => [clamp(x, clip[0], clip[2]), clamp(y, clip[1], clip[3])])
}

function moveShape(shape: Shape, dx: number, dy: number): Shape {
  if (shape.kind === "text") return { ...shape, x: shape.x + dx, y: shape.y + dy }
  const moveBox = ([x, y, width, height]: Box): Box => [x + dx, y + dy, width, height]
  const clip = shape.clip && moveBox(shape.clip)
  if (shape.kind === "image") return { ...shape, clip, box: moveBox(shape.box) }
  const matrix = { a: 1, b: 0, c: 0, d: 1, e: dx, f: dy }
  return { ...shape, clip, commands: transformCommands(shape.commands, matrix) }
}
