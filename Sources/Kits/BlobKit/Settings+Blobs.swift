package import Blobs
package import Postgres
package import SettingsKit

extension Setting {
    package static let storing: [Setting] = [blobs, blobsSweep] + s3
    package static let s3: [Setting] = [s3Endpoint, s3Region, s3AccessKey, s3SecretKey, s3Token]

    package static let blobs = Setting(
        "blobs",
        .custom(expects: BlobPlace.expectation) { text in
            BlobPlace(text) == nil ? "takes \(BlobPlace.expectation), not \(Secrets.quoted(text))" : nil
        },
        fallback: "postgres", valueName: "PLACE",
        help: "Where blobs are stored: dir:<absolute path>, shared by all workers, s3://<bucket>/<folder>, or postgres."
    )

    package static let blobsSweep = Setting(
        "blobs-sweep", .boolean, fallback: "on",
        help: "Delete blobs without references once an hour, in turns with the other workers.")
    package static let s3Endpoint = Setting(
        "s3-endpoint", environment: "S3_ENDPOINT",
        .custom(expects: "a URL such as https://s3.example.com") { text in
            let rest =
                text.hasPrefix("https://") ? text.dropFirst(8) : text.hasPrefix("http://") ? text.dropFirst(7) : ""
            return !rest.isEmpty && rest.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !rest.dropLast().contains("/")
                && !rest.contains("@") ? nil : "takes a URL such as https://s3.example.com, without a path"
        }, valueName: "URL", help: "The address of the S3 of MILLRACE_BLOBS; Amazon's own if not given.")
    package static let s3Region = Setting(
        "aws-region", environment: "AWS_REGION", .text, fallback: "us-east-1", valueName: "REGION",
        help: "The region of that S3.")
    package static let s3AccessKey = Setting(
        "aws-access-key-id", environment: "AWS_ACCESS_KEY_ID", .text, secrecy: .hidden, valueName: "ID",
        help: "The secret key of that S3.")
    package static let s3SecretKey = Setting(
        "aws-secret-access-key", environment: "AWS_SECRET_ACCESS_KEY", .text, secrecy: .hidden, valueName: "KEY",
        help: "Its secret.")
    package static let s3Token = Setting(
        "aws-session-token", environment: "AWS_SESSION_TOKEN", .text, secrecy: .hidden, valueName: "TOKEN",
        help: "The session token of temporary credentials.")
}

extension Settings {
    /// The configured storage of blobs.
    package func blobStore(pool: Pool) -> any BlobStore {
        (BlobPlace(string(.blobs)) ?? .postgres).store(pool: pool, s3: s3Options)
    }

    private var s3Options: S3Options? {
        guard let access = text(.s3AccessKey), let secret = text(.s3SecretKey) else { return nil }
        return S3Options(
            endpoint: text(.s3Endpoint), region: string(.s3Region), accessKey: access, secretKey: secret,
            token: text(.s3Token))
    }

    /// Reports mistakes that would otherwise show with the first blob.
    package mutating func judgeBlobs() {
        guard let place = text(.blobs), place.hasPrefix("s3:") else { return }
        for setting in [Setting.s3AccessKey, .s3SecretKey] where text(setting) == nil {
            problems.append("MILLRACE_BLOBS is in S3: \(setting.environment) is needed too")
        }
    }

    /// nil: the public address, or the secret of links, is not set.
    package var blobLinks: BlobLinks? {
        guard let url = text(.publicURL), let secret = text(.secret) else { return nil }
        return BlobLinks(publicURL: url, secrets: [secret] + (text(.secretPrevious).map { [$0] } ?? []))
    }
}
