import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Client, ClientChannel } from 'ssh2';
import { ThroughlineError } from '../../core/errors.ts';
import { type RemoteProgram, type ScriptResult, word } from '../shared/remote/machine.ts';
import { SHELL_COMMAND, Shell } from './shell.ts';

/** By default, sshd allows ten sessions on a connection: these, the heartbeat, two for scripts and a spare one. */
const MOST_PROGRAMS = 6;
const MOST_SCRIPTS = 2;
/** Heartbeats without an answer before the connection counts as lost. */
const MOST_MISSED = 3;

/** Keeps the heartbeat file: programs there see by its time that we are connected. Removes it when the connection ends. */
const beatScript = (id: string) => `umask 077; d=$HOME/.throughline/beats; mkdir -p -- "$d" || exit 1
find "$d" -type f -mtime +1 -exec rm -f -- {} + 2>/dev/null
f=$d/${id}; : >"$f" || exit 1; trap '' HUP PIPE; echo "$f"
while read -r n; do touch -- "$f"; echo "$n"; done
rm -f -- "$f"`;

/** One connection, with shells on it. It keeps our process alive only while it is used. */
export class Connection {
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #machine: string;
  readonly #spare: Shell[] = [];
  readonly #queue: (() => void)[] = [];
  #isPreparing = false;
  #scripts = 0;
  #programs = 0;
  #uses = 0;
  #beat = '';
  #missed = 0;
  isOpen = true;

  private constructor(client: Client, socket: Socket, machine: string) {
    this.#client = client;
    this.#socket = socket;
    this.#machine = machine;
    client.on('close', () => {
      this.isOpen = false;
    });
    client.on('error', () => client.destroy());
  }

  /** `connected`: already authenticated. Throws `agent_unavailable` when no shell can be started there. */
  static async over(
    connected: { readonly client: Client; readonly socket: Socket },
    settings: { readonly machine: string; readonly beatMs: number },
  ): Promise<Connection> {
    const connection = new Connection(connected.client, connected.socket, settings.machine);
    try {
      await connection.#using(() => connection.#startBeat(settings.beatMs));
      return connection;
    } catch (error) {
      connected.client.destroy();
      throw error;
    }
  }

  get hasRoom(): boolean {
    return this.#programs < MOST_PROGRAMS;
  }

  close(): void {
    this.#client.destroy();
  }

  run(script: string, input: Uint8Array): Promise<ScriptResult> {
    return this.#using(async () => {
      await this.#takeSlot();
      try {
        const shell = await this.#shell();
        const ran = await shell.run(script, input);
        this.#spare.push(shell);
        return ran;
      } finally {
        this.#freeSlot();
      }
    });
  }

  async start(script: string): Promise<RemoteProgram> {
    this.#programs += 1;
    this.#use(1);
    const over = () => {
      this.#programs -= 1;
      this.#use(-1);
    };
    try {
      const program = (await this.#shell()).start(`BEAT=${word(this.#beat)}\n${script}`);
      void program.ended.then(over);
      void this.#prepare();
      return program;
    } catch (error) {
      over();
      throw error;
    }
  }

  async #takeSlot(): Promise<void> {
    if (this.#scripts < MOST_SCRIPTS) this.#scripts += 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  /** The next script in the queue takes the slot over, so that no other can take it meanwhile. */
  #freeSlot(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#scripts -= 1;
    else next();
  }

  async #shell(): Promise<Shell> {
    const spare = this.#spare.pop();
    if (spare === undefined) return this.#newShell();
    return spare.isOpen ? spare : this.#shell();
  }

  /** Starts a shell in advance, so that the next program need not wait for it. */
  async #prepare(): Promise<void> {
    if (this.#spare.length > 0 || this.#isPreparing) return;
    this.#isPreparing = true;
    try {
      this.#spare.push(await this.#newShell());
    } catch {
      // The next use tries again, and reports why it fails.
    }
    this.#isPreparing = false;
  }

  #newShell(): Promise<Shell> {
    const { promise, resolve, reject } = Promise.withResolvers<Shell>();
    const fail = (why: string, cause?: unknown) =>
      reject(
        new ThroughlineError('agent_unavailable', `Cannot start a shell on ${this.#machine}: ${why}.`, {
          hint: 'Check that the user may run commands there, and "MaxSessions" of its sshd (10 by default).',
          cause,
        }),
      );
    const lost = () => fail('the connection was lost');
    this.#client.once('close', lost);
    const opened = (error: Error | undefined, channel: ClientChannel) => {
      this.#client.off('close', lost);
      if (error) fail(error.message, error);
      else resolve(new Shell(channel, this.#machine));
    };
    try {
      this.#client.exec(SHELL_COMMAND, opened);
    } catch (error) {
      fail((error as Error).message, error);
    }
    return promise;
  }

  async #startBeat(beatMs: number): Promise<void> {
    const { stdin, stdout, stderr, ended } = (await this.#newShell()).start(beatScript(randomUUID()));
    // Without the heartbeat, programs there would not end with the connection.
    void ended.then(() => this.close());
    const errors = text(stderr);
    const lines = stdout[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.done) {
      throw new ThroughlineError('agent_unavailable', `Cannot write to the home of the user on ${this.#machine}.`, {
        hint: (await errors).trim() || 'Check the permissions and the disk space there.',
      });
    }
    this.#beat = Buffer.from(first.value).toString().trim();
    const timer = setInterval(() => {
      this.#missed += 1;
      if (this.#missed > MOST_MISSED) this.close();
      else stdin.write('beat\n');
    }, beatMs).unref();
    void ended.then(() => clearInterval(timer));
    void this.#hear(lines);
  }

  async #hear(lines: AsyncIterator<Uint8Array>): Promise<void> {
    while (!(await lines.next()).done) this.#missed = 0;
  }

  async #using<T>(work: () => Promise<T>): Promise<T> {
    this.#use(1);
    try {
      return await work();
    } finally {
      this.#use(-1);
    }
  }

  #use(more: number): void {
    this.#uses += more;
    if (this.#uses === 0) this.#socket.unref();
    else this.#socket.ref();
  }
}
