// The board: the report's panes with live data from the server, and panes that need a server.

import "./board.css"

import { render } from "preact"

import boardPanes from "panes:./panes"
import { startApp } from "../app"
import { Notifications } from "./notifications"
import { FetchSource } from "./fetch_source"

export function startBoard(): void {
  const source = new FetchSource()
  startApp(source, boardPanes)
  const container = document.createElement("div")
  document.body.append(container)
  render(<Notifications source={source} />, container)
}
