import { type ChildProcess, spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type ClientContext, client, ndJsonStream } from '@agentclientprotocol/sdk';

/** The command that starts the agent of the measures. */
export const AGENT_COMMAND = [process.execPath, fileURLToPath(new URL('acp-agent.ts', import.meta.url))] as const;

/** What was seen of the current prompt. */
interface Seen {
  start: number;
  /** When its first update came, in ms after the prompt was sent. */
  first: number;
  chunks: number;
}

/** A client as users of the SDK write it: it stores nothing. */
export class BareClient {
  readonly #child: ChildProcess;
  readonly #agent: ClientContext;
  readonly #sessionId: string;
  readonly #seen: Seen;

  static async start(cwd: string): Promise<BareClient> {
    const [program, ...args] = AGENT_COMMAND;
    const child = spawn(program, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    const seen: Seen = { start: 0, first: Number.NaN, chunks: 0 };
    const { agent } = client({ name: 'bare' })
      .onNotification('session/update', () => {
        seen.chunks += 1;
        if (Number.isNaN(seen.first)) seen.first = performance.now() - seen.start;
      })
      .connect(
        ndJsonStream(
          Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
          Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
        ),
      );
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [] });
    return new BareClient(child, agent, sessionId, seen);
  }

  private constructor(child: ChildProcess, agent: ClientContext, sessionId: string, seen: Seen) {
    this.#child = child;
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#seen = seen;
  }

  async ask(text: string): Promise<{ readonly first: number; readonly ended: number; readonly chunks: number }> {
    Object.assign(this.#seen, { start: performance.now(), first: Number.NaN, chunks: 0 });
    await this.#agent.request('session/prompt', { sessionId: this.#sessionId, prompt: [{ type: 'text', text }] });
    const { start, first, chunks } = this.#seen;
    return { first, ended: performance.now() - start, chunks };
  }

  close(): void {
    this.#child.stdin?.end();
  }
}
