import Foundation
import Synchronization

/// One page of a browser: it goes to addresses, is clicked, looked at and asked by script.
package final class BrowserPage: Sendable {
    private struct State {
        var errors: [String] = []
        var requests: [String] = []
        /// The documents that have loaded, by the browser's names for them.
        var loaded: Set<String> = []
        var status = 0
        var width = 0
        var hasScript = true
    }

    private let browser: Browser
    private let session: String
    private let state = Mutex(State())

    init(browser: Browser, session: String) {
        self.browser = browser
        self.session = session
    }

    /// What the console got as errors, exceptions and failed requests included.
    package var errors: [String] { state.withLock { $0.errors } }
    /// The address of each request, in order.
    package var requests: [String] { state.withLock { $0.requests } }
    /// The status of the last document's answer.
    package var status: Int { state.withLock { $0.status } }
    /// The width that was set, in CSS pixels.
    package var width: Int { state.withLock { $0.width } }

    package var hasScript: Bool { state.withLock { $0.hasScript } }

    package func forget() {
        state.withLock { state in
            state.errors = []
            state.requests = []
        }
    }

    // MARK: how it is shown

    package func setSize(width: Int, height: Int, isPhone: Bool) async throws {
        try await send(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": isPhone ? 2 : 1, "mobile": isPhone])
        try await send("Emulation.setTouchEmulationEnabled", ["enabled": isPhone])
        state.withLock { $0.width = width }
        // The window takes its size later. A page that comes before that is laid out twice, and seems to move.
        let have = isPhone ? "screen.width" : "innerWidth"
        try await eventually("the window is \(width) pixels wide", within: .seconds(60)) {
            try await evaluate(have, as: Int.self) == width
        }
    }

    package func setDark(_ isDark: Bool) async throws {
        let feature: [String: any Sendable] = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try await send("Emulation.setEmulatedMedia", ["features": [feature]])
    }

    /// The languages that it asks servers for.
    package func setLanguages(_ languages: String) async throws {
        try await send("Network.setExtraHTTPHeaders", ["headers": ["Accept-Language": languages]])
    }

    package func setScript(_ isOn: Bool) async throws {
        try await send("Emulation.setScriptExecutionDisabled", ["value": !isOn])
        state.withLock { $0.hasScript = isOn }
    }

    // MARK: what is done with it

    /// Goes to an address, and returns when the document has loaded.
    package func go(to address: String) async throws {
        struct Reply: Decodable {
            let loaderId: String?
            let errorText: String?
        }
        let reply = try await send("Page.navigate", ["url": address], as: Reply.self)
        if let error = reply.errorText { throw Browser.Failed(description: "\(address): \(error)") }
        guard let document = reply.loaderId else { return }
        try await eventually("\(address) has loaded", within: .seconds(60)) {
            state.withLock { $0.loaded.contains(document) }
        }
    }

    /// Presses the mouse on the element, as a person would.
    package func click(_ selector: String) async throws {
        struct Place: Decodable {
            let x: Double
            let y: Double
        }
        let place = try await evaluate(
            """
            (() => {
                const element = document.querySelector(\(Self.quoted(selector)))
                if (!element) throw new Error('nothing matches ' + \(Self.quoted(selector)))
                element.scrollIntoView({ block: 'center', behavior: 'instant' })
                const box = element.getBoundingClientRect()
                return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
            })()
            """, as: Place.self)
        for type in ["mousePressed", "mouseReleased"] {
            let event: [String: any Sendable] = [
                "type": type, "x": place.x, "y": place.y, "button": "left", "clickCount": 1,
            ]
            try await send("Input.dispatchMouseEvent", event)
        }
    }

    /// Clicks, and returns when the document that this leads to has loaded.
    package func follow(_ selector: String) async throws {
        let before = state.withLock { $0.loaded.count }
        try await click(selector)
        try await eventually("what \(selector) leads to has loaded", within: .seconds(60)) {
            state.withLock { $0.loaded.count } > before
        }
    }

    /// The value of an expression; a promise is waited for.
    package func evaluate<Value: Decodable>(_ script: String, as type: Value.Type) async throws -> Value {
        let reply = try await send(
            "Runtime.evaluate", ["expression": script, "returnByValue": true, "awaitPromise": true],
            as: Evaluated<Value>.self)
        if let thrown = reply.exceptionDetails {
            throw Browser.Failed(description: thrown.exception?.description ?? thrown.text)
        }
        guard let value = reply.result.value else {
            throw Browser.Failed(description: "the script has no value: \(script)")
        }
        return value
    }

    /// The text that a reader sees.
    package func text() async throws -> String {
        try await evaluate("document.body ? document.body.innerText : ''", as: String.self)
    }

    /// Writes the page as a picture to the folder of screenshots, if one is given: the whole of it, or what is in sight.
    package func screenshot(_ name: String, isWhole: Bool = true) async throws {
        guard let folder = Browser.screenshots else { return }
        struct Reply: Decodable { let data: Data }
        let reply = try await send(
            "Page.captureScreenshot", ["format": "png", "captureBeyondViewport": isWhole], as: Reply.self)
        let file = folder.appending(path: "\(name).png")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try reply.data.write(to: file)
        // The window was as large as the page for a moment. What moved for that counts for nobody.
        guard hasScript else { return }
        _ = try await layoutShift()
        _ = try await evaluate(
            "(window.millraceShifts.sum = 0, window.millraceShifts.moved = [], true)", as: Bool.self)
    }

    // MARK: the protocol

    func start() async throws {
        for domain in ["Page", "Runtime", "Log", "Network"] { try await send("\(domain).enable") }
        try await send("Page.setLifecycleEventsEnabled", ["enabled": true])
        try await send("Page.addScriptToEvaluateOnNewDocument", ["source": Self.shiftRecorder])
    }

    /// An event of the browser, on the thread that reads them.
    func note(_ method: String, _ event: [String: Any]) {
        switch method {
        case "Runtime.consoleAPICalled" where event["type"] as? String == "error":
            let arguments = event["args"] as? [[String: Any]] ?? []
            let words = arguments.map { "\($0["value"] ?? $0["description"] ?? "?")" }
            add(error: words.joined(separator: " "))
        case "Runtime.exceptionThrown":
            let details = event["exceptionDetails"] as? [String: Any]
            let exception = details?["exception"] as? [String: Any]
            add(error: "\(exception?["description"] ?? details?["text"] ?? "an exception")")
        case "Log.entryAdded":
            guard let entry = event["entry"] as? [String: Any], entry["level"] as? String == "error" else { return }
            add(error: "\(entry["text"] ?? "?") \(entry["url"] ?? "")")
        case "Network.requestWillBeSent":
            guard let request = event["request"] as? [String: Any], let url = request["url"] as? String else { return }
            state.withLock { $0.requests.append(url) }
        case "Network.responseReceived" where event["type"] as? String == "Document":
            guard let response = event["response"] as? [String: Any] else { return }
            let status = response["status"] as? Int ?? 0
            state.withLock { $0.status = status }
        case "Page.lifecycleEvent" where event["name"] as? String == "load":
            guard let document = event["loaderId"] as? String else { return }
            state.withLock { _ = $0.loaded.insert(document) }
        default: break
        }
    }

    private func add(error: String) {
        // Our own recorder cannot run in a frame without scripts; the browser says so at some time.
        guard !error.contains("Blocked script execution") else { return }
        state.withLock { $0.errors.append(error) }
    }

    @discardableResult
    func send(_ method: String, _ parameters: [String: any Sendable] = [:]) async throws -> Data {
        try await browser.send(method, parameters, session: session)
    }

    private func send<Result: Decodable>(
        _ method: String, _ parameters: [String: any Sendable] = [:], as type: Result.Type
    ) async throws -> Result {
        try await browser.send(method, parameters, session: session, as: type)
    }

    /// A text as a script writes it.
    static func quoted(_ text: String) -> String {
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}

/// What the browser answers to an expression.
private struct Evaluated<Value: Decodable>: Decodable {
    struct Thrown: Decodable {
        struct Exception: Decodable { let description: String? }
        let text: String
        let exception: Exception?
    }
    struct Result: Decodable { let value: Value? }

    let result: Result
    let exceptionDetails: Thrown?
}
