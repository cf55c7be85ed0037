import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct AppWireTests {
    @Test(arguments: [
        ("2026-11-27T10:23:23.123456+00:00", 1_795_775_003.123456), ("2026-11-27 12:23:23+02", 1_795_775_003),
        ("2026-11-27T10:23:23Z", 1_795_775_003), ("2026-11-27T05:53:23.5-04:30", 1_795_775_003.5),
        ("1969-12-31T23:59:59.5Z", -0.5), ("2000-02-29T00:00:00Z", 951_782_400),
    ])
    func `instants are read as Postgres and JSON write them`(_ text: String, _ seconds: Double) throws {
        let date = try #require(InstantCoding.date(text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 1e-6)
    }

    @Test(arguments: [
        "", "2026-11-27", "2026-13-27T10:23:23Z", "2026-11-27T10:23:23", "2026-11-27T10:23:23.Z", "infinity",
    ])
    func `what is no instant is not read as one`(_ text: String) {
        #expect(InstantCoding.date(text) == nil)
    }

    @Test func `an instant that was written is read as the same`() throws {
        var random = SeededRandom(7)
        for _ in 0..<2000 {
            let micros = Int64.random(in: -2_000_000_000_000_000...2_000_000_000_000_000, using: &random)
            let date = Date(timeIntervalSince1970: Double(micros) / 1e6)
            let text = InstantCoding.text(date)
            let read = InstantCoding.date(text) ?? .distantFuture
            #expect(InstantCoding.text(read) == text)
            #expect(abs(read.timeIntervalSince(date)) < 1e-5)
        }
        #expect(InstantCoding.text(Date(timeIntervalSince1970: 1_795_775_003.123456)) == "2026-11-27T10:23:23.123456Z")
    }

    @Test(arguments: [
        ("01:00:00", 3600.0), ("1 day 02:00:00.5", 93_600.5), ("3 days", 259_200), ("-00:00:05", -5),
        ("90 seconds", 90),
        ("1 mon", 2_592_000), ("00:00:00", 0),
    ])
    func `spans are read as Postgres writes them`(_ text: String, _ seconds: Double) throws {
        #expect(try #require(SpanCoding.duration(text)).inSeconds == seconds)
    }

    @Test func `spans are written as Postgres reads them`() {
        #expect(SpanCoding.text(.seconds(90)) == "90 seconds")
        #expect(SpanCoding.text(.milliseconds(1500)) == "1500000 microseconds")
        #expect(SpanCoding.duration("soon") == nil)
    }

    @Test func `days count over months and years`() throws {
        let day = try #require(AppDay("2024-02-28"))
        #expect(day.adding(days: 1).description == "2024-02-29" && day.adding(days: 2).description == "2024-03-01")
        #expect(day.adding(days: 366).description == "2025-02-28" && day.adding(days: -59).description == "2023-12-31")
        #expect(AppDay("2024-13-01") == nil && AppDay("today") == nil)
        #expect(day < day.adding(days: 1))
    }

    @Test func `a value has the same bytes each time, and comes back as it was`() throws {
        let value: AppValue = ["b": [1, 2.5, nil, true], "a_key": ["inner_key": "x/y"]]
        let bytes = try AppJSON.encode(value)
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"a_key":{"inner_key":"x/y"},"b":[1,2.5,null,true]}"#)
        #expect(try AppJSON.decode(AppValue.self, from: bytes) == value)
    }
}

@Suite struct AppErrorTests {
    private func error(_ status: Int, _ body: String, _ headers: [String: String] = [:]) -> AppError {
        AppError(HTTPAnswer(status: status, headers: headers, body: Data(body.utf8)), requestID: "mine")
    }

    @Test func `a problem of the gateway keeps all that it says`() {
        let found = error(
            429,
            """
            {"type": "/v1/errors#quota", "title": "The limit is reached", "status": 429, "class": "quota", "detail": "no more",
             "field": "tenant", "hint": "wait", "user_message": "Nothing is left.", "limit": 100, "used": 100,
             "reset_date": "2030-02-01T00:00:00+00:00", "request_id": "r-1"}
            """, ["retry-after": "7"])
        #expect(found.kind == .resourceExhausted && found.errorClass == .quota && found.message == "no more")
        #expect(found.field == "tenant" && found.hint == "wait" && found.userMessage == "Nothing is left.")
        #expect(found.localizedDescription == "Nothing is left.")
        #expect(found.quota == QuotaError(limit: 100, used: 100, resetDate: Date(timeIntervalSince1970: 1_896_134_400)))
        #expect(found.requestID == "r-1" && found.retryAfter == .seconds(7) && !found.mayRetry)
    }

    @Test func `a signed link's refusal is read as well`() {
        let found = error(409, #"{"error":"conflict","message":"this link was used already"}"#)
        #expect(
            found.errorClass == .conflict && found.message == "this link was used already" && found.requestID == "mine")
    }

    @Test func `whatever something else answers, without a class it is no refusal`() {
        for status in 300..<600 {
            for body in ["<html>", "", "{}", #"{"error": "no"}"#, #"{"class": "made up"}"#, "[]", #"{"class": 5}"#] {
                let found = error(status, body)
                #expect(!found.isFromGateway && found.mayRetry == (status != 429), "\(status) \(body)")
                #expect(
                    [.unavailable, .deadlineExceeded, .unknown, .resourceExhausted].contains(found.kind),
                    "\(status) \(body)")
            }
        }
        #expect(error(503, "<html>", ["retry-after": "7"]).retryAfter == .seconds(7))
        #expect(error(504, "").kind == .deadlineExceeded && error(429, "").kind == .resourceExhausted)
        #expect(error(405, #"{"class": "invalid"}"#).isFromGateway)
    }

    @Test func `of the classes exactly these may be tried again`() {
        let again = AppError.ErrorClass.allCases.filter { AppError($0, "").mayRetry }
        #expect(Set(again) == [.transient, .timeout, .unavailable, .unknown])
    }

    @Test func `every kind of the papers is reached by a class`() {
        #expect(Set(AppError.ErrorClass.allCases.map(\.kind)) == Set(AppError.Kind.allCases))
    }
}

@Suite struct RetryRulesTests {
    private let rules = RetryRules()

    @Test func `three attempts, after pauses from one second that double`() {
        let error = AppError(.unavailable, "")
        #expect(rules.pause(after: 1, error, random: 1) == .seconds(1))
        #expect(rules.pause(after: 1, error, random: 0) == .milliseconds(500))
        #expect(rules.pause(after: 2, error, random: 1) == .seconds(2))
        #expect(rules.pause(after: 3, error, random: 1) == nil)
    }

    @Test func `the gateway's own pause is kept, unless it is longer than a caller waits`() {
        #expect(rules.pause(after: 1, AppError(.unavailable, "", retryAfter: .seconds(9)), random: 1) == .seconds(9))
        #expect(rules.pause(after: 1, AppError(.unavailable, "", retryAfter: .seconds(31)), random: 1) == nil)
    }

    @Test func `what another attempt cannot mend is not tried again`() {
        for errorClass in AppError.ErrorClass.allCases {
            let error = AppError(errorClass, "")
            #expect((rules.pause(after: 1, error, random: 0) != nil) == error.mayRetry)
        }
    }

    @Test func `a pause never gets longer than the longest`() {
        #expect(rules.spread(1000, random: 1) == rules.longestPause)
    }
}
