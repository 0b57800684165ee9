import { isAbsolute } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { HealthReport } from '../../core/health.ts';
import type { Engine } from '../../ports/engine.ts';
import type { SignInLink } from '../../ports/server.ts';
import type { Tasks } from '../../ports/tasks.ts';
import type { OPERATIONS, PartOf } from '../../wire/operations.ts';
import type { OperationName, ParamsOf } from '../../wire/routes.ts';
import { checkScope, type Principal } from './access/authenticate.ts';
import type { Feed } from './streams/event-stream.ts';
import type { Waiting } from './streams/readers.ts';

/** One request of an operation, checked. */
interface Call<N extends OperationName> {
  /** On behalf of the caller. */
  readonly engine: Engine;
  /** On behalf of the caller. */
  readonly tasks: Tasks;
  /** Throws `forbidden` for another owner than that of this server. */
  readonly newLink: (owner: string) => SignInLink;
  readonly health: () => HealthReport;
  readonly principal: Principal;
  readonly params: ParamsOf<N>;
  readonly query: PartOf<N, 'query'>;
  readonly body: PartOf<N, 'body'>;
  /** For work that may take a while. The signal aborts when the client has gone, and when the server begins to stop. */
  readonly waiting: Waiting;
  /** The number of the last event that the reader has; null: it does not say. */
  readonly lastEventId: number | null;
}

/** Resolves with the value of the answer's schema, or with the values of a stream. Public values are read-only, and so are these. */
export type Handler<N extends OperationName> = (
  call: Call<N>,
) => Promise<(typeof OPERATIONS)[N] extends { stream: true } ? Feed : ReadOnly<PartOf<N, 'answer'>>>;

type ReadOnly<T> = T extends readonly (infer Item)[]
  ? readonly ReadOnly<Item>[]
  : T extends object
    ? { readonly [Field in keyof T]: ReadOnly<T[Field]> }
    : T;

/** Directories and native sessions belong to the machine, not to the owner: naming one needs the scope `admin`. */
export function checkMachine(principal: Principal, { cwd, session }: { cwd?: string; session?: string }): void {
  if (cwd !== undefined) {
    checkScope(principal, 'admin', 'Naming a directory');
    checkAbsolute(cwd);
  }
  if (session !== undefined) checkScope(principal, 'admin', 'Naming a native session');
}

/** A relative path would mean a directory below that of the server process, which no caller knows. */
export function checkAbsolute(cwd: string, place = ''): void {
  if (isAbsolute(cwd)) return;
  throw new ThroughlineError('invalid', `${place}The working directory ${JSON.stringify(cwd)} is not absolute.`, {
    hint: 'A server needs the whole path.',
  });
}
