// The site's search runs in a worker, which browsers refuse to pages from file://.
// There, a hidden frame takes its place: what it is told comes as events, as in a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.ready = new Promise((done) => this.frame.addEventListener("load", done));
      window.addEventListener("message", (event) => {
        if (event.source === this.inside) {
          const { data } = event;
          this.onmessage?.(event);
          this.dispatchEvent(new MessageEvent("message", { data }));
        }
      });
      const page = this.inside.document;
      page.open();
      page.write(
        `<script>
           const above = window.parent;
           window.postMessage = (data) => above.dispatchEvent(
             new above.MessageEvent("message", { data, source: window })
           );
           window.importScripts = (...urls) => urls.reduce((before, url) => before.then(
             () => new Promise((done, failed) => {
               const script = document.createElement("script");
               Object.assign(script, { src: url, onload: done, onerror: failed });
               document.body.append(script);
             })
           ), Promise.resolve());
         </script>
         <body><script src="${url}"></script></body>`
      );
      page.close();
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
