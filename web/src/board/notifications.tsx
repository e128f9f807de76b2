// Notifications on top of any pane: new warnings about a running training, and a lost connection.

import { useEffect, useRef, useState } from "preact/hooks"

import type { Finding } from "../run_data"
import { formatRoute, parseRoute } from "../route"
import type { FetchSource } from "./fetch_source"

interface Notification {
  run: string
  finding: Finding
}

const MAX_NOTIFICATIONS = 3

export function Notifications({ source }: { source: FetchSource }) {
  const [notifications, setNotifications] = useState<Notification[]>([])
  const [isConnected, setConnected] = useState(true)
  const seenCodes = useRef(new Map<string, Set<string>>())
  useEffect(
    () =>
      source.watch(() => {
        setConnected(source.isConnected)
        for (const [run, findings] of source.findings) {
          const previous = seenCodes.current.get(run)
          const warnings = findings.filter(isWarning)
          seenCodes.current.set(
            run,
            new Set([...(previous ?? []), ...warnings.map((warning) => warning.code)]),
          )
          // warnings that were there when the run was opened are shown by its own panes
          const fresh = previous ? warnings.filter((warning) => !previous.has(warning.code)) : []
          if (fresh.length)
            setNotifications((shown) =>
              [...fresh.map((finding) => ({ run, finding })), ...shown].slice(0, MAX_NOTIFICATIONS),
            )
        }
      }),
    [source],
  )
  const close = (position: number) =>
    setNotifications((shown) => shown.filter((_, index) => index !== position))
  return (
    <div class="notifications" role="status">
      {isConnected ? null : (
        <p class="card notification">
          The board does not answer: is it still running? Reconnecting…
        </p>
      )}
      {notifications.map(({ run, finding }, position) => (
        <p key={`${run} ${finding.code}`} class="card notification">
          <button type="button" class="close" aria-label="close" onClick={() => close(position)}>
            ×
          </button>
          <b>
            <code>{finding.code}</code> {finding.claim}
          </b>
          <br />
          <span class="muted">{run}:</span> {finding.evidence}{" "}
          <a href={formatRoute({ ...parseRoute(location.hash), pane: "findings", run })}>
            all findings
          </a>
        </p>
      ))}
    </div>
  )
}

function isWarning(finding: Finding): boolean {
  return finding.supported === "yes" && (finding as { kind?: string }).kind === "warning"
}
