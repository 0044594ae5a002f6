// Search in pages that are opened from a folder: browsers start no workers there, so a hidden frame runs the worker's script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.loaded = new Promise(resolve => this.frame.addEventListener("load", resolve))
      this.frame.srcdoc = `<script>
        const load = url => new Promise((resolve, reject) => {
          const script = document.createElement("script")
          Object.assign(script, { src: url, onload: resolve, onerror: reject })
          document.head.append(script)
        })
        self.importScripts = async (...urls) => { for (const url of urls) await load(url) }
        self.postMessage = data => self.answer(data)
      </script><script src="${new URL(url, location.href)}"></script>`
      document.body.append(this.frame)
      this.frame.contentWindow.answer = data => this.receive(data)
      this.loaded.then(() => { this.frame.contentWindow.answer = data => this.receive(data) })
    }
    receive(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
