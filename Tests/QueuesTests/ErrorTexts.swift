/// Errors as other systems write them, with holes for what differs from run to run. Each is a cause of its own.
enum ErrorTexts {
    static let all: [String] = text.split(separator: "\n").map(String.init)

    private static let text = #"""
        duplicate key value violates unique constraint "users_email_key"
        duplicate key value violates unique constraint "orders_pkey"
        ERROR: duplicate key value violates unique constraint "idx_invoices_number" (SQLSTATE 23505)
        null value in column "customer_id" of relation "orders" violates not-null constraint
        null value in column "amount" of relation "orders" violates not-null constraint
        insert or update on table "orders" violates foreign key constraint "orders_customer_fk"
        update or delete on table "customers" violates foreign key constraint "orders_customer_fk" on table "orders"
        new row for relation "invoices" violates check constraint "invoices_total_check"
        relation "public.reports" does not exist
        relation "public.exports" does not exist
        column "tenant_id" does not exist
        column o.shipped_at does not exist
        function public.refresh_totals({int}) does not exist
        invalid input syntax for type integer: "{word}"
        invalid input syntax for type uuid: "{word}"
        invalid input value for enum order_state: "{word}"
        value too long for type character varying({int})
        deadlock detected: Process {int} waits for ShareLock on transaction {int}; blocked by process {int}.
        deadlock detected: Process {int} waits for ExclusiveLock on tuple ({int},{int}) of relation {int} of database {int}; blocked by process {int}.
        canceling statement due to statement timeout
        canceling statement due to lock timeout
        canceling statement due to conflict with recovery
        terminating connection due to administrator command
        could not serialize access due to concurrent update
        could not serialize access due to read/write dependencies among transactions
        FATAL: password authentication failed for user "{word}"
        FATAL: no pg_hba.conf entry for host "{ip}", user "{word}", database "shop", no encryption
        FATAL: sorry, too many clients already
        FATAL: remaining connection slots are reserved for non-replication superuser connections
        could not connect to server: Connection refused. Is the server running on host "{host}" ({ip}) and accepting TCP/IP connections on port {int}?
        connection to server at "{host}" ({ip}), port {int} failed: Connection timed out
        connection to server at "{host}" ({ip}), port {int} failed: FATAL: the database system is starting up
        SSL connection has been closed unexpectedly
        could not extend file "base/{int}/{int}": No space left on device
        could not open file "base/{int}/{int}.{int}": No such file or directory
        permission denied for table invoices
        permission denied for schema billing
        cached plan must not change result type
        out of shared memory
        prepared statement "__pg_{int}" does not exist
        date/time field value out of range: "{time}"
        numeric field overflow
        division by zero
        index row size {int} exceeds btree version {int} maximum {int} for index "notes_body_idx"
        curl: (6) Could not resolve host: {host}
        curl: (7) Failed to connect to {host} port {int} after {int} ms: Connection refused
        curl: (7) Failed to connect to {host} port {int} after {int} ms: No route to host
        curl: (28) Operation timed out after {int} milliseconds with {int} out of {int} bytes received
        curl: (28) Connection timed out after {int} milliseconds
        curl: (35) OpenSSL SSL_connect: Connection reset by peer in connection to {host}:443
        curl: (35) error:0A000152:SSL routines::unsafe legacy renegotiation disabled
        curl: (52) Empty reply from server
        curl: (56) Recv failure: Connection reset by peer
        curl: (60) SSL certificate problem: certificate has expired
        curl: (60) SSL certificate problem: unable to get local issuer certificate
        curl: (22) The requested URL returned error: 503 for {url}
        curl: (18) transfer closed with {int} bytes remaining to read
        curl: (92) HTTP/2 stream {int} was not closed cleanly: INTERNAL_ERROR (err {int})
        error:1416F086:SSL routines:tls_process_server_certificate:certificate verify failed
        error:1408F10B:SSL routines:ssl3_get_record:wrong version number
        error:0308010C:digital envelope routines::unsupported
        error:14094410:SSL routines:ssl3_read_bytes:sslv3 alert handshake failure
        {hex12}:error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:../ssl/statem/statem_clnt.c:{int}:
        connect ECONNREFUSED {ip}:{int}
        connect EHOSTUNREACH {ip6}:{int}
        connect ETIMEDOUT {ip}:{int}
        read ECONNRESET
        getaddrinfo ENOTFOUND {host}
        getaddrinfo EAI_AGAIN {host}
        ENOENT: no such file or directory, open '{path}'
        ENOENT: no such file or directory, unlink '{path}'
        EACCES: permission denied, mkdir '{path}'
        EMFILE: too many open files, open '{path}'
        ENOSPC: no space left on device, write
        TypeError: Cannot read properties of undefined (reading 'id')
        TypeError: Cannot read properties of undefined (reading 'email')
        TypeError: Cannot read properties of null (reading 'id')
        TypeError: user.profile.save is not a function
        ReferenceError: invoiceTotal is not defined
        SyntaxError: Unexpected token '<', "<!DOCTYPE {word}"... is not valid JSON
        SyntaxError: Unexpected end of JSON input
        RangeError: Maximum call stack size exceeded
        Error: Cannot find module 'sharp'
        Error: Cannot find module './handlers/refund'
        AxiosError: Request failed with status code 404
        AxiosError: timeout of {int}ms exceeded
        FetchError: request to {url} failed, reason: socket hang up
        FetchError: request to {url} failed, reason: certificate has expired
        MongoServerError: E11000 duplicate key error collection: shop.users index: email_1 dup key: {{ email: "{email}" }}
        PrismaClientKnownRequestError: Unique constraint failed on the fields: (`email`)
        PrismaClientKnownRequestError: Unique constraint failed on the fields: (`slug`)
        ReplyError: READONLY You can't write against a read only replica.
        ReplyError: OOM command not allowed when used memory > 'maxmemory'.
        KeyError: 'customer_id'
        KeyError: 'amount'
        ValueError: invalid literal for int() with base 10: '{word}'
        ValueError: could not convert string to float: '{word}'
        ValueError: time data '{time}' does not match format '%Y-%m-%d'
        AttributeError: 'NoneType' object has no attribute 'total'
        AttributeError: 'NoneType' object has no attribute 'items'
        AttributeError: 'dict' object has no attribute 'total'
        TypeError: unsupported operand type(s) for +: 'int' and 'str'
        TypeError: charge() missing 1 required positional argument: 'currency'
        ModuleNotFoundError: No module named 'pandas'
        FileNotFoundError: [Errno 2] No such file or directory: '{path}'
        PermissionError: [Errno 13] Permission denied: '{path}'
        json.decoder.JSONDecodeError: Expecting value: line {int} column {int} (char {int})
        UnicodeDecodeError: 'utf-8' codec can't decode byte 0x{hex2} in position {int}: invalid start byte
        requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='{host}', port={int}): Read timed out. (read timeout={int})
        requests.exceptions.ConnectionError: HTTPSConnectionPool(host='{host}', port={int}): Max retries exceeded with url: {path} (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x{hex12}>: Failed to establish a new connection'))
        django.db.utils.OperationalError: server closed the connection unexpectedly
        sqlalchemy.exc.TimeoutError: QueuePool limit of size {int} overflow {int} reached, connection timed out, timeout {int}.00
        celery.exceptions.SoftTimeLimitExceeded: SoftTimeLimitExceeded()
        botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "{url}"
        psycopg2.errors.UniqueViolation: duplicate key value violates unique constraint "reports_day_key"
        java.lang.NullPointerException: Cannot invoke "String.length()" because "name" is null
        java.lang.NullPointerException: Cannot invoke "Order.getTotal()" because "order" is null
        java.lang.NumberFormatException: For input string: "{word}"
        java.lang.IllegalArgumentException: No enum constant com.acme.State.PAID
        java.lang.IllegalStateException: Connection pool shut down
        java.lang.ClassCastException: class java.lang.String cannot be cast to class java.lang.Integer
        java.lang.OutOfMemoryError: Java heap space
        java.lang.OutOfMemoryError: GC overhead limit exceeded
        java.net.SocketTimeoutException: Read timed out
        java.net.SocketTimeoutException: connect timed out
        java.net.UnknownHostException: {host}
        java.net.ConnectException: Connection refused (Connection refused)
        java.io.FileNotFoundException: {path} (No such file or directory)
        java.io.FileNotFoundException: {path} (Permission denied)
        java.sql.SQLTransientConnectionException: HikariPool-{int} - Connection is not available, request timed out after {int}ms.
        javax.net.ssl.SSLHandshakeException: PKIX path building failed: unable to find valid certification path to requested target
        org.hibernate.StaleObjectStateException: Row was updated or deleted by another transaction : [com.acme.Order#{int}]
        org.hibernate.StaleObjectStateException: Row was updated or deleted by another transaction : [com.acme.Invoice#{int}]
        com.fasterxml.jackson.databind.exc.MismatchedInputException: Cannot deserialize value of type `java.lang.Long` from String "{word}": not a valid value
        dial tcp {ip}:{int}: connect: connection refused
        dial tcp {ip}:{int}: i/o timeout
        dial tcp: lookup {host} on {ip}:53: no such host
        dial tcp: lookup {host} on {ip}:53: server misbehaving
        Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)
        Get "{url}": EOF
        Post "{url}": net/http: TLS handshake timeout
        Post "{url}": x509: certificate signed by unknown authority
        context deadline exceeded
        context canceled
        strconv.Atoi: parsing "{word}": invalid syntax
        strconv.ParseFloat: parsing "{word}": value out of range
        json: cannot unmarshal string into Go struct field Order.total of type int64
        json: cannot unmarshal number into Go struct field Order.note of type string
        open {path}: no such file or directory
        open {path}: permission denied
        sql: no rows in result set
        pq: relation "sessions" does not exist
        runtime error: index out of range [{int}] with length {int}
        runtime error: invalid memory address or nil pointer dereference
        rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp {ip}:{int}: connect: connection refused"
        rpc error: code = NotFound desc = order {uuid} not found
        rpc error: code = NotFound desc = customer {uuid} not found
        rpc error: code = DeadlineExceeded desc = context deadline exceeded after {span}
        keyNotFound(CodingKeys(stringValue: "customer", intValue: nil), Swift.DecodingError.Context(codingPath: [], debugDescription: "No value associated with key", underlyingError: nil))
        keyNotFound(CodingKeys(stringValue: "amount", intValue: nil), Swift.DecodingError.Context(codingPath: [], debugDescription: "No value associated with key", underlyingError: nil))
        Error Domain=NSURLErrorDomain Code=-1001 "The request timed out."
        Error Domain=NSURLErrorDomain Code=-1003 "A server with the specified hostname could not be found."
        Error Domain=NSCocoaErrorDomain Code=260 "The file couldn't be opened because there is no such file."
        NIOConnectionError(host: "{host}", port: {int}, dnsAError: nil, dnsAAAAError: nil, connectionErrors: [])
        HTTPClientError.connectTimeout
        HTTPClientError.remoteConnectionClosed
        Declined(reason: "stolen card {int}")
        Declined(reason: "limit of a{small}")
        No such customer: '{stripe:cus}'
        No such payment_intent: '{stripe:pi}'
        No such subscription: '{stripe:sub}'
        No such price: '{stripe:price}'
        Invalid API Key provided: {stripe:sk_live}
        Your card was declined. (request {stripe:req})
        Your card has insufficient funds. (request {stripe:req})
        This PaymentIntent's amount could not be updated because it has a status of succeeded: {stripe:pi}
        Customer {stripe:cus} has no attached payment source
        Idempotency key {uuid} was used with other parameters
        Request rate limit exceeded. request-id: {stripe:req}
        An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist. Key: {path}
        An error occurred (AccessDenied) when calling the PutObject operation: Access Denied
        An error occurred (SlowDown) when calling the PutObject operation: Please reduce your request rate. RequestId: {aws}
        NoSuchBucket: The specified bucket does not exist, RequestId: {aws}, HostId: {base64}
        RequestTimeTooSkewed: The difference between the request time and the current time is too large. {time}
        InvalidPart: One or more of the specified parts could not be found. UploadId {base62}
        S3 answered 503 for {path}, request {aws}
        550 5.1.1 <{email}>: Recipient address rejected: User unknown
        550 5.7.1 <{email}>: Relay access denied
        452 4.2.2 <{email}>: Mailbox full
        421 4.7.0 {ip} Too many connections from your host, try again later {base62} - gsmtp
        451 4.3.0 {hex12}: Temporary lookup failure
        554 5.7.1 Message rejected under suspicion of spam; queue id {hex12}
        535 5.7.8 Authentication credentials invalid
        server {host} did not offer STARTTLS
        SERVFAIL looking up {host}
        NXDOMAIN: {host}
        DNS timed out asking {ip}
        order {ulid} is already paid
        order {nanoid} is not found
        session {nanoid} has expired
        job {int} of tenant {slug} exceeded its quota of {int} pages
        checksum of {hash} is wrong, expected {hash}
        commit {hash} is not on the branch main
        upload {uuidplain} was cut off after {int} of {int} bytes
        lease {uuid} was lost at {time}
        token expired at {time}
        webhook {uuid} answered 410
        webhook {uuid} answered with a redirect
        timed out: after {span}
        throttled (429): retry after {int} seconds
        user '{word}' is locked
        file "{word}.pdf" is encrypted
        file "{word}.pdf" is damaged
        """#
}
