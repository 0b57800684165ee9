import { randomUUID } from 'node:crypto';
import { RequestError } from '@agentclientprotocol/sdk';
import type { SandboxProcess } from '../../../core/process.ts';
import type { Child, OpenSandbox } from '../../../ports/sandbox.ts';
import { asObject } from '../../shared/json.ts';
import { OutputTail } from '../../shared/line-process.ts';
import { answered, type Directories, locate } from './files.ts';

export interface TerminalSettings {
  readonly sandbox: OpenSandbox;
  /** The directories in which a command may start. */
  readonly directories: Directories;
  /** The agent's process. */
  readonly agent: SandboxProcess;
  readonly onTerminalReleased: (id: string, text: string) => void;
}

interface Terminal {
  readonly child: Child;
  readonly output: OutputTail;
  /** Resolves when all of its output is read. */
  readonly ended: Promise<{ exitCode: number | null; signal: string | null }>;
  exit: { exitCode: number | null; signal: string | null } | null;
}

/** More would fill our memory. An agent that needs all of it can write to a file. */
const MOST_OUTPUT = 1024 * 1024;
/** Terminals that were not released yet, also those whose commands have ended. */
const MOST_TERMINALS = 100;

/**
 * Runs commands for an agent, in the sandbox. They are part of its process: they end with it, also after we have crashed.
 */
export class ClientTerminals {
  readonly #settings: TerminalSettings;
  readonly #terminals = new Map<string, Terminal>();
  /** The agent is gone: no more commands are run for it. */
  #over = false;

  constructor(settings: TerminalSettings) {
    this.#settings = settings;
  }

  async create(params: unknown): Promise<{ terminalId: string }> {
    const { command, args, env, cwd, outputByteLimit: limit } = asObject(params);
    const { sandbox, directories, agent } = this.#settings;
    if (typeof command !== 'string' || command === '') throw RequestError.invalidParams(undefined, 'no command');
    const folder = cwd === undefined || cwd === null ? sandbox.work : (await locate(directories, cwd)).full;
    if (this.#terminals.size >= MOST_TERMINALS) {
      throw RequestError.invalidRequest(undefined, `${MOST_TERMINALS} terminals are open; release some of them`);
    }
    const words = Array.isArray(args) ? args.map(String) : [];
    const options = { cwd: folder, env: variables(env), partOf: agent };
    const child = await answered(sandbox.spawn(wrapped(command, words), options));
    if (this.#over) child.kill('SIGKILL');
    const output = new OutputTail(Math.min(typeof limit === 'number' ? limit : MOST_OUTPUT, MOST_OUTPUT));
    const reading = Promise.all([output.read(child.stdout), output.read(child.stderr)]);
    child.stdin.end();
    const ended = child.exited.then(async ({ code, signal }) => {
      await reading;
      terminal.exit = { exitCode: code, signal };
      return terminal.exit;
    });
    const terminal: Terminal = { child, output, ended, exit: null };
    const terminalId = randomUUID();
    this.#terminals.set(terminalId, terminal);
    return { terminalId };
  }

  output(params: unknown): unknown {
    const { output, exit } = this.#find(params);
    return { output: output.text, truncated: output.truncated, ...(exit === null ? {} : { exitStatus: exit }) };
  }

  waitForExit(params: unknown): Promise<unknown> {
    return this.#find(params).ended;
  }

  async kill(params: unknown): Promise<unknown> {
    const { child, ended } = this.#find(params);
    child.kill('SIGKILL');
    await ended;
    return {};
  }

  async release(params: unknown): Promise<unknown> {
    const id = String(asObject(params).terminalId);
    const { child, output, ended } = this.#find(params);
    this.#terminals.delete(id);
    child.kill('SIGKILL');
    await ended;
    this.#settings.onTerminalReleased(id, output.text);
    return {};
  }

  /** The text of a terminal; null: there is no such terminal. */
  textOf(id: string): string | null {
    return this.#terminals.get(id)?.output.text ?? null;
  }

  /** Ends all commands. Never throws. */
  async end(): Promise<void> {
    this.#over = true;
    const all = [...this.#terminals.values()];
    this.#terminals.clear();
    for (const { child } of all) child.kill('SIGKILL');
    await Promise.all(all.map(({ ended }) => ended));
  }

  #find(params: unknown): Terminal {
    const id = String(asObject(params).terminalId);
    const terminal = this.#terminals.get(id);
    if (terminal === undefined) throw RequestError.resourceNotFound(`terminal ${id}`);
    return terminal;
  }
}

/**
 * Some agents send a program and its arguments, others a whole command line for a shell. A shell runs both: if the program does not exist,
 * the shell prints that to the output, where agents look for it.
 */
function wrapped(command: string, args: readonly string[]): string[] {
  if (args.length === 0 && /\s/.test(command)) return ['/bin/sh', '-c', command];
  return ['/bin/sh', '-c', 'exec "$@"', 'sh', command, ...args];
}

function variables(env: unknown): Record<string, string> {
  const pairs = Array.isArray(env) ? env.map(asObject) : [];
  return Object.fromEntries(pairs.map(({ name, value }) => [String(name), String(value)]));
}
