"""Opens mails in Chromium, through the pipe of its debugging protocol, and checks what a reader would see."""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LOOK = r"""
(() => {
  const parse = (text) => {
    const n = text.match(/[\d.]+/g).map(Number);
    return {r: n[0], g: n[1], b: n[2], a: n.length > 3 ? n[3] : 1};
  };
  const over = (top, bottom) => ({
    r: top.r * top.a + bottom.r * (1 - top.a), g: top.g * top.a + bottom.g * (1 - top.a),
    b: top.b * top.a + bottom.b * (1 - top.a), a: 1});
  const light = (c) => {
    const [r, g, b] = [c.r, c.g, c.b].map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') return null;
      layers.push(parse(style.backgroundColor));
    }
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    let colour = dark ? {r: 18, g: 18, b: 18, a: 1} : {r: 255, g: 255, b: 255, a: 1};
    for (const layer of layers.reverse()) colour = over(layer, colour);
    return colour;
  };
  const faults = [];
  let texts = 0, worst = 99;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || !element.getClientRects().length) continue;
    texts += 1;
    const bottom = behind(element), top = bottom && over(parse(getComputedStyle(element).color), bottom);
    if (!bottom) { faults.push('a text stands on a picture'); continue; }
    const [a, b] = [light(top), light(bottom)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    worst = Math.min(worst, ratio);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
  }
  if (!texts) faults.push('there is no text to be seen');
  if (document.documentElement.scrollWidth > innerWidth)
    faults.push(`${document.documentElement.scrollWidth} pixels wide in a window of ${innerWidth}`);
  for (const element of document.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (box.width && (box.right > innerWidth + 0.5 || box.left < -0.5)) {
      faults.push(`<${element.localName}> reaches from ${box.left.toFixed(0)} to ${box.right.toFixed(0)}`);
      break;
    }
  }
  return {faults, texts, worst, width: innerWidth, height: document.documentElement.scrollHeight,
    dark: matchMedia('(prefers-color-scheme: dark)').matches};
})()
"""


class Browser:
    """Chromium, spoken to in JSON with a NUL behind each message."""

    def __init__(self, profile):
        inward, self.writer = os.pipe()
        self.reader, outward = os.pipe()
        # The protocol wants descriptors 3 and 4; by way of high numbers neither is overwritten by the other.
        command = (
            f"exec 3<&{inward} 4>&{outward}; exec chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "
            f"--no-first-run --disable-extensions --disable-background-networking --remote-debugging-pipe "
            f"--user-data-dir='{profile}' about:blank"
        )
        self.process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(inward, outward), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(inward)
        os.close(outward)
        self.rest = b""
        self.number = 0
        self.events = []

    def read(self):
        while b"\0" not in self.rest:
            piece = os.read(self.reader, 1 << 16)
            if not piece:
                sys.exit("chromium has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, event):
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self.read())

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=30)


def look(browser, session, file, width, scheme):
    browser.call(
        "Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1,
        mobile=width < 500)
    browser.call(
        "Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events = []
    address = file.resolve().as_uri()
    browser.call("Page.navigate", session, url=address)
    browser.wait("Page.loadEventFired")
    seen = browser.call("Runtime.evaluate", session, expression=LOOK, returnByValue=True)["result"]["value"]
    faults = seen["faults"]
    for event in browser.events:
        if event.get("method") == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if url != address and not url.startswith("data:"):
                faults.append(f"asks for {url}")
    if seen["width"] != width or seen["dark"] != (scheme == "dark"):
        faults.append(f"the window is {seen['width']} wide and {'dark' if seen['dark'] else 'light'}")
    picture = browser.call(
        "Page.captureScreenshot", session, format="png", captureBeyondViewport=True,
        clip={"x": 0, "y": 0, "width": width, "height": max(seen["height"], 200), "scale": 1})
    return seen, faults, base64.b64decode(picture["data"])


def main():
    out, files = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="millrace-mails-", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            browser.call(f"{domain}.enable", session)
        for file in files:
            for width in (375, 600):
                for scheme in ("light", "dark"):
                    seen, faults, picture = look(browser, session, file, width, scheme)
                    (out / f"{file.stem}.{width}.{scheme}.png").write_bytes(picture)
                    words = "; ".join(faults) or f"{seen['texts']} texts, contrast {seen['worst']:.1f} at least"
                    print(f"{'BAD ' if faults else 'good'} {file.stem} {width} {scheme}: {words}", flush=True)
                    bad += bool(faults)
        browser.close()
    print(f"{len(files) * 4} views, {bad} bad; pictures are in {out}")
    sys.exit(1 if bad else 0)


main()
