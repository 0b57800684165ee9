import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { html } from 'hono/html';
import { notice } from './notice.ts';

/*
 * The page: the files that web/ is built into (scripts/page.js). They hold no data: the page reads it under `/v1`, as a signed-in
 * browser. `index.html` answers every address of the page, and browsers revalidate it each time. Files below `/assets` have a hash of
 * their content in their names, and browsers keep them. All files are read once and served from memory, so no address becomes a path.
 */

/** Only scripts, styles, pictures and connections of this server, and no inline code. Workers get the policy with their file. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = 'text/html; charset=utf-8';
const TYPES: Readonly<Record<string, string>> = {
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
};

/** The file endings of compressed copies in a build, by the name of the encoding in HTTP. The better one comes first. */
const ENCODINGS = { br: '.br', gzip: '.gz' } as const;
type Encoding = keyof typeof ENCODINGS;

interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Its compressed copies. A file that compression makes no smaller has none. */
  readonly compressed: Readonly<Partial<Record<Encoding, Uint8Array<ArrayBuffer>>>>;
}

/** An answer with one of the files, or a note that there is no page. */
export interface PageAnswer {
  readonly status: 200 | 304 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | string | null;
}

type Headers = (name: string) => string | undefined;

interface BuiltPageOptions {
  /** Whether a new build is read while the server runs, as in a checkout. In a package, the page must match its server. */
  readonly rereads: boolean;
}

/** Paths that change something or need credentials. All others are the same for everybody, and may be opened from anywhere. */
const GUARDED = /^\/(v1|enter|backup|metrics)(\/|$)/;

export function isOpenToAll(path: string): boolean {
  return !GUARDED.test(path);
}

/** Whether the page answers this address: a browser opens it, and nothing else is there. */
export function isOfPage(path: string, header: Headers): boolean {
  if (path === '/') return true;
  return isOpenToAll(path) && !path.startsWith('/assets/') && (header('accept') ?? '').includes('text/html');
}

/** The built page in a folder. It need not be there: a server without a page says how to build one. */
export class BuiltPage {
  readonly #folder: string;
  readonly #rereads: boolean;
  readonly #assets = new Map<string, PageFile>();
  #index: Promise<PageFile | null> = Promise.resolve(null);
  /** The build that was read. */
  #changedMs: number | null = null;

  /** Begins to read. */
  constructor(folder: string, { rereads }: BuiltPageOptions) {
    this.#folder = folder;
    this.#rereads = rereads;
    this.#index = this.#read();
    this.#index.catch(() => {}); // requests for the page get the error
  }

  /** The document, for every address of the page. */
  async document(header: Headers): Promise<PageAnswer> {
    if (this.#rereads || (await this.#known) === null) this.#index = this.#read();
    const index = await this.#index;
    return index === null ? NOT_BUILT : answerWith(index, header, 'no-cache');
  }

  /** A file below `/assets`; null: there is none of this name. */
  async asset(name: string, header: Headers): Promise<PageAnswer | null> {
    await this.#known;
    const file = this.#assets.get(name);
    return file === undefined ? null : answerWith(file, header, 'public, max-age=31536000, immutable');
  }

  /** The last one that was read; null: there is none, or it could not be read, and may be the next time. */
  get #known(): Promise<PageFile | null> {
    return this.#index.catch(() => null);
  }

  /** Null: there is no page. Files of an earlier build stay: pages that are open still ask for them. */
  async #read(): Promise<PageFile | null> {
    const before = this.#known;
    try {
      const { mtimeMs } = await stat(join(this.#folder, 'index.html'));
      if (mtimeMs === this.#changedMs) return before;
      const index = await readPageFile(this.#folder, 'index.html', []);
      const folder = join(this.#folder, 'assets');
      const names = await readdir(folder);
      const isCopy = (name: string) => Object.values(ENCODINGS).some((end) => name.endsWith(end));
      for (const name of names.filter((each) => !isCopy(each))) {
        this.#assets.set(name, await readPageFile(folder, name, names));
      }
      this.#changedMs = mtimeMs;
      return index;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return before; // not built, or just being replaced
    }
  }
}

async function readPageFile(folder: string, name: string, names: readonly string[]): Promise<PageFile> {
  const body = await readFile(join(folder, name));
  const compressed: Partial<Record<Encoding, Uint8Array<ArrayBuffer>>> = {};
  for (const [encoding, end] of Object.entries(ENCODINGS) as [Encoding, string][]) {
    if (names.includes(name + end)) compressed[encoding] = await readFile(join(folder, name + end));
  }
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { type: TYPES[extname(name)] ?? 'application/octet-stream', etag, body, compressed };
}

function answerWith({ type, etag, body, compressed }: PageFile, header: Headers, kept: string): PageAnswer {
  const headers = {
    etag,
    'cache-control': kept,
    'content-security-policy': POLICY,
    'cross-origin-opener-policy': 'same-origin',
    vary: 'Accept-Encoding',
  };
  if (matches(header('if-none-match'), etag)) return { status: 304, headers, body: null };
  const encoding = (Object.keys(ENCODINGS) as Encoding[]).find(
    (one) => compressed[one] !== undefined && accepts(header('accept-encoding'), one),
  );
  const bytes = encoding === undefined ? body : (compressed[encoding] ?? body);
  const about = { 'content-type': type, 'content-length': `${bytes.length}` };
  return {
    status: 200,
    headers: { ...headers, ...about, ...(encoding && { 'content-encoding': encoding }) },
    body: bytes,
  };
}

/** `*`, or a list that names the tag. A proxy that compresses marks it as weak. */
function matches(known: string | undefined, etag: string): boolean {
  const tags = (known ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

function accepts(given: string | undefined, encoding: Encoding): boolean {
  return (given ?? '').split(',').some((one) => {
    const [name = '', ...more] = one.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && !more.some((part) => /^q=0(\.0*)?$/.test(part));
  });
}

const NOT_BUILT: PageAnswer = {
  status: 503,
  ...notice(
    'The page is not built',
    html`<p>The server works; only its page is missing. In the folder of Throughline, run <code>npm run page</code>, and reload.</p>
<p>The command line works without it, and so does the HTTP interface: <a href="/reference">its reference</a>.</p>`,
  ),
};
