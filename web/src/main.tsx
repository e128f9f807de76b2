// The entry: draws the runs that the page holds, or, where it holds none, starts the board.

import "uplot/dist/uPlot.min.css"
import "./style.css"

import { start } from "./app"
import { startBoard } from "./board/start"
import { EmbeddedSource } from "./source"

const data = document.getElementById("neural-data")
if (data) start(new EmbeddedSource(JSON.parse(data.textContent!)))
else startBoard()
