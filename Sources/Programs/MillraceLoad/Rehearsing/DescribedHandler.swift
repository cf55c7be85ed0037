import FoundationEssentials

/// A handler as data: its arguments, and what it does. A program reads such descriptions and does what they say, so that a changed handler needs no
/// compiler.
struct DescribedHandler: Codable, Sendable, Equatable {
    enum FieldType: String, Codable, Sendable, CaseIterable {
        case int, double, text, flag
    }

    struct Field: Codable, Sendable, Equatable {
        var name: String
        var type: FieldType
        var isOptional = false
    }

    /// Of what a step gives.
    enum ValueType: String, Codable, Sendable, CaseIterable {
        case int, double, text, list, pair
        /// As a pair, and more that may be missing.
        case widerPair
        /// As a pair, and more that must not be missing.
        case needyPair
    }

    struct Part: Codable, Sendable, Equatable {
        enum Sort: String, Codable, Sendable {
            case step, undoable, sleep, event, approval, child
            /// One or the other parts, by a flag among the arguments.
            case branch
            /// All parts at the same time.
            case together
            /// The parts, whose errors are passed over.
            case attempt
            /// A step whose work fails.
            case failingStep
            case log, progress, spawn
            /// The run fails, and is tried again.
            case fails
        }

        var sort: Sort
        /// Of the step, or of the part; no two have the same.
        var name: String
        var type = ValueType.int
        var signal = ""
        /// The argument that is the key, the flag, or goes to the child.
        var field = ""
        var child = ""
        var seconds = 259_200.0
        var negated = false
        var value = 7
        var parts: [Part] = []
        var otherwise: [Part] = []

        /// It asks for a step.
        var asks: Bool {
            switch sort {
            case .step, .undoable, .sleep, .event, .approval, .child, .failingStep: true
            case .branch, .together, .attempt, .log, .progress, .spawn, .fails: false
            }
        }

        var waits: Bool {
            switch sort {
            case .sleep, .event, .approval, .child: true
            case .step, .undoable, .failingStep, .branch, .together, .attempt, .log, .progress, .spawn, .fails: false
            }
        }
    }

    var kind: String
    var fields: [Field]
    var body: [Part]
}

extension DescribedHandler.Part {
    static func step(_ name: String, _ type: DescribedHandler.ValueType = .int) -> Self {
        var part = Self(sort: .step, name: name)
        part.type = type
        return part
    }

    static func event(_ name: String, _ signal: String, key field: String, _ type: DescribedHandler.ValueType = .int)
        -> Self
    {
        var part = Self(sort: .event, name: name)
        (part.signal, part.field, part.type) = (signal, field, type)
        return part
    }

    static func child(_ name: String, of kind: String, with field: String) -> Self {
        var part = Self(sort: .child, name: name)
        (part.child, part.field) = (kind, field)
        return part
    }

    static func branch(_ name: String, on field: String, _ parts: [Self], else otherwise: [Self] = []) -> Self {
        var part = Self(sort: .branch, name: name)
        (part.field, part.parts, part.otherwise) = (field, parts, otherwise)
        return part
    }

    static func group(_ sort: Sort, _ name: String, _ parts: [Self]) -> Self {
        var part = Self(sort: sort, name: name)
        part.parts = parts
        return part
    }
}

extension DescribedHandler {
    private static let common = [
        Field(name: "order", type: .int), Field(name: "who", type: .text), Field(name: "other", type: .int),
        Field(name: "flag", type: .flag), Field(name: "note", type: .text, isOptional: true),
    ]

    /// The ten that are rehearsed.
    static let ten: [DescribedHandler] = [
        of(
            "order.place",
            [
                .step("reserve", .pair), .group(.undoable, "charge", []), .event("paid", "payment", key: "order"),
                .step("ship", .text), .step("mail"),
            ]),
        of(
            "trial.start",
            [
                .step("welcome", .text), .group(.log, "said", []), .group(.sleep, "trial", []), .step("remind"),
                .step("close", .text),
            ]),
        of(
            "refund.ask",
            [
                .step("check"), .group(.approval, "allow", []), .step("pay-back", .double), .group(.spawn, "tell", []),
                .event("confirmed", "bank", key: "order", .text), .step("file"),
            ]),
        of(
            "report.build",
            [
                .step("collect", .list), .child("render", of: "rehearsed.child", with: "order"), .step("merge", .pair),
                .child("print", of: "rehearsed.stuck", with: "other"), .step("publish", .text),
            ]),
        of(
            "import.file",
            [
                .step("parse", .list),
                .branch(
                    "size", on: "flag", [.step("split"), .step("load-large", .pair)], else: [.step("load-small", .text)]
                ),
                .step("verify", .text), .group(.sleep, "settle", []), .step("archive"),
            ]),
        of(
            "fan.out",
            [
                .step("prepare"),
                .group(.together, "regions", [.step("north"), .step("south", .text), .step("west", .double)]),
                .step("join", .pair), .event("go", "go", key: "who"), .step("announce"),
            ]),
        of(
            "card.check",
            [
                .group(.attempt, "try", [.group(.failingStep, "risky", [])]), .step("fallback"),
                .step("score", .double),
                .event("verdict", "verdict", key: "order", .pair), .step("tell-shop"),
            ]),
        of(
            "retry.later",
            [
                .step("first"), .step("second", .text), .step("third", .pair), .group(.fails, "down", []),
                .step("fourth"),
            ]),
        of(
            "done.soon",
            [
                .step("one"), .group(.progress, "half", []), .step("two", .text), .step("three", .pair),
            ]),
        of(
            "sign.up",
            [
                .branch(
                    "vip", on: "flag", [.step("gift"), .event("vip-ok", "vip", key: "who")],
                    else: [.step("survey", .text)]),
                .group(.approval, "welcome-call", []), .step("finish", .text),
            ]),
    ]

    private static func of(_ kind: String, _ body: [Part]) -> DescribedHandler {
        DescribedHandler(kind: kind, fields: common, body: body)
    }
}
