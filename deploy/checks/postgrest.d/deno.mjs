// Runs an Edge Function in Node with the two things of Deno that it uses: Deno.env and Deno.serve. It prints the port.
import http from "node:http";
import { pathToFileURL } from "node:url";

globalThis.Deno = {
    env: { get: (name) => process.env[name] },
    serve(handle) {
        const server = http.createServer(async (request, response) => {
            const parts = [];
            for await (const part of request) parts.push(part);
            const answer = await handle(new Request(`http://127.0.0.1${request.url}`, {
                method: request.method, headers: request.headers, body: parts.length ? Buffer.concat(parts) : undefined,
            }));
            response.writeHead(answer.status, Object.fromEntries(answer.headers));
            response.end(Buffer.from(await answer.arrayBuffer()));
        });
        server.listen(0, "127.0.0.1", () => console.log(server.address().port));
    },
};
await import(pathToFileURL(process.argv[2]).href);
