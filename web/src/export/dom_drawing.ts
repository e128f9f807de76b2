// Reads what an element of the page shows as a drawing: boxes, borders, text, SVG and canvases, with
// computed styles.

import {
  boxCommands,
  ellipseCommands,
  fitDrawing,
  parseColour,
  parsePath,
  transformCommands,
  type Box,
  type Command,
  type Drawing,
  type Matrix,
  type Shape,
  type TextShape,
} from "./shapes"

const MARGIN = 6
const SKIPPED = new Set([
  ...["input", "select", "textarea", "option", "script", "style", "template"],
  ...[
    "title",
    "desc",
    "defs",
    "clippath",
    "mask",
    "marker",
    "symbol",
    "metadata",
    "video",
    "iframe",
  ],
])

type VectorDrawing = () => Shape[]
const vectorCanvases = new WeakMap<HTMLCanvasElement, VectorDrawing>()

/** Save `canvas` as the shapes that `draw` returns, in CSS pixels from its corner, not as an image. */
export function registerVectorCanvas(canvas: HTMLCanvasElement, draw: VectorDrawing): void {
  vectorCanvases.set(canvas, draw)
}

/** The element as shapes, cropped to what is drawn. */
export function drawElement(root: Element): Drawing {
  const shapes: Shape[] = []
  visit(root, { shapes, opacity: 1, clip: null, angle: 0 }, true)
  return fitDrawing(shapes, MARGIN)
}

interface Context {
  shapes: Shape[]
  opacity: number
  /** Box of the nearest ancestors that hide what overflows. */
  clip: Box | null
  /** Rotation of HTML text by the ancestors, clockwise in degrees. */
  angle: number
}

function visit(element: Element, outer: Context, isRoot = false): void {
  const tag = element.tagName.toLowerCase()
  if (SKIPPED.has(tag) || (!isRoot && element.getAttribute("data-export") === "omit")) return
  if (tag === "label" && element.querySelector("input, select")) return
  const style = getComputedStyle(element)
  const opacity = outer.opacity * Number(style.opacity)
  if (style.display === "none" || !(opacity > 0)) return
  const isSvg = element instanceof SVGElement
  const context: Context = {
    ...outer,
    opacity,
    angle: isSvg ? outer.angle : outer.angle + readAngle(style, element),
  }
  if (style.visibility !== "hidden") {
    if (element instanceof SVGGraphicsElement && tag !== "svg")
      drawSvgElement(element, tag, style, context)
    else if (!isSvg && !isRoot) drawBox(element, style, context)
    if (element instanceof HTMLCanvasElement) drawCanvas(element, style, context)
  }
  if (tag === "text") return
  if (!isSvg && style.overflowX === "hidden" && !isRoot)
    context.clip = intersect(outer.clip, readBox(element.getBoundingClientRect()))
  for (const child of groupChildren(element)) {
    if (child instanceof Element) visit(child, context)
    else if (!isSvg && style.visibility !== "hidden") drawText(child, style, context)
  }
}

/** Child elements, and neighbouring text nodes together: a template writes "h" and "0" as two nodes. */
function groupChildren(element: Element): (Element | Text[])[] {
  const children: (Element | Text[])[] = []
  for (const child of element.childNodes) {
    const last = children.at(-1)
    if (child instanceof Element) children.push(child)
    else if (child instanceof Text) {
      if (Array.isArray(last)) last.push(child)
      else children.push([child])
    }
  }
  return children
}

function joinText(nodes: Text[]): string {
  return nodes.map((node) => node.data).join("")
}

function readBox(box: DOMRect): Box {
  return [box.left, box.top, box.width, box.height]
}

function intersect(a: Box | null, b: Box): Box {
  if (!a) return b
  const [x, y] = [Math.max(a[0], b[0]), Math.max(a[1], b[1])]
  const right = Math.min(a[0] + a[2], b[0] + b[2])
  const bottom = Math.min(a[1] + a[3], b[1] + b[3])
  return [x, y, Math.max(0, right - x), Math.max(0, bottom - y)]
}

/** The clip of a shape, if it changes anything. */
function findClip(clip: Box | null, [x, y, width, height]: Box): Box | undefined {
  if (!clip) return undefined
  const slack = 0.5
  const isInside =
    x >= clip[0] - slack &&
    y >= clip[1] - slack &&
    x + width <= clip[0] + clip[2] + slack &&
    y + height <= clip[1] + clip[3] + slack
  return isInside ? undefined : clip
}

