// What the analyses find while a run is written: shown when it is new, over whatever is looked at; and a lost connection.

import { useEffect, useRef, useState } from "preact/hooks"

import type { Finding } from "../model"
import { hashOf, parsePlace } from "../place"
import type { FetchSource } from "./fetch_source"

interface Alarm {
  run: string
  finding: Finding
}

const MOST = 3

export function Alarms({ source }: { source: FetchSource }) {
  const [alarms, setAlarms] = useState<Alarm[]>([])
  const [reached, setReached] = useState(true)
  const known = useRef(new Map<string, Set<string>>())
  useEffect(() => source.watch(() => {
    setReached(source.reached)
    for (const [run, findings] of source.findings) {
      const before = known.current.get(run)
      const warnings = findings.filter(isWarning)
      known.current.set(run, new Set([...(before ?? []), ...warnings.map((one) => one.code)]))
      // what was there when the run was opened is on its page already
      const fresh = before ? warnings.filter((one) => !before.has(one.code)) : []
      if (fresh.length) setAlarms((old) => [...fresh.map((finding) => ({ run, finding })), ...old].slice(0, MOST))
    }
  }), [source])
  const close = (at: number) => setAlarms((old) => old.filter((_, index) => index !== at))
  return (
    <div class="alarms" role="status">
      {reached ? null : <p class="card alarm">The board does not answer: is it still running? It is tried again.</p>}
      {alarms.map(({ run, finding }, at) => (
        <p key={`${run} ${finding.code}`} class="card alarm">
          <button type="button" class="close" aria-label="close" onClick={() => close(at)}>×</button>
          <b><code>{finding.code}</code> {finding.claim}</b><br />
          <span class="soft">{run}:</span> {finding.evidence}{" "}
          <a href={hashOf({ ...parsePlace(location.hash), pane: "findings", run })}>all findings</a>
        </p>
      ))}
    </div>
  )
}

function isWarning(finding: Finding): boolean {
  return finding.supported === "yes" && (finding as { kind?: string }).kind === "warning"
}
