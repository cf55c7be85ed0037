package import JSON
package import Listeners

/// A request of a known caller, on its way through a route.
package struct GatewayCall: Sendable {
    package let request: Request
    package let caller: GatewayCaller
    package let requestID: String
    /// Takes what a request costs beyond the one call that each takes.
    package let charge: @Sendable (GatewayCost) async throws -> Void

    /// The whole body, charged by its bytes before anything is done with it.
    package func body() async throws -> [UInt8] {
        let bytes = try await GatewayBody.read(request)
        try await charge(GatewayCost(calls: GatewayCost.calls(ofBytes: bytes.count)))
        return bytes
    }
}

/// One path of the gateway, from which the listener's route and the entry of the OpenAPI document are made.
package struct GatewayRoute: Sendable {
    package enum Access: Sendable {
        case everyone
        /// With a web token.
        case token
        /// With a web token, or with the token of a device.
        case tokenOrDevice
    }

    package struct Parameter: Sendable {
        package enum Place: String, Sendable {
            case path, query, header
        }

        package var name: String
        package var place: Place
        package var about: String
        package var schema: JSONValue

        package init(_ name: String, _ place: Place, _ about: String, schema: JSONValue = ["type": "string"]) {
            self.name = name
            self.place = place
            self.about = about
            self.schema = schema
        }
    }

    package struct Answer: Sendable {
        package var status: Int
        package var about: String
        /// nil: it has no body.
        package var type: String?
        package var schema: JSONValue

        package init(_ status: Int, _ about: String, type: String? = "application/json", schema: JSONValue = [:]) {
            self.status = status
            self.about = about
            self.type = type
            self.schema = schema
        }
    }

    enum Handler: Sendable {
        case open(@Sendable (Request) async throws -> Response)
        case authenticated(@Sendable (GatewayCall) async throws -> Response)
    }

    package var method: Listeners.Method
    package var path: String
    package var summary: String
    package var parameters: [Parameter] = []
    /// The schema of the JSON body; nil: it takes none.
    package var body: JSONValue?
    package var answers: [Answer]
    /// The most bytes of a body.
    package var limit = 65_536
    package var access: Access
    /// Each function of the catalogue stands in the document in place of this path.
    var isOfFunctions = false
    let handler: Handler

    /// For a caller who is known.
    package init(
        _ method: Listeners.Method, _ path: String, _ summary: String, access: Access = .token,
        parameters: [Parameter] = [], body: JSONValue? = nil, answers: [Answer], limit: Int = 65_536,
        handle: @escaping @Sendable (GatewayCall) async throws -> Response
    ) {
        self.method = method
        self.path = path
        self.summary = summary
        self.access = access
        self.parameters = parameters
        self.body = body
        self.answers = answers
        self.limit = limit
        handler = .authenticated(handle)
    }

    /// For everybody.
    package init(
        open path: String, _ summary: String, answers: [Answer],
        handle: @escaping @Sendable (Request) async throws -> Response
    ) {
        method = .get
        self.path = path
        self.summary = summary
        access = .everyone
        self.answers = answers
        handler = .open(handle)
    }
}
