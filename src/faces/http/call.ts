import { isAbsolute } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { HealthReport } from '../../core/health.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Insight, SignInLink } from '../../ports/server.ts';
import type { Tasks } from '../../ports/tasks.ts';
import type { ClientTracker } from '../../ports/tracker.ts';
import type { OPERATIONS, PartOf } from '../../wire/operations.ts';
import type { OperationName, ParamsOf } from '../../wire/routes.ts';
import { checkScope, type Principal } from './access/authenticate.ts';
import type { AskedGrant } from './access/sign-in.ts';
import type { Feed } from './streams/event-stream.ts';
import type { OpenStreams } from './streams/open-streams.ts';
import type { Waiting } from './streams/readers.ts';

/** One request of an operation, checked. */
interface Call<N extends OperationName> {
  /** On behalf of the caller. */
  readonly engine: Engine;
  /** On behalf of the caller. */
  readonly tasks: Tasks;
  /** The same; null: this server has none. */
  readonly board: Tasks | null;
  readonly streams: OpenStreams;
  /** On behalf of the caller; null: this server has none. */
  readonly tracker: ((holder: string) => ClientTracker) | null;
  /** Throws `forbidden` for more than the caller has. */
  readonly newLink: (asked: AskedGrant) => Promise<SignInLink>;
  readonly health: () => HealthReport;
  /** Null: this server has none. */
  readonly insight: Insight | null;
  readonly principal: Principal;
  /** Whether the caller may see what is about all owners. */
  readonly isOperator: boolean;
  /** How a shell of this machine runs our commands for this data. */
  readonly command: string;
  readonly params: ParamsOf<N>;
  readonly query: PartOf<N, 'query'>;
  readonly body: PartOf<N, 'body'>;
  /** For work that may take a while. The signal aborts when the client has gone, and when the server begins to stop. */
  readonly waiting: Waiting;
  /** The number of the last event that the reader has; null: not given. */
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

/** A mode or a config option may let the agent act without asking, as an answer to its questions does. */
export function checkChoices(principal: Principal, { mode, config }: { mode?: unknown; config?: unknown }): void {
  if (mode !== undefined) checkScope(principal, 'approve', 'Choosing a mode');
  if (config !== undefined) checkScope(principal, 'approve', 'Choosing config options');
}

/** A relative path would depend on the working directory of the server, which no caller knows. */
export function checkAbsolute(cwd: string, place = ''): void {
  if (isAbsolute(cwd)) return;
  throw new ThroughlineError('invalid', `${place}The working directory ${JSON.stringify(cwd)} is not absolute.`, {
    hint: 'A server needs an absolute path.',
  });
}
