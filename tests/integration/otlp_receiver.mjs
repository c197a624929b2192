// An OpenTelemetry collector for tests: decodes requests with the message types that npm's OTLP exporter generates from
// opentelemetry-proto, and writes each accepted one to a file as a line of JSON.
//
// usage: node otlp_receiver.mjs NODE_MODULES FILE PORT [CERT KEY]    prints the port it listens on; with a certificate https
//
// POST /control sets the behaviour: {"status": 503, "headers": {…}, "body": "text", "cut": true, "hang": true, "partial": 3, "times": 2}
// applies to the next `times` requests (default: all). {"limit": 1000} refuses longer bodies, {"token": "Bearer …"} other tokens. GET /control answers with the number of requests so far.
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, file, port, cert, key] = process.argv.slice(2);
const generated = path.resolve(modules, "@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js");
const { collector } = createRequire(import.meta.url)(generated).opentelemetry.proto;
const messages = {
  "/v1/traces": [collector.trace.v1.ExportTraceServiceRequest, collector.trace.v1.ExportTraceServiceResponse, "rejectedSpans"],
  "/v1/metrics": [collector.metrics.v1.ExportMetricsServiceRequest, collector.metrics.v1.ExportMetricsServiceResponse, "rejectedDataPoints"],
  "/v1/logs": [collector.logs.v1.ExportLogsServiceRequest, collector.logs.v1.ExportLogsServiceResponse, "rejectedLogRecords"],
};

// Ids in hexadecimal, 64-bit integers as strings.
function plain(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  if ("low" in value && "high" in value) return value.toString();
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

let behaviour = {};
let requests = 0;
function receive(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => answer(request, response, Buffer.concat(chunks)));
}
const server = cert ? https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, receive) : http.createServer(receive);

function answer(request, response, body) {
  if (request.url === "/control") {
    if (request.method === "POST") behaviour = JSON.parse(body);
    return response.end(JSON.stringify({ requests }));
  }
  ++requests;
  const now = behaviour;
  if (now.times !== undefined && --now.times <= 0) behaviour = {};
  if (now.hang) return;
  if (now.cut) return request.socket.destroy();
  if (now.status) return response.writeHead(now.status, now.headers ?? {}).end(now.body ?? "");
  if (now.limit !== undefined && body.length > now.limit) return response.writeHead(413).end();
  if (now.token !== undefined && request.headers.authorization !== now.token) return response.writeHead(401).end();
  const [Request, Response, rejected] = messages[request.url];
  const line = { path: request.url, headers: request.headers, raw: body.toString("latin1"), ...plain(Request.decode(body)) };
  fs.appendFileSync(file, JSON.stringify(line) + "\n");
  const partial = now.partial ? { partialSuccess: { [rejected]: now.partial, errorMessage: "not these" } } : {};
  response.writeHead(200, { "content-type": "application/x-protobuf" });
  response.end(Response.encode(Response.fromObject?.(partial) ?? partial).finish());
}

server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
