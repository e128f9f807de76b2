// The board: the views of the report, live from the server, and what only a server can do.

import "./board.css"

import { render } from "preact"

import { start } from "../app"
import { Alarms } from "./alarms"
import { compare } from "./compare"
import { FetchSource } from "./fetch_source"
import { generate } from "./generate"
import { runs } from "./runs"
import { segment } from "./segment"

export function startBoard(): void {
  const source = new FetchSource()
  start(source, [runs], [compare, generate, segment])
  const beside = document.createElement("div")
  document.body.append(beside)
  render(<Alarms source={source} />, beside)
}
