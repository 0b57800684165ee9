/** One request, as it is sent. */
export interface Outgoing {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly signal: AbortSignal;
}

/** An answer. Its body is read once: as text, or chunk by chunk, on demand. */
export interface Incoming {
  readonly status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  chunks(): AsyncIterable<Uint8Array>;
}

/** A way to the server. `send` rejects when there was no answer. */
export interface Transport {
  /** The server's address, for people. */
  readonly where: string;
  /** Whether a page of a browser uses it. Left out: no. */
  readonly inPage?: boolean;
  send(request: Outgoing): Promise<Incoming>;
  /** In a page of another origin: whether anything answers there, although the page may not read it. Null: anywhere else. Never rejects. */
  lookFromPage?(): Promise<{ readonly page: string; readonly answers: boolean } | null>;
  close(): void;
}

/** By `fetch`: in pages, and wherever else it is available. */
export function fetchTransport(url: string): Transport {
  const base = url.replace(/\/+$/, '');
  return {
    where: base,
    inPage: (globalThis as { location?: unknown }).location !== undefined,
    async send({ path, ...request }) {
      const response = await fetch(`${base}${path}`, { ...request, cache: 'no-store', redirect: 'error' });
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        text: () => response.text(),
        chunks: () => chunksOf(response.body),
      };
    },
    lookFromPage: () => lookFromPage(base),
    close() {},
  };
}

const PROBE_MS = 5_000;

/**
 * For a page, an answer that it may not read looks like no answer. The answer to a `no-cors` request cannot be read either, but such a
 * request fails only if nothing answers, because the server lets every page load `/livez`.
 */
async function lookFromPage(base: string): Promise<{ page: string; answers: boolean } | null> {
  // In a sandboxed frame, only the global `origin` shows that there is none.
  const { location, origin: page } = globalThis as { location?: { readonly href: string }; origin?: string };
  if (location === undefined || page === undefined || new URL(base, location.href).origin === page) return null;
  try {
    const signal = AbortSignal.timeout(PROBE_MS);
    await fetch(`${base}/livez`, { mode: 'no-cors', credentials: 'omit', cache: 'no-store', signal });
    return { page, answers: true };
  } catch {
    return { page, answers: false };
  }
}

/** Not every browser can iterate a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      yield value;
    }
  } finally {
    await reader?.cancel().catch(() => {}); // it rejects for a stream that has failed
  }
}
