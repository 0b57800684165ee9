import { ThroughlineError } from 'throughline/client';

/** What the server says of itself to those who operate it (`GET /v1/health?details=true`). */
export interface ServerHealth {
  readonly status: 'ok' | 'degraded' | 'unready' | 'stopping';
  readonly reasons: readonly { readonly code: string; readonly message: string; readonly hint?: string }[];
  readonly details?: {
    readonly version: string;
    readonly store: StoreMeasure | null;
    readonly sandboxes: { readonly root: string; readonly count: number } | null;
    readonly leases: readonly Lease[] | null;
  };
}

export interface StoreMeasure {
  readonly bytes: number;
  readonly logBytes: number;
  readonly freeBytes: number;
  readonly commits: number;
  readonly commitMs: { readonly p50: number; readonly p95: number; readonly max: number } | null;
}

/** Who holds a conversation, and the sessions of it whose agents run. */
export interface Lease {
  readonly conversationId: string;
  readonly key: string | null;
  readonly title: string;
  readonly holder: string;
  readonly until: number;
  readonly open: number;
  readonly sessions: readonly {
    readonly id: string;
    readonly agent: string;
    readonly openedAt: number;
    readonly usedAt: number;
  }[];
}

/** What the doctor has found. */
export interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly problem: string;
  readonly remedy: string | null;
  readonly repairedBy: '--fix' | '--accept-loss' | null;
  readonly isNote: boolean;
}

export function readHealth(): Promise<ServerHealth> {
  return read('/v1/health?details=true');
}

/** Reads the whole store in another process, so it may take a while. */
export async function examine(): Promise<readonly Finding[]> {
  return (await read<{ findings: Finding[] }>('/v1/doctor')).findings;
}

/** These two are about the server and not about an owner's conversations, so the client has no verb for them. */
async function read<T>(path: string): Promise<T> {
  const response = await fetch(path, { headers: { accept: 'application/json' } });
  const body = await response.json();
  if (response.ok) return body;
  const { code, detail, hint } = body;
  throw new ThroughlineError(code, detail ?? response.statusText, hint === undefined ? {} : { hint });
}