/** Rotation by `transform`, and by vertical writing where it begins. */
function readAngle(style: CSSStyleDeclaration, element: Element): number {
  const matrix = /^matrix\(([^,]+), ([^,]+)/.exec(style.transform)
  const turned = matrix ? (Math.atan2(Number(matrix[2]), Number(matrix[1])) * 180) / Math.PI : 0
  const parent = element.parentElement
  const isVertical = style.writingMode.startsWith("vertical")
  const wasVertical = parent !== null && getComputedStyle(parent).writingMode.startsWith("vertical")
  return turned + (isVertical && !wasVertical ? 90 : 0)
}

function drawBox(element: Element, style: CSSStyleDeclaration, context: Context): void {
  const box = readBox(element.getBoundingClientRect())
  if (!box[2] || !box[3]) return
  const plain = { kind: "path" as const, stroke: null, strokeWidth: 0, dash: [] }
  const clip = findClip(context.clip, box)
  const background = parseColour(style.backgroundColor, context.opacity)
  if (background) {
    const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box[2] / 2, box[3] / 2)
    const isRound = radius >= Math.min(box[2], box[3]) / 2 - 0.1 && Math.abs(box[2] - box[3]) < 0.5
    const commands = isRound
      ? ellipseCommands(box[0] + box[2] / 2, box[1] + box[3] / 2, box[2] / 2, box[3] / 2)
      : boxCommands(box)
    context.shapes.push({ ...plain, commands, fill: background, clip })
  }
  for (const [slice, colour] of sliceGradient(style.backgroundImage, box)) {
    const fill = parseColour(colour, context.opacity)
    if (fill) context.shapes.push({ ...plain, commands: boxCommands(slice), fill, clip })
  }
  const [x, y, width, height] = box
  for (const side of ["Top", "Right", "Bottom", "Left"] as const) {
    const thickness = parseFloat(style[`border${side}Width`])
    const stroke = parseColour(style[`border${side}Color`], context.opacity)
    const line = style[`border${side}Style`]
    if (!thickness || !stroke || line === "none") continue
    const half = thickness / 2
    const column = side === "Right" ? x + width - half : x + half
    const level = side === "Bottom" ? y + height - half : y + half
    const isAcross = side === "Top" || side === "Bottom"
    const commands: Command[] = isAcross
      ? [
          ["M", x, level],
          ["L", x + width, level],
        ]
      : [
          ["M", column, y],
          ["L", column, y + height],
        ]
    const dash =
      line === "dashed" ? [3 * thickness, 2 * thickness] : line === "dotted" ? [1, 2] : []
    context.shapes.push({
      ...plain,
      commands,
      fill: null,
      stroke,
      strokeWidth: thickness,
      dash,
      clip,
    })
  }
  for (const [distance, thickness, colour] of listRings(style)) {
    const stroke = parseColour(colour, context.opacity)
    const reach = distance + thickness / 2
    const ring: Box = [x - reach, y - reach, width + 2 * reach, height + 2 * reach]
    if (stroke)
      context.shapes.push({
        ...plain,
        commands: boxCommands(ring),
        fill: null,
        stroke,
        strokeWidth: thickness,
        clip: findClip(context.clip, ring),
      })
  }
}

/** Frames around a box, by its outline or by shadows without blur: [distance, thickness, colour]. */
function listRings(style: CSSStyleDeclaration): [number, number, string][] {
  const rings: [number, number, string][] = []
  const outline = parseFloat(style.outlineWidth)
  if (outline && style.outlineStyle !== "none")
    rings.push([parseFloat(style.outlineOffset) || 0, outline, style.outlineColor])
  // such as `rgb(11, 94, 168) 0px 0px 0px 2px`; the first shadow is on top
  let inner = 0
  for (const shadow of style.boxShadow.matchAll(
    /(\w+\([^)]*\)) 0px 0px 0px ([\d.]+)px(?! inset)/g,
  )) {
    const spread = Number(shadow[2])
    if (spread > inner) rings.push([inner, spread - inner, shadow[1]])
    inner = Math.max(inner, spread)
  }
  return rings
}

