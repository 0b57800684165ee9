import { ThroughlineError } from '../../core/errors.ts';
import { INTERFACE, INTERFACE_HEADER } from '../../wire/operations/operation.ts';
import { errorCodeOf, PROBLEM_CODES, type ProblemCode } from '../../wire/problem-codes.ts';
import type { Incoming, Transport } from './transport.ts';

/** The server did not answer, or says that it is about to end: it may be back soon. */
export class Away extends Error {
  /** It is certain that nothing was done. */
  readonly undone: boolean;

  constructor(message: string, options: { undone: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.undone = options.undone;
  }
}

/** Of something that ends TLS, and has no server behind it at the moment. */
const GATEWAY = [502, 503, 504];

/** Throws what an answer amounts to, unless it is a good one. */
export async function checkAnswer(answer: Incoming, { where }: Transport): Promise<void> {
  const spoken = answer.header(INTERFACE_HEADER);
  if (spoken === null) {
    if (GATEWAY.includes(answer.status)) throw new Away(`status ${answer.status}`, { undone: false });
    throw new ThroughlineError('unreachable', `What answers at ${where} is not a Throughline server.`, {
      hint: 'Look at the address; "throughline serve" prints its own.',
    });
  }
  if (spoken !== INTERFACE) throw otherInterface(where, spoken);
  if (answer.status < 300) return;
  const { code, detail, hint } = problemIn(await answer.text());
  if (code === 'closed') throw new Away('it is about to end', { undone: true });
  if (code === 'too_many') throw new Away('it has too many readers', { undone: true });
  if (code === 'unauthenticated') throw unknownToken(where);
  throw new ThroughlineError(errorCodeOf(code), detail, hint === undefined ? {} : { hint });
}

function otherInterface(where: string, spoken: string): ThroughlineError {
  const isOlder = Number(spoken) < Number(INTERFACE);
  const message =
    `The server at ${where} is ${isOlder ? 'older' : 'newer'} than this client: ` +
    `it speaks interface ${spoken}, and this client speaks interface ${INTERFACE}.`;
  const hint = isOlder
    ? 'Update Throughline on the server and restart it: a running server keeps its old version.'
    : 'Update Throughline here to the version of the server.';
  return new ThroughlineError('unreachable', message, { hint });
}

function problemIn(text: string): { code: ProblemCode; detail: string; hint?: string } {
  try {
    const problem = JSON.parse(text);
    if (PROBLEM_CODES.includes(problem.code) && typeof problem.detail === 'string') return problem;
  } catch {
    // Not even JSON: cut off, or of something in between.
  }
  return { code: 'internal', detail: 'The server failed, and did not say why.' };
}

function unknownToken(where: string): ThroughlineError {
  return new ThroughlineError('refused', `The server at ${where} does not know this token.`, {
    hint:
      'Set THROUGHLINE_TOKEN to what the file server/token of its data home holds, or to a key that ' +
      '"throughline keys create" has made there.',
  });
}

export function unreachable(where: string, why: Error): ThroughlineError {
  return new ThroughlineError('unreachable', `The server at ${where} does not answer (${causeOf(why)}).`, {
    hint: 'See whether it runs: "throughline serve" starts it.',
    cause: why,
  });
}

/** Whether that is so because nothing listens there. */
export function nobodyThere(error: unknown): boolean {
  return error instanceof ThroughlineError && error.cause instanceof Away && error.cause.undone;
}

/** After a request whose reply was lost, and which must not be made twice. */
export function unknownOutcome(where: string, why: Error): ThroughlineError {
  return new ThroughlineError('unreachable', `The server at ${where} went away before it had answered.`, {
    hint: 'It may have done what it was asked, or not: look before you ask again.',
    cause: why,
  });
}

export function closed(): ThroughlineError {
  return new ThroughlineError('closed', 'Throughline is closed.');
}

/** Nobody was there to hear it: of a port or a socket without a listener. */
const UNHEARD = ['ECONNREFUSED', 'ENOENT', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH'];

/** A request without an answer, by whichever transport: what is known of it. */
export function lost(error: unknown): Away {
  const code = codeOf(error) ?? codeOf((error as Error).cause);
  const message = code ?? (error instanceof Error ? error.message : String(error));
  return new Away(message, { undone: code !== null && UNHEARD.includes(code), cause: error });
}

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : null;
}

function causeOf(why: Error): string {
  return why.message.replace(/\.$/, '');
}
