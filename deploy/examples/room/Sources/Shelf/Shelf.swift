public import MillraceWorker

/// Reminds a person of a book that is due.
public struct RemindOfBook: Job {
    /// The name its jobs are stored under.
    public static let kind = "shelf.remind"

    /// The number of the loan.
    public var loan: Int
}

extension Room {
    /// Books that people borrow.
    public static let shelf = Room(
        RoomSchema(
            name: "shelf", needs: ["people"], purpose: "books that people borrow", kinds: [RemindOfBook.kind],
            migrations: ["001_shelf": Embedded._001_shelf],
            functions: ["shelf": Embedded.shelf, "shelf_hooks": Embedded.shelf_hooks]),
        settings: [days],
        nouns: ["shelf": "Lend books, and see who has them"],
        verbs: [listLoans, lendBook],
        pages: [
            RoomPage(
                "/shelf", label: "Shelf",
                sections: [
                    .init(
                        "The newest loans", rows: "select * from millrace.shelf_loans(50)",
                        columns: ["Loan": "loan", "Book": "book", "Due": "due", "Returned": "returned"],
                        empty: "Nobody has borrowed a book yet.")
                ])
        ],
        checks: [
            RoomCheck("shelf") { database in
                let late = try await database.rows("select millrace.shelf_late() as books").first?["books"] ?? "0"
                guard late != "0" else { return .ok("no book is a month late") }
                return .warning("\(late) books are more than a month late", advice: "millrace shelf list names them")
            }
        ],
        status: RoomStatus("shelf") { database in
            let row = try await database.rows("select s.lent, s.due from millrace.shelf_state() s").first
            let (lent, due) = (Int(row?["lent"] ?? "") ?? 0, Int(row?["due"] ?? "") ?? 0)
            return RoomState("\(lent) lent, \(due) of them due", figures: ["lent": lent, "due": due])
        }
    ) { worker, database in
        worker.handle(RemindOfBook.self, queue: "shelf") { job, context in
            let answer = try await database.rows(
                "select millrace.shelf_remind($1::bigint) as reminded", "\(job.loan)")
            context.log(answer.first?["reminded"] == "true" ? "reminded" : "the book is back already")
            return .done
        }
    }

    /// How long a book is lent where nobody says.
    private static let days = RoomSetting("SHELF_DAYS", fallback: "14", help: "For how many days a book is lent.") {
        (1...90).contains(Int($0) ?? 0) ? nil : "takes 1 to 90 days"
    }

    private static let listLoans = RoomVerb(
        ["shelf", "list"], summary: "List the newest loans",
        examples: ["millrace shelf list": "who has which book"]
    ) { call in
        let loans = try await call.database.rows("select * from millrace.shelf_loans(200)")
        call.show("loans", loans, empty: "nobody has borrowed a book yet")
    }

    private static let lendBook = RoomVerb(
        ["shelf", "lend"], summary: "Lend a book to a person",
        arguments: ["person": "who borrows it", "book": "its title"],
        options: ["days": "For how many days; SHELF_DAYS if not given."],
        examples: ["millrace shelf lend ada 'On Growth and Form' --days 7": "for a week"]
    ) { call in
        let loans = try await call.database.rows(
            "select millrace.shelf_borrow($2, $3::int, actor => $1) as loan", call.argument("person"),
            call.argument("book"), call.option("days") ?? call.database.value(of: days))
        call.show("loans", loans, empty: "")
    }
}