/** A horizontal gradient of equally spaced colours, such as that of a colour bar, as slices. */
function sliceGradient(image: string, [x, y, width, height]: Box): [Box, string][] {
  const stops = /^linear-gradient\(90deg, (.*)\)$/
    .exec(image)?.[1]
    .match(/rgba?\([^)]*\)/g)
    ?.map((colour) => parseColour(colour))
  // overlays that are partly transparent, such as the mark of overflowing content, are not content
  if (!stops || stops.length < 2 || !stops.every((stop) => stop !== null)) return []
  const count = 64
  return Array.from({ length: count }, (_, index) => {
    const position = ((index + 0.5) / count) * (stops.length - 1)
    const low = Math.min(stops.length - 2, Math.floor(position))
    const [from, to] = [stops[low], stops[low + 1]]
    const mixed = [0, 1, 2].map((channel) =>
      Math.round(from[channel] + (to[channel] - from[channel]) * (position - low)),
    )
    // each slice reaches under the next, so that no seam shows
    const end = index === count - 1 ? 1 : (index + 1.5) / count
    const slice: Box = [x + (index / count) * width, y, (end - index / count) * width, height]
    return [slice, `rgb(${mixed.join(", ")})`]
  })
}

function drawCanvas(
  canvas: HTMLCanvasElement,
  style: CSSStyleDeclaration,
  { shapes, opacity, clip }: Context,
): void {
  const bounds = canvas.getBoundingClientRect()
  if (!bounds.width || !bounds.height || !canvas.width || !canvas.height) return
  const vector = vectorCanvases.get(canvas)
  if (vector) {
    const matrix = { a: 1, b: 0, c: 0, d: 1, e: bounds.left, f: bounds.top }
    for (const shape of vector()) {
      if (shape.kind === "path")
        shapes.push({
          ...shape,
          commands: transformCommands(shape.commands, matrix),
          clip: shape.clip && [
            shape.clip[0] + bounds.left,
            shape.clip[1] + bounds.top,
            shape.clip[2],
            shape.clip[3],
          ],
        })
      else if (shape.kind === "text")
        shapes.push({ ...shape, x: shape.x + bounds.left, y: shape.y + bounds.top })
    }
    return
  }
  const edges = [style.borderLeftWidth, style.borderTopWidth, style.borderRightWidth]
  const [left, top, right] = edges.map((width) => parseFloat(width) || 0)
  const bottom = parseFloat(style.borderBottomWidth) || 0
  const box: Box = [
    bounds.left + left,
    bounds.top + top,
    bounds.width - left - right,
    bounds.height - top - bottom,
  ]
  shapes.push({
    kind: "image",
    box,
    pixels: readPixels(canvas),
    isPixelated: style.imageRendering === "pixelated",
    opacity,
    clip: findClip(clip, box),
  })
}

/** From a copy: reading the canvas itself would move it out of the graphics memory. */
function readPixels(canvas: HTMLCanvasElement): ImageData {
  const copy = document.createElement("canvas")
  ;[copy.width, copy.height] = [canvas.width, canvas.height]
  const context = copy.getContext("2d", { willReadFrequently: true })!
  context.drawImage(canvas, 0, 0)
  return context.getImageData(0, 0, copy.width, copy.height)
}

function drawSvgElement(
  element: SVGGraphicsElement,
  tag: string,
  style: CSSStyleDeclaration,
  { shapes, opacity }: Context,
): void {
  const matrix = element.getScreenCTM()
  if (!matrix) return
  if (tag === "text") {
    drawSvgText(element as SVGTextElement, style, matrix, { shapes, opacity })
    return
  }
  const commands = element instanceof SVGGeometryElement ? readGeometry(element, tag) : null
  if (!commands?.length) return
  const isStrokeScaled = style.getPropertyValue("vector-effect") !== "non-scaling-stroke"
  const scale = isStrokeScaled ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1
  const stroke = parseColour(style.stroke, opacity * Number(style.strokeOpacity))
  const strokeWidth = parseFloat(style.strokeWidth) * scale
  const fill = tag === "line" ? null : parseColour(style.fill, opacity * Number(style.fillOpacity))
  if (!fill && !(stroke && strokeWidth)) return
  shapes.push({
    kind: "path",
    commands: transformCommands(commands, matrix),
    fill,
    stroke: strokeWidth ? stroke : null,
    strokeWidth,
    dash: (style.strokeDasharray.match(/[\d.]+/g) ?? []).map((length) => Number(length) * scale),
    isRound: style.strokeLinecap === "round" || style.strokeLinejoin === "round",
  })
}

