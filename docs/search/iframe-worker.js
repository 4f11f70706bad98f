// Browsers allow no workers on pages opened from disk. There the search runs in a hidden frame, and the
// frame behaves as the worker would.
if (location.protocol === "file:") {
  const inside = () => {
    self.postMessage = (data) => parent.postMessage({ frame: self.name, data }, "*")
    self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>
      new Promise((loaded, failed) => document.body.append(
        Object.assign(document.createElement("script"), { src: url, onload: loaded, onerror: failed })
      ))), Promise.resolve())
  }
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const name = `worker-${Math.random()}`
      const frame = Object.assign(document.createElement("iframe"), { hidden: true, name })
      frame.srcdoc = `<body><script>(${inside})()</script><script src="${url}"></script></body>`
      this.ready = new Promise((loaded) => { frame.onload = () => loaded(frame.contentWindow) })
      addEventListener("message", ({ data }) => {
        if (data && data.frame === name) {
          const event = new MessageEvent("message", { data: data.data })
          this.dispatchEvent(event)
          if (this.onmessage) this.onmessage(event)
        }
      })
      document.body.append(frame)
    }
    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
