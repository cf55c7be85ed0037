package import Blobs
package import Listeners
package import Postgres
package import SettingsKit
package import Telemetry

/// A worker's work on blobs, besides its jobs.
package struct BlobWiring: Sendable {
    package let store: any BlobStore
    package let links: BlobLinks?
    /// The most bytes of a document.
    package let largest: Int
    package let sweeps: Bool
    /// Who puts or gets: each address has a share of the store's connections.
    let addresses: ClientAddress
    package let log: Log

    package init(_ settings: Settings, pool: Pool, addresses: ClientAddress, log: Log) {
        store = settings.blobStore(pool: pool)
        links = settings.blobLinks
        largest = settings.largestDocument
        sweeps = settings.isOn(.blobsSweep)
        self.addresses = addresses
        self.log = log
    }

    package var routes: [Route] { links.map { routes($0).all } ?? [] }

    private func routes(_ links: BlobLinks) -> BlobRoutes {
        BlobRoutes(links: links, store: store, largest: largest, addresses: addresses, log: log)
    }

    /// Until cancelled.
    package func run() async {
        if let links {
            // SQL makes links with the same key. When the database is unreachable now, the next worker to start says it.
            do {
                try await routes(links).tellDatabase()
            } catch {
                log.warning("cannot tell the database how links are signed", [("error", "\(error)")])
            }
        }
        if sweeps { await BlobSweeper(store, log: log).run() }
    }
}
