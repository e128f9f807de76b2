// Saving pictures of the page as files: SVG, PDF, PNG, and CSV of their numbers.
//
// A pane wraps a picture and is done:
//
//   <Picture name="head-L2-h1" csv={() => ({ head: ["step", "loss"], rows: [[0, 4.6], [60, 3.1]] })}>
//     …any HTML and SVG, canvases included…
//   </Picture>
//
// `name` becomes the file name. `csv` is optional. The menu ("⤓") appears in the upper right corner of the
// picture. A component that has its own place for the menu, such as a caption, uses `ExportMenu` with a
// function that returns the element to save:
//
//   <ExportMenu name={title} picture={() => figure.current} csv={…} />
//
// What is saved is what the element shows: boxes, text, SVG and canvases, always in the light theme. Text
// stays text. Elements with the attribute `data-export="omit"` are left out (menus, buttons, hints); form
// controls are left out anyway. A canvas is saved as an image with one pixel per cell. A canvas that can be
// drawn as lines registers how: `registerVectorCanvas(canvas, () => shapes)`; charts of uPlot do it with
// `registerVectorCanvas(plot.ctx.canvas, () => drawChart(plot))`, which gives the ticks and the zoom of
// the screen. The same picture gives the same bytes.
//
// Steps: dom_drawing.ts reads the page into a flat list of shapes (shapes.ts); svg.ts, pdf.ts and png.ts
// write that list.

export { drawChart } from "./chart_drawing"
export type { Table } from "./csv"
export { registerVectorCanvas } from "./dom_drawing"
export { ExportMenu, Picture } from "./picture"
