import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { Frame } from './api.ts';

const UNPACK: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const bytes = Buffer.concat(await request.toArray());
  const unpack = UNPACK[request.headers['content-encoding'] ?? ''];
  return unpack ? unpack(bytes) : bytes;
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Sends half of the answer, then closes the connection. */
export function sendHalf(response: ServerResponse, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.write(text.slice(0, text.length / 2));
  cutOff(response);
}

/** Rejects when the caller disconnects. */
export async function sendFrames(response: ServerResponse, frames: readonly Frame[], signal: AbortSignal) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  for (const { event, data, waitMs = 0 } of frames) {
    await pause(waitMs, signal);
    const name = event === undefined ? '' : `event: ${event}\n`;
    response.write(`${name}data: ${JSON.stringify(data)}\n\n`);
  }
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal });
}

/**
 * Closes the connection before the answer is complete. Not by `destroy`: after a reset the caller drops what it has not read yet, but it
 * should get a part of the answer.
 */
export function cutOff(response: ServerResponse): void {
  response.socket?.end();
}

/** The frames up to the middle of the text, so that the agent begins to show the answer. */
export function firstHalf(frames: readonly Frame[]): Frame[] {
  const texts = frames.flatMap(({ waitMs }, index) => (waitMs === undefined ? [] : index));
  const middle = texts[Math.ceil(texts.length / 2) - 1] ?? Math.floor(frames.length / 2);
  return frames.slice(0, middle + 1);
}
