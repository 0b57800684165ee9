import { RELOAD_HINT, ThroughlineError } from '../../../core/errors.ts';
import { inSeconds } from '../../../core/limits/time-limits.ts';
import { INTERFACE, INTERFACE_HEADER } from '../../../wire/operations/operation.ts';
import { errorCodeOf, PROBLEM_CODES, type ProblemCode } from '../../../wire/problem-codes.ts';
import type { Incoming, Transport } from './transport.ts';

/** The server did not answer, or is stopping. It may be back soon. */
export class ServerAway extends Error {
  /** It is certain that the server did nothing. */
  readonly nothingDone: boolean;
  /** How long its answer was waited for in vain. */
  readonly silentMs: number;

  constructor(message: string, options: { nothingDone: boolean; silentMs?: number; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.nothingDone = options.nothingDone;
    this.silentMs = options.silentMs ?? 0;
  }
}

/** The answers of a reverse proxy whose server is away. */
const GATEWAY = [502, 503, 504];

/** Throws the error that an answer stands for, unless it is a success. */
export async function checkAnswer(answer: Incoming, { where, inPage = false }: Transport): Promise<void> {
  const theirs = answer.header(INTERFACE_HEADER);
  if (theirs === null) {
    if (GATEWAY.includes(answer.status)) throw new ServerAway(`status ${answer.status}`, { nothingDone: false });
    throw new ThroughlineError('unreachable', `The program that answers${at(where)} is not a Throughline server.`, {
      hint: 'Check the address. "throughline serve" prints the right one.',
    });
  }
  if (theirs !== INTERFACE) throw inPage ? otherPage(where, theirs) : otherInterface(where, theirs);
  if (answer.status < 300) return;
  const text = await answer.text();
  const { code } = problemIn(text);
  if (code === 'closed') throw new ServerAway('it is stopping', { nothingDone: true });
  if (code === 'too_many') throw new ServerAway('it has too many readers', { nothingDone: true });
  if (code === 'unauthenticated') throw where === '' ? signedOut() : unknownToken(where);
  throw errorIn(text);
}

/** The error that a problem stands for. */
export function errorIn(text: string): ThroughlineError {
  const { code, detail, hint } = problemIn(text);
  return new ThroughlineError(errorCodeOf(code), detail, { hint });
}

function otherInterface(where: string, theirs: string): ThroughlineError {
  const isOlder = Number(theirs) < Number(INTERFACE);
  const message =
    `The server${at(where)} is ${isOlder ? 'older' : 'newer'} than this client: ` +
    `it has interface ${theirs}, and this client has interface ${INTERFACE}.`;
  const hint = isOlder
    ? 'Update Throughline on the server and restart it: a running server keeps its old version.'
    : 'Update Throughline here to the version of the server.';
  return new ThroughlineError('unreachable', message, { hint });
}

/** In a page, nobody can update the client: the page brings it along. */
function otherPage(where: string, theirs: string): ThroughlineError {
  const message =
    `This page is ${Number(theirs) < Number(INTERFACE) ? 'newer' : 'older'} than the server${at(where)}: ` +
    `it has interface ${INTERFACE}, and the server has interface ${theirs}.`;
  return new ThroughlineError('unreachable', message, { hint: RELOAD_HINT });
}

function problemIn(text: string): { code: ProblemCode; detail: string; hint?: string } {
  try {
    const problem = JSON.parse(text);
    if (PROBLEM_CODES.includes(problem.code) && typeof problem.detail === 'string') return problem;
  } catch {
    // Not JSON: incomplete, or from a proxy.
  }
  return { code: 'internal', detail: 'The server failed and gave no reason.' };
}

/** A page of the server itself has no address to name. */
function at(where: string): string {
  return where === '' ? '' : ` at ${where}`;
}

/** A page of the server itself has no token, but a cookie. */
function signedOut(): ThroughlineError {
  return new ThroughlineError('refused', 'This browser is not signed in any more.', {
    hint: 'Open a new sign-in link in it: "throughline link" prints one.',
  });
}

function unknownToken(where: string): ThroughlineError {
  return new ThroughlineError('refused', `The server${at(where)} does not accept this token.`, {
    hint:
      'Set THROUGHLINE_TOKEN (in a program: "token") to the content of server/token in its data home, or to a key from ' +
      '"throughline keys create" on that machine.',
  });
}

export function unreachable(where: string, why: Error): ThroughlineError {
  return new ThroughlineError('unreachable', `The server${at(where)} does not answer (${causeOf(why)}).`, {
    hint: 'Check whether it runs. "throughline serve" starts it.',
    cause: why,
  });
}

/** For a page of another origin, which may not read answers. `answers`: there is one. */
export function hiddenFrom(where: string, { page, answers }: { page: string; answers: boolean }): ThroughlineError {
  if (!answers) {
    const message = `The server${at(where)} does not answer requests from the page ${page}.`;
    const hint =
      'Check whether it runs: "throughline serve" starts it. If it does, the browser may block the page: a page from the internet ' +
      'needs permission to reach this machine or its network, and an https page cannot call http on another machine.';
    return new ThroughlineError('unreachable', message, { hint });
  }
  const allow =
    page === 'null'
      ? 'A page from a file or in a sandboxed frame has no origin that can be allowed: serve it over http. Or'
      : `Start the server with "--allow-origin ${page}" and use a key. Or`;
  return new ThroughlineError(
    'refused',
    `Something answers at ${where}, but this page may not read it: the server does not allow the origin ${page}.`,
    { hint: `${allow} let the page call its own server, and let that server call Throughline (docs/browsers.md).` },
  );
}

/** The server does not answer now, and may be back soon. `giveUpMs`: infinite if it is never given up. */
export function away(where: string, why: Error, giveUpMs: number): ThroughlineError {
  const tried = Number.isFinite(giveUpMs) ? `for ${inSeconds(Math.round(giveUpMs / 1000))}` : 'until it answers';
  return new ThroughlineError('unreachable', `The connection to ${where || 'the server'} was lost (${causeOf(why)}).`, {
    hint: `The server is tried again ${tried}; prompts that it has accepted are stored.`,
    cause: why,
  });
}

/** Whether a server is unreachable because nothing listens there. */
export function nothingListens(error: unknown): boolean {
  return error instanceof ThroughlineError && error.cause instanceof ServerAway && error.cause.nothingDone;
}

/** The reply to a request was lost, and the request must not be repeated. */
export function unknownOutcome(where: string, why: Error): ThroughlineError {
  return new ThroughlineError(
    'unreachable',
    `The connection to ${where || 'the server'} was lost before the server answered.`,
    {
      hint: 'The request may have been carried out or not. Check before you repeat it.',
      cause: why,
    },
  );
}

export function stoppedWaiting(cause: unknown): ThroughlineError {
  return new ThroughlineError('cancelled', 'The caller has stopped waiting for the answer.', { cause });
}

export function closed(): ThroughlineError {
  return new ThroughlineError('closed', 'Throughline is closed.');
}

/** Nothing listens on the port or the socket, so the request was never received. */
const NOT_RECEIVED = ['ECONNREFUSED', 'ENOENT', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH'];

/** Describes a request without an answer, for any transport. */
export function lost(error: unknown): ServerAway {
  const code = codeOf(error) ?? codeOf((error as Error).cause);
  const message = code ?? (error instanceof Error ? error.message : String(error));
  return new ServerAway(message, { nothingDone: code !== null && NOT_RECEIVED.includes(code), cause: error });
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : null;
}

function causeOf(why: Error): string {
  return why.message.replace(/\.$/, '');
}
