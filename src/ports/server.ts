import type { HealthReport } from '../core/health.ts';
import type { PageScope, Scope } from '../core/key.ts';
import type { Agent } from './agent.ts';
import type { PublicFinding } from './doctor.ts';
import type { SandboxesDiskUse } from './engine/sandboxes.ts';
import type { Engine } from './engine.ts';
import type { OpenSandbox } from './sandbox.ts';
import type { StoreMeasure } from './store/census.ts';
import type { HeldSession } from './store/leases.ts';

/* What the command line can start (a server, the demo), and what a server reports about itself. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** The options for starting the server of a data home. */
export interface ServeRequest {
  /** Left out: the usual data home. */
  readonly home?: string;
  /** Left out: the usual settings file. */
  readonly config?: string;
  /** Where conversations are kept; left out: as the environment and the settings say. */
  readonly store?: string;
  /** The owner that a signed-in browser acts for, unless its link names another; left out: `local`. */
  readonly as?: string;
  readonly host: string;
  /** Null: the usual port, or another free one. */
  readonly port: number | null;
  readonly publicUrl: string | undefined;
  /** Whether to trust the client address that a proxy in front of it reports. */
  readonly trustProxy: boolean;
  /** Other origins whose pages may call it, with a key. */
  readonly allowOrigins: readonly string[];
  readonly logLevel: LogLevel;
  /** Whether to prepare a demo conversation. */
  readonly demo: boolean;
  /** How a shell here runs our commands for the same data: `npx throughline --home /data`. The page prints its commands so. */
  readonly command: string;
}

/** A running server. */
export interface Serving {
  readonly engine: Engine;
  readonly home: string;
  readonly url: string;
  /** Null: there is none. */
  readonly socket: string | null;
  /** Null: none was asked for. */
  readonly demo: DemoConversation | null;
  /** A one-time link to its page, for its owner and with every scope. Throws when the store cannot be written. */
  newLink(): Promise<string>;
  /** Gives running turns `graceMs` to end. Idempotent. */
  close(options: { graceMs: number }): Promise<void>;
}

/** A conversation to look at. The model that answers in it is scripted. */
export interface DemoConversation {
  readonly key: string;
  readonly agent: string;
  readonly title: string;
  /** What is real in it and what is not, for people. */
  readonly about: string;
}

/** Signs a browser in, once. */
export interface SignInLink {
  readonly link: string;
  /** When it can no longer be opened. */
  readonly expiresAt: number;
  /** Whom the browser acts for, and what it may do. */
  readonly owner: string;
  readonly scopes: readonly PageScope[];
}

/**
 * What a server reports about itself and about the caller. Every verb may be repeated.
 *
 * @example
 * const health = await tl.server?.health();
 * console.log(health?.status);
 */
export interface Server {
  /** The same for another owner: its health has the leases of that owner. */
  as(owner: string): Server;
  /** Who the caller is, and what it may do. Throws `refused` when its credentials are no longer valid. */
  whoAmI(): Promise<Me>;
  /** The health of the server. Needs the scope `admin`. */
  health(): Promise<ServerHealth>;
  /** What `throughline doctor` finds. Needs `admin`, for the owner that the server was started for. Reads the whole store, so it may take minutes. */
  examine(): Promise<readonly PublicFinding[]>;
}

/**
 * The caller of a server.
 *
 * @example
 * const me = await tl.server?.whoAmI();
 * console.log(me?.owner, me?.scopes);
 */
export interface Me {
  readonly owner: string;
  /** `token`, `page`, or `key ID`. */
  readonly by: string;
  readonly scopes: readonly Scope[];
  /** The other owners that the caller can act for: `*`, or a prefix as `app:*`. Null: none. */
  readonly owners: string | null;
  /** Whether it has the token, or credentials of the owner that the server was started for. Only operators see what is about all owners. */
  readonly isOperator: boolean;
  /** How a shell on the server's machine runs our commands for its data: `npx throughline --home /data`. Null: only operators see it. */
  readonly command: string | null;
  /** When the credentials expire; null: never. */
  readonly expiresAt: number | null;
}

/**
 * The health of a server, and why something does not work.
 *
 * @example
 * const health = await tl.server?.health();
 * for (const { message } of health?.reasons ?? []) console.log(message);
 */
export interface ServerHealth extends HealthReport {
  /** Left out: the server does not have them. */
  readonly details?: HealthDetails & { readonly version: string };
}

/** A value that cannot be read now is null. */
export interface HealthDetails {
  readonly store: StoreMeasure | null;
  readonly sandboxes: { readonly root: string; readonly count: number } | null;
  /** Of the caller's sandboxes, as last measured. */
  readonly diskUse: SandboxesDiskUse | null;
  /** The caller's, at most 500. */
  readonly leases: readonly PublicLease[] | null;
  /** How many more there are. */
  readonly moreLeases: number | null;
}

/** What a server reports about itself to those who operate it. */
export interface Insight {
  readonly version: string;
  /** Fast. */
  look(owner: string): Promise<HealthDetails>;
  /** What the doctor finds. Reads everything, in another process. Callers at the same time share one examination. Throws `refused`. */
  examine(): Promise<readonly PublicFinding[]>;
}

/**
 * A conversation that somebody holds.
 *
 * @example
 * const health = await tl.server?.health();
 * for (const { title, holder } of health?.details?.leases ?? []) console.log(title, holder);
 */
export interface PublicLease {
  readonly conversationId: string;
  readonly key: string | null;
  readonly title: string;
  /** For people: `this server`, `another process`, or `client NAME`. */
  readonly holder: string;
  /** When the lease ends unless it is renewed. */
  readonly until: number;
  /** Open turns. */
  readonly open: number;
  /** The sessions whose agents run. */
  readonly sessions: readonly HeldSession[];
}

export interface DemoRequest {
  readonly agent: 'scripted' | 'claude';
  /** Use the person's own model, which may cost money, instead of the stand-in. */
  readonly live: boolean;
  /** The data home that agents were installed in; left out: the usual one. The demo has a temporary one beside it. */
  readonly home: string | undefined;
  /** The person's settings file; left out: the usual one. */
  readonly config: string | undefined;
}

/** What the demo works with: an engine, and its agent, which the demo also uses directly for comparison. */
export interface DemoParts {
  readonly engine: Engine;
  readonly agent: Agent;
  /** What is real here and what is not, in sentences for people. */
  readonly about: string;
  /** Where the agent works, with Throughline and without. Null: in a directory of its own. */
  readonly cwd: string | null;
  readonly sandbox: OpenSandbox;
  /** Where the agent keeps its sessions: files whose names begin with the session's id. */
  readonly sessionFiles: string;
  /** Kills the process that has a session of the agent, and returns its pid. Null: there is none. */
  killProcess(sessionId: string): Promise<number | null>;
  /** Ends what was started beside the engine, and removes the demo's data home. After the engine was closed. */
  close(): Promise<void>;
}