function readGeometry(element: SVGGeometryElement, tag: string): Command[] | null {
  const read = (name: string) =>
    (element as unknown as Record<string, SVGAnimatedLength>)[name].baseVal.value
  if (tag === "line")
    return [
      ["M", read("x1"), read("y1")],
      ["L", read("x2"), read("y2")],
    ]
  if (tag === "rect") {
    const box: Box = [read("x"), read("y"), read("width"), read("height")]
    return box[2] > 0 && box[3] > 0 ? boxCommands(box) : null
  }
  if (tag === "circle") return ellipseCommands(read("cx"), read("cy"), read("r"), read("r"))
  if (tag === "ellipse") return ellipseCommands(read("cx"), read("cy"), read("rx"), read("ry"))
  if (tag === "polyline" || tag === "polygon") {
    const commands = Array.from(
      (element as SVGPolylineElement).points,
      ({ x, y }, index): Command => [index ? "L" : "M", x, y],
    )
    return tag === "polygon" ? [...commands, ["Z"]] : commands
  }
  return parsePath(element.getAttribute("d") ?? "") ?? samplePath(element)
}

/** A path with arcs as short lines. */
function samplePath(element: SVGGeometryElement): Command[] {
  const length = element.getTotalLength()
  const count = Math.max(2, Math.ceil(length))
  const commands = Array.from({ length: count + 1 }, (_, index): Command => {
    const { x, y } = element.getPointAtLength((index / count) * length)
    return [index ? "L" : "M", x, y]
  })
  return /z\s*$/i.test(element.getAttribute("d") ?? "") ? [...commands, ["Z"]] : commands
}

function drawSvgText(
  element: SVGTextElement,
  style: CSSStyleDeclaration,
  matrix: Matrix,
  { shapes, opacity }: Pick<Context, "shapes" | "opacity">,
): void {
  const scale = Math.hypot(matrix.a, matrix.b)
  const rotation = (Math.atan2(matrix.b, matrix.a) * 180) / Math.PI
  // every run of text of its own position or style: the text itself or its tspans
  let offset = 0
  const walk = (node: Element | Text[], nodeStyle: CSSStyleDeclaration) => {
    if (Array.isArray(node)) {
      const rendered = collapseSpaces(joinText(node), nodeStyle)
      const available = element.getNumberOfChars() - offset
      // spaces at the end may not be rendered
      const text = rendered.slice(0, Math.max(0, available))
      const fill = parseColour(
        nodeStyle.fill,
        opacity *
          Number(nodeStyle.fillOpacity) *
          (nodeStyle === style ? 1 : Number(nodeStyle.opacity)),
      )
      if (text.trim() && fill && parseFloat(nodeStyle.fontSize)) {
        const start = element.getStartPositionOfChar(offset)
        const length = element.getSubStringLength(offset, text.length)
        const isWhole = offset === 0 && text.length >= element.getNumberOfChars()
        const anchor = isWhole ? (nodeStyle.textAnchor as TextShape["anchor"]) : "start"
        const share = { start: 0, middle: 0.5, end: 1 }[anchor]
        const angle = element.getRotationOfChar(offset)
        const radians = (angle * Math.PI) / 180
        const x = start.x + Math.cos(radians) * length * share
        const y = start.y + Math.sin(radians) * length * share
        shapes.push({
          kind: "text",
          text: text.trimEnd(),
          x: matrix.a * x + matrix.c * y + matrix.e,
          y: matrix.b * x + matrix.d * y + matrix.f,
          anchor,
          width: length * scale,
          angle: rotation + angle,
          fill,
          ...readFont(nodeStyle, scale),
        })
      }
      offset += rendered.length
    } else if (node.tagName.toLowerCase() === "tspan") {
      const inner = getComputedStyle(node)
      for (const child of groupChildren(node)) walk(child, inner)
    }
  }
  for (const child of groupChildren(element)) walk(child, style)
}

function readFont(style: CSSStyleDeclaration, scale = 1) {
  return {
    size: parseFloat(style.fontSize) * scale,
    isBold: Number(style.fontWeight) >= 600,
    isMonospaced: /mono|courier|menlo|consolas/i.test(style.fontFamily),
  }
}

function collapseSpaces(text: string, style: CSSStyleDeclaration): string {
  const collapsed = /^(pre|break-spaces)/.test(style.whiteSpace) ? text : text.replace(/\s+/g, " ")
  return style.textTransform === "uppercase" ? collapsed.toUpperCase() : collapsed
}

let measuring: CanvasRenderingContext2D | null = null

