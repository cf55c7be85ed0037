import Glibc

extension Cluster {
    /// The programs of one installed Postgres.
    package struct Binaries: Equatable, Sendable {
        package let directory: String
        package let major: Int

        package init(directory: String, major: Int) {
            self.directory = directory
            self.major = major
        }

        static let oldest = 14
        static let programs = ["postgres", "initdb", "pg_ctl"]

        /// Finds a Postgres: `MILLRACE_POSTGRES_BIN`, then the newest of Debian's, then the `PATH`.
        ///
        /// Asks `postgres --version`, a few milliseconds, only when the path does not tell the version.
        package static func locate(environment: [String: String]) throws(ClusterError) -> Binaries {
            try locate(environment: environment, debian: "/usr/lib/postgresql")
        }

        static func locate(environment: [String: String], debian: String) throws(ClusterError) -> Binaries {
            if let named = environment["MILLRACE_POSTGRES_BIN"], !named.isEmpty {
                if let missing = programs.first(where: { !ClusterFiles.isProgram("\(named)/\($0)") }) {
                    throw .unusableBinaries(directory: named, reason: "there is no program \(missing)")
                }
                return try examined(named)
            }
            let majors = (ClusterFiles.list(debian) ?? []).compactMap { Int($0) }.sorted(by: >)
            for major in majors where major >= oldest && isComplete("\(debian)/\(major)/bin") {
                return Binaries(directory: "\(debian)/\(major)/bin", major: major)
            }
            for directory in (environment["PATH"] ?? "").split(separator: ":") where isComplete(String(directory)) {
                return try examined(String(directory))
            }
            throw .noPostgres
        }

        func program(_ name: String) -> String { "\(directory)/\(name)" }

        private static func isComplete(_ directory: String) -> Bool {
            programs.allSatisfy { ClusterFiles.isProgram("\(directory)/\($0)") }
        }

        private static func examined(_ directory: String) throws(ClusterError) -> Binaries {
            let answer = try ProgramRun.run("\(directory)/postgres", ["--version"], within: WorkDeadline(.seconds(10)))
            guard answer.succeeded, let major = major(in: answer.output) else {
                throw .unusableBinaries(directory: directory, reason: "postgres --version did not answer")
            }
            guard major >= oldest else { throw .tooOld(directory: directory, major: major) }
            return Binaries(directory: directory, major: major)
        }

        /// The major version in the answer of `postgres --version`: `postgres (PostgreSQL) 15.18 (Debian …)`, `… 19devel`.
        static func major(in answer: String) -> Int? {
            guard let marker = answer.firstRange(of: "(PostgreSQL) ") else { return nil }
            return Int(answer[marker.upperBound...].prefix { $0.isASCII && $0.isNumber })
        }
    }
}
