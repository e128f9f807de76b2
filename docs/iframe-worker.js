// Search in pages that are opened from a disk. Browsers refuse workers of `file:` addresses, so the
// theme's search runs in a hidden frame of the page instead. Pages from a server use real workers.

if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.waiting = [] // messages before the script has been loaded
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.scope = frame.contentWindow
      // inside a worker, `postMessage(data)` reaches the page; that of a frame would reach itself
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.scope.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)))
      this.load(url).then(() => {
        const messages = this.waiting
        this.waiting = null
        for (const data of messages) this.postMessage(data)
      })
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        this.scope.document.body.append(script)
      })
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }))
    }
  }
}