function drawText(nodes: Text[], style: CSSStyleDeclaration, context: Context): void {
  const fill = parseColour(style.color, context.opacity)
  if (!joinText(nodes).trim() || !fill || !parseFloat(style.fontSize)) return
  measuring ??= document.createElement("canvas").getContext("2d")!
  measuring.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`
  const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } =
    measuring.measureText("x")
  const font = readFont(style)
  const angle = Math.round(context.angle * 10) / 10
  const isUpright = angle % 360 === 0
  for (const { text: raw, box } of splitLines(nodes, context)) {
    const rendered = collapseSpaces(raw, style)
    const text = rendered.trim()
    if (!text) continue
    const [left, y, fullWidth, height] = box
    // spaces beside the next element have a width, those at the ends of a line do not
    const spare = isUpright ? fullWidth - measuring.measureText(text).width : 0
    const isSpaced = spare > 0.6 * measuring.measureText(" ").width
    const indent =
      isSpaced && rendered.startsWith(" ") ? (rendered.endsWith(" ") ? 0.5 : 1) * spare : 0
    const x = left + indent
    const width = isSpaced && /^ | $/.test(rendered) ? fullWidth - spare : fullWidth
    if (isUpright) {
      const align = style.textAlign
      const anchor = align === "center" ? "middle" : /^(right|end)$/.test(align) ? "end" : "start"
      const share = { start: 0, middle: 0.5, end: 1 }[anchor]
      context.shapes.push({
        kind: "text",
        text,
        x: x + share * width,
        y: y + (height * ascent) / (ascent + descent),
        anchor,
        width,
        angle: 0,
        fill,
        ...font,
      })
    } else {
      // the box of turned text has the same centre as the text
      const radians = (angle * Math.PI) / 180
      const drop = (ascent - descent) / 2
      context.shapes.push({
        kind: "text",
        text,
        x: x + width / 2 - Math.sin(radians) * drop,
        y: y + height / 2 + Math.cos(radians) * drop,
        anchor: "middle",
        width: measuring.measureText(text).width,
        angle,
        fill,
        ...font,
      })
    }
  }
}

/** Lines of a text as they are broken on the screen; what is hidden by an ancestor is cut off with "…". */
function splitLines(nodes: Text[], { clip, angle }: Context): { text: string; box: Box }[] {
  const range = document.createRange()
  range.setStart(nodes[0], 0)
  range.setEnd(nodes.at(-1)!, nodes.at(-1)!.length)
  const rects = [...range.getClientRects()].filter((rect) => rect.width && rect.height)
  if (!rects.length) return []
  const fits = rects.every((rect) => !findClip(clip, readBox(rect)))
  if (rects.length === 1 && fits) return [{ text: joinText(nodes), box: readBox(rects[0]) }]
  const lines: { text: string; box: Box; isCut?: boolean }[] = []
  for (const { node, character, offset } of listCharacters(nodes)) {
    range.setStart(node, offset)
    range.setEnd(node, offset + character.length)
    const rect = range.getClientRects()[0]
    if (!rect || (!rect.width && !rect.height)) continue
    const line = lines.at(-1)
    const isSameLine =
      line !== undefined &&
      (angle % 180 === 0
        ? Math.abs(line.box[1] - rect.top) < rect.height / 2
        : Math.abs(line.box[0] - rect.left) < rect.width / 2)
    const [centreX, centreY] = [rect.left + rect.width * 0.75, rect.top + rect.height / 2]
    const isHidden =
      clip !== null &&
      (centreX > clip[0] + clip[2] ||
        centreX < clip[0] ||
        centreY < clip[1] ||
        centreY > clip[1] + clip[3])
    if (isHidden) {
      if (isSameLine && !line.isCut) {
        line.text = `${[...line.text].slice(0, -1).join("")}…`
        line.isCut = true
      }
    } else if (!isSameLine) lines.push({ text: character, box: readBox(rect) })
    else {
      line.text += character
      const [x, y] = [Math.min(line.box[0], rect.left), Math.min(line.box[1], rect.top)]
      const right = Math.max(line.box[0] + line.box[2], rect.right)
      const bottom = Math.max(line.box[1] + line.box[3], rect.bottom)
      line.box = [x, y, right - x, bottom - y]
    }
  }
  return lines
}

function* listCharacters(nodes: Text[]) {
  for (const node of nodes) {
    let offset = 0
    for (const character of node.data) {
      yield { node, character, offset }
      offset += character.length
    }
  }
}
