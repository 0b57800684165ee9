import { connect as connectBy } from './clients/http/connect.ts';
import { fetchTransport } from './clients/http/connection/transport.ts';
import { httpLiveStreams } from './clients/http/live.ts';
import { HttpServer } from './clients/http/server.ts';
import { HttpTasks } from './clients/http/tasks.ts';
import { httpTrackers } from './clients/http/tracker.ts';
import { ThroughlineError } from './core/errors.ts';
import {
  checkBoolean,
  checkNoPassword,
  checkOptions,
  checkText,
  checkTokenAddress,
  shown,
} from './core/input/arguments.ts';
import { checkOnPermission, type OnPermission } from './library/answering.ts';
import { ThroughlineClient } from './library/client.ts';
import type { Server } from './ports/server.ts';

/* `throughline/client`: Throughline through a server, in browsers and everywhere else with `fetch`. */

/**
 * Which server, and who asks.
 *
 * @example
 * import { type ClientOptions, connect } from 'throughline/client';
 *
 * const options: ClientOptions = { url: 'https://agents.example.org', token };
 * await using tl = await connect(options);
 */
export interface ClientOptions {
  /** The address of the server: `https://agents.example.org`. Pages of that server may leave it out. */
  readonly url?: string | undefined;
  /** A key, or the token of the data home. A browser that is signed in needs none. */
  readonly token?: string | undefined;
  /** Send the token by plain http to another machine, where everybody on the way can read it. Left out: no. */
  readonly plainHttp?: boolean | undefined;
  /** With a key that has the scope `act-as`, or the token of the data home: the owner to act for; left out: the owner of the credentials. */
  readonly owner?: string | undefined;
  /** Answers the questions of agents. Left out: another client answers them, or they are denied after a while. */
  readonly onPermission?: OnPermission | undefined;
}

/**
 * Throws `unreachable` when there is no such server or it has another interface, and `refused` for invalid credentials.
 *
 * @example
 * import { connect } from 'throughline/client';
 *
 * await using tl = await connect({ url: 'https://agents.example.org', token });
 * for await (const text of tl.conversation('ticket-4711').send('Hello').textStream) console.log(text);
 */
export async function connect(options: ClientOptions = {}): Promise<ConnectedClient> {
  checkOptions(options, { url: true, token: true, plainHttp: true, owner: true, onPermission: true }, 'connect()');
  checkOnPermission(options.onPermission);
  const { token, plainHttp = false, owner, onPermission } = options;
  if (token !== undefined) checkText(token, 'token', LONGEST_TOKEN);
  if (owner !== undefined) checkText(owner, 'owner');
  checkBoolean(plainHttp, 'plainHttp');
  const url = checkUrl(options.url);
  if (token !== undefined) checkTokenAddress(absolute(url), plainHttp, '"plainHttp"');
  const engine = await connectBy({ transport: fetchTransport(url), token: token ?? null, owner });
  const { caller } = engine;
  const [tasks, lives] = [new HttpTasks(caller, null), httpLiveStreams(caller)];
  const tl = new ThroughlineClient(engine, tasks, httpTrackers(caller), lives, new HttpServer(caller), onPermission);
  return tl as ConnectedClient;
}

const LONGEST_TOKEN = 4_096;

const absolute = (address: string) => new URL(address, pageLocation()?.href);

/** Undefined: this code does not run in a page. */
function pageLocation(): { readonly href: string } | undefined {
  return (globalThis as { location?: { readonly href: string } }).location;
}

/** In pages, an address may be relative to that of the page, or left out. */
function checkUrl(url: unknown): string {
  const location = pageLocation();
  const address = url ?? (location === undefined ? undefined : '');
  const isAddress = typeof address === 'string' && URL.canParse(address, location?.href);
  const parsed = isAddress ? absolute(address) : null;
  if (!isAddress || parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new ThroughlineError(
      'invalid',
      `"url" must be the address of a server, such as https://agents.example.org, not ${shown(url)}.`,
    );
  }
  checkNoPassword(parsed);
  return address;
}

/**
 * Throughline through a server, which can also be asked about itself.
 *
 * @example
 * import { type ConnectedClient, connect } from 'throughline/client';
 *
 * const connected: ConnectedClient = await connect({ url: 'https://agents.example.org', token });
 * const { owner, scopes } = await connected.server.whoAmI();
 */
export type ConnectedClient = ThroughlineClient & { readonly server: Server };

export { ERROR_CODES, ThroughlineError } from './core/errors.ts';
export { TurnError } from './library/answer.ts';
export type { ThroughlineClient } from './library/client.ts';
export type * from './library/public.ts';
export { statusOf } from './wire/problem-codes.ts';
