// Entry point: draws the runs embedded in the page or, if there are none, starts the board.

import "uplot/dist/uPlot.min.css"
import "./style.css"

import { startApp } from "./app"
import { startBoard } from "./board/start"
import { EmbeddedSource } from "./data_source"

const data = document.getElementById("neural-data")
if (data) startApp(new EmbeddedSource(JSON.parse(data.textContent!)))
else startBoard()
