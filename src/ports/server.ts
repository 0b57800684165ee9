import type { Engine } from './engine.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** What somebody who starts the server of a data home decides. */
export interface ServeRequest {
  /** Left out: the usual data home. */
  readonly home?: string;
  /** Left out: the usual settings file. */
  readonly config?: string;
  /** The owner that a signed-in browser acts for; left out: `local`. */
  readonly as?: string;
  readonly host: string;
  /** Null: the usual port, or another free one. */
  readonly port: number | null;
  readonly publicUrl: string | undefined;
  /** Whether the proxy in front of it is believed which client it passes on. */
  readonly trustProxy: boolean;
  readonly logLevel: LogLevel;
  /** Whether to prepare a demo conversation. */
  readonly demo: boolean;
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
  newLink(): string;
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
  readonly expiresAt: number;
}
